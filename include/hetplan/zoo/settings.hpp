// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Built-in devices and clusters: the four settings of Dora's evaluation, and graphs and clusters of Moirai's.

#include <array>
#include <span>
#include <string>
#include <string_view>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cluster/device.hpp>
#include <hetplan/graph/planning_graph.hpp>
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

/// Kind of a device's network link, which sets the energy per byte. Both pairs of values are estimates.
enum class link { wifi, wire };

/// A built-in device, and which of its numbers are estimates.
struct device_entry {
  hetplan::device device;      ///< named after its kind
  std::string_view estimated;  ///< fields of `device`, comma-separated
};

namespace detail {

/// A row of the table of devices, in the units of data sheets.
struct device_row {
  std::string_view kind;
  double compute_tflops;  ///< sustained by a training kernel at large batch: about the FP32 vector peak
  double memory_gb;
  double budget_gb;  ///< usable by a plan; the rest is for the system and other programs
  double bandwidth_gb_per_s;
  double half_batch;
  double launch_us;
  double idle_w;
  double active_w;
  std::string_view estimated;
};

// Estimates were chosen once for all reproductions. half_batch and launch are parameters of the cost model, which nobody publishes.
// a40 and v100 count twice their vector peak (tensor cores take part).
inline constexpr std::array<device_row, 10> device_rows{{
    {"rtx4060ti", 22, 8, 8, 288, 4, 10, 20, 160, "half_batch, launch, power"},
    {"rtx4050", 9, 6, 6, 192, 3, 10, 8, 50, "half_batch, launch, power"},
    {"snapdragon-8-elite", 1.6, 12, 8, 84.8, 1, 40, 1, 8, "compute, memory_budget, half_batch, launch, power"},
    {"genio-720", 0.9, 16, 12, 34, 1, 40, 2, 9, "compute, memory_budget, memory_bandwidth, half_batch, launch, power"},
    {"genio-520", 0.7, 16, 12, 26, 1, 40, 2, 7, "compute, memory_budget, memory_bandwidth, half_batch, launch, power"},
    {"a40", 75, 48, 16, 695.8, 8, 10, 30, 300, "compute, half_batch, launch, power.idle, power.send, power.receive"},
    {"v100", 28, 16, 16, 897, 8, 10, 30, 250, "compute, half_batch, launch, power"},
    {"jetson-nano", 0.2358, 4, 3, 25.6, 2, 40, 1.5, 10, "memory_budget, half_batch, launch, power.idle, power.send, power.receive"},
    {"jetson-tx2", 0.7501, 8, 6, 59.7, 2, 40, 2, 15, "memory_budget, half_batch, launch, power.idle, power.send, power.receive"},
    {"jetson-nx", 0.8448, 8, 6, 51.2, 2, 40, 2, 15, "memory_budget, half_batch, launch, power.idle, power.send, power.receive"},
}};

inline constexpr auto device_kinds = [] {
  std::array<std::string_view, device_rows.size()> kinds;
  for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i] = device_rows[i].kind;
  return kinds;
}();

}  // namespace detail

[[nodiscard]] inline std::span<const std::string_view> device_kinds() { return detail::device_kinds; }

/// Returns a built-in device and the names of its estimated fields. Throws invalid_input (unknown kind).
[[nodiscard]] device_entry find_device(std::string_view kind, link joined = link::wifi);

/// Returns a built-in device with a given name. Throws invalid_input (unknown kind).
[[nodiscard]] hetplan::device device(std::string_view kind, std::string name, link joined = link::wifi);

namespace detail {
inline constexpr std::array<std::string_view, 4> cluster_names{"smart-home-1", "smart-home-2", "traffic-monitor", "edge-cluster"};
}  // namespace detail

[[nodiscard]] inline std::span<const std::string_view> cluster_names() { return detail::cluster_names; }

/// Returns a built-in cluster. Throws invalid_input (unknown name).
///
/// Source       Dora table 3 (devices, bandwidth, Wi-Fi or wired ring). Latencies are estimates. So are the assumptions that the access
///              point takes each byte once and that wires are full duplex.
[[nodiscard]] hetplan::cluster cluster(std::string_view name);

}  // namespace hetplan::zoo

#ifndef HETPLAN_SEPARATE
#include <hetplan/zoo/settings.ipp>
#endif
