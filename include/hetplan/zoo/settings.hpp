// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Built-in clusters: the four settings of Dora's evaluation, and Moirai's, with its graphs.

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/zoo/devices.hpp>
#include <hetplan/zoo/models.hpp>

namespace hetplan::zoo {

// Moirai's evaluation: graphs of the sizes in Table IV, clusters of Table III.

/// A row of Table IV, with the length of its inputs.
struct moirai_model {
  std::string_view name;
  double parameters;
  int layers, heads;
  int operators, coarsened;  ///< number of operators as printed, before and after coarsening
  int tokens, attended;      ///< per sample; seen by each token
  precision dtype;
};

/// Table IV. GPT-3 1.3B has 24 layers here, 32 in print: only with 24 are all eleven counts layers x (12 heads + 11).
///
/// Source  Moirai, Table IV and section IV-A (2048 tokens; 1100 x 1100 pixels, in patches of 16 x 16 and windows of 12 x 12; 128
///         sequences of 128 residues). 13B models use 2 bytes per parameter: with 4 they exceed the 43 GB of the inter-server cluster.
inline constexpr std::array<moirai_model, 11> moirai_models{{
    {"swin-1.8b", 1.8e9, 32, 16, 6496, 5204, 4727, 144, precision::fp32},
    {"swin-6.6b", 6.6e9, 48, 24, 14352, 11512, 4727, 144, precision::fp32},
    {"swin-13b", 13e9, 56, 32, 22120, 17947, 4727, 144, precision::bf16},
    {"gpt3-330m", 330e6, 24, 16, 4872, 3682, 2048, 2048, precision::fp32},
    {"gpt3-1.3b", 1.3e9, 24, 32, 9480, 7308, 2048, 2048, precision::fp32},
    {"gpt3-2.7b", 2.7e9, 32, 32, 12640, 9825, 2048, 2048, precision::fp32},
    {"gpt3-13b", 13e9, 40, 40, 19640, 15283, 2048, 2048, precision::bf16},
    {"alphafold2-87m", 87e6, 48, 8, 5136, 3618, 16384, 128, precision::fp32},
    {"alphafold2-930m", 930e6, 64, 16, 12992, 9252, 16384, 128, precision::fp32},
    {"alphafold2-2.4b", 2.4e9, 96, 32, 37920, 26824, 16384, 128, precision::fp32},
    {"alphafold2-3.2b", 3.2e9, 128, 32, 50560, 35096, 16384, 128, precision::fp32},
}};

/// Returns a synthetic graph of a row's size. A layer has multi-head attention, with 12 operators per head, and 11 further operators. The
/// hidden width sqrt(parameters / 12 layers) makes the matrices add up to the model's parameters.
///
/// Source  ours: the paper publishes counts, not graphs. Swin and AlphaFold2 have several widths and kinds of layers: their graphs here
///         have the size and the branching, not the architecture.
[[nodiscard]] planning_graph moirai_graph(const moirai_model& m);

inline constexpr std::array<std::string_view, 2> moirai_cluster_names{"inter-server", "intra-server"};

/// Returns a cluster of Table III, with a link of the mean bandwidth for each ordered pair. Throws invalid_input (unknown name).
///
/// Source  Moirai, Table III; peak FLOP/s and memory bandwidth from data sheets (FP32: 13.45, 8.141, 5.5, 16.2, 14.13 and 9.3 TFLOP/s).
///         The entry in row j, column i is taken for i -> j, as it agrees with the transfer times of the published samples. A launch takes
///         10 us, an estimate.
[[nodiscard]] hetplan::cluster moirai_cluster(std::string_view name);

namespace detail {
inline constexpr std::array<std::string_view, 4> cluster_names{"smart-home-1", "smart-home-2", "traffic-monitor", "edge-cluster"};
inline constexpr auto clusters_and_devices = [] {
  std::array<std::string_view, cluster_names.size() + device_kinds.size()> names;
  std::ranges::copy(device_kinds, std::ranges::copy(cluster_names, names.begin()).out);
  return names;
}();
}  // namespace detail

[[nodiscard]] inline std::span<const std::string_view> cluster_names() { return detail::cluster_names; }

/// Returns all names that cluster() takes: those of clusters, then the kinds of devices.
[[nodiscard]] inline std::span<const std::string_view> clusters_and_devices() { return detail::clusters_and_devices; }

/// Returns a built-in cluster, or for the kind of a built-in device that device alone. Throws invalid_input (unknown name).
///
/// Source       Dora table 3 (devices, bandwidth, Wi-Fi or wired ring). Latencies are estimates. So are the assumptions that the access
///              point takes each byte once and that wires are full duplex.
[[nodiscard]] hetplan::cluster cluster(std::string_view name);

}  // namespace hetplan::zoo

#ifndef HETPLAN_SEPARATE
#include <hetplan/zoo/settings.ipp>
#endif
