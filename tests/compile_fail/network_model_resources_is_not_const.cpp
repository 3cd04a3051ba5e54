// SPDX-License-Identifier: BSL-1.0
// expect: network_model needs: std::vector<resource> resources(std::span<const device>) const
#include <hetplan/cluster/network.hpp>

using namespace hetplan;

struct my_network {
  std::vector<resource> resources(std::span<const device>) { return {{"air", 1_MB_per_s}}; }
  std::optional<route> find_route(std::span<const device>, device_id, device_id) const { return route{1_ms, {{resource_id(0), 1}}}; }
};
static_assert(check_network_model<my_network>());
