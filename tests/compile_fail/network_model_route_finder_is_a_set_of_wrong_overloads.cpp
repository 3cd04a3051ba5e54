// SPDX-License-Identifier: BSL-1.0
// expect: a network_model's route finder is: auto route_finder(std::span<const device>) const
#include <hetplan/cluster/cluster.hpp>

using namespace hetplan;

struct my_network {
  std::vector<resource> resources(std::span<const device>) const { return {{"air", 1_MB_per_s}}; }
  std::optional<route> find_route(std::span<const device>, device_id, device_id) const { return route{}; }
  std::optional<route> route_finder(std::span<const device>, device_id, device_id) const { return route{}; }
  std::optional<route> route_finder(device_id, device_id) const { return route{}; }
};
cluster two(std::vector<device> devices) { return {"two", std::move(devices), my_network{}}; }
