// SPDX-License-Identifier: BSL-1.0
// expect: network_sharing needs: double next_end()
#include <hetplan/cluster/network_sharing.hpp>

struct my_sharing {
  void start(double, std::uint32_t, const hetplan::tasks::transfer&, std::span<const hetplan::resource_use>) {}
  void update(double, const hetplan::rate_changed&) {}
  hetplan::seconds next_end() { return {}; }
  void finish_until(double, const hetplan::transfer_finished&) {}
};
static_assert(hetplan::check_network_sharing<my_sharing>());
