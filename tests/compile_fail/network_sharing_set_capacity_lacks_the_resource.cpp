// SPDX-License-Identifier: BSL-1.0
// expect: network_sharing's optional capacities are: void set_capacity(std::size_t resource, double capacity)
#include <hetplan/cluster/network_sharing.hpp>

struct my_sharing {
  void start(double, std::uint32_t, const hetplan::tasks::transfer&, std::span<const hetplan::resource_use>) {}
  void update(double, const hetplan::rate_changed&) {}
  double next_end() { return 0; }
  void finish_until(double, const hetplan::transfer_finished&) {}
  void set_capacity(double) {}
};
static_assert(hetplan::check_network_sharing<my_sharing>());
