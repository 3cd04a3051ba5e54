// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The built-in clusters: the four settings of Dora's evaluation.

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cluster/topology.hpp>
#include <hetplan/zoo/devices.hpp>

namespace hetplan::zoo {

namespace detail {
inline constexpr std::array<std::string_view, 4> cluster_names{"smart-home-1", "smart-home-2", "traffic-monitor", "edge-cluster"};
}  // namespace detail

/// All names that `cluster` knows.
[[nodiscard]] inline std::span<const std::string_view> cluster_names() { return detail::cluster_names; }

/// A built-in cluster. Throws invalid_input (unknown name).
///
/// Source       Dora table 3 (devices, bandwidth, Wi-Fi or wired ring). Latencies are estimates, and so is that
///              the access point takes each byte once and that the wires are full duplex.
[[nodiscard]] inline hetplan::cluster cluster(std::string_view name) {
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
