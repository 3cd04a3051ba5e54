// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The built-in clusters: the four settings of Dora's evaluation.

#include <array>
#include <span>
#include <string_view>

#include <hetplan/cluster/cluster.hpp>

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
[[nodiscard]] hetplan::cluster cluster(std::string_view name);

}  // namespace hetplan::zoo

#ifndef HETPLAN_COMPILED
#include <hetplan/zoo/settings.ipp>
#endif
