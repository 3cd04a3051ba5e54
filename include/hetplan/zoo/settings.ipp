// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/zoo/settings.hpp>

#include <string>
#include <utility>
#include <vector>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/zoo/devices.hpp>
#include <hetplan/zoo/names.hpp>

namespace hetplan::zoo {

HETPLAN_INLINE hetplan::cluster cluster(std::string_view name) {
  std::string n(name);
  if (n == "smart-home-1") {
    return {std::move(n),
            std::vector{device("rtx4060ti", "desktop0"), device("rtx4060ti", "desktop1"), device("rtx4050", "laptop0"),
                        device("rtx4050", "laptop1"), device("rtx4050", "laptop2")},
            shared_medium{900_Mbit_per_s, 2_ms}};
  }
  if (n == "smart-home-2") {
    return {std::move(n),
            std::vector{device("rtx4050", "laptop0"), device("rtx4050", "laptop1"), device("snapdragon-8-elite", "xiaomi0"),
                        device("snapdragon-8-elite", "xiaomi1"), device("snapdragon-8-elite", "galaxy0")},
            shared_medium{600_Mbit_per_s, 2_ms}};
  }
  if (n == "traffic-monitor") {
    return {std::move(n),
            std::vector{device("genio-720", "camera0", link::wire), device("genio-720", "camera1", link::wire),
                        device("genio-520", "camera2", link::wire), device("genio-520", "camera3", link::wire)},
            ring{200_Mbit_per_s, 0.5_ms, duplex::full}};
  }
  if (n == "edge-cluster") {
    return {std::move(n),
            std::vector{device("a40", "server0", link::wire), device("a40", "server1", link::wire), device("v100", "server2", link::wire),
                        device("v100", "server3", link::wire)},
            ring{4_Gbit_per_s, 0.1_ms, duplex::full}};
  }
  throw_unknown("zoo::cluster", "cluster", name, cluster_names());
}

}  // namespace hetplan::zoo
