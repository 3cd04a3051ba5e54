// SPDX-License-Identifier: BSL-1.0
// expect: network_model needs: std::optional<route> find_route(std::span<const device>, device_id from, device_id to) const
#include <hetplan/cluster/cluster.hpp>

using namespace hetplan;

struct my_network {
  std::vector<resource> resources(std::span<const device>) const { return {{"air", 1_MB_per_s}}; }
  route find_route(std::span<const device>, device_id, device_id) const { return {1_ms, {{resource_id(0), 1}}}; }
};
const cluster wrong("home", {device{.name = "laptop"}, device{.name = "phone"}}, my_network{});
