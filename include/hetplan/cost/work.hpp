// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Pieces of work that cost models time, and the workload that memory depends on.

#include <string_view>

#include <hetplan/graph/planning_graph.hpp>

namespace hetplan {

enum class mode { training, inference, generation };

/// Parts of a layer's work. An unsplit backward is backward_input followed by backward_weight. A cost model's `time`
/// covers forward and backward; the optimizer step is a member of its own.
enum class phase { forward, backward_input, backward_weight, optimizer_step };

[[nodiscard]] constexpr std::string_view to_string(mode m) {
  return m == mode::training ? "training" : m == mode::inference ? "inference" : "generation";
}
[[nodiscard]] constexpr std::string_view to_string(phase p) {
  switch (p) {
    case phase::forward: return "forward";
    case phase::backward_input: return "backward_input";
    case phase::backward_weight: return "backward_weight";
    case phase::optimizer_step: return "optimizer_step";
  }
  return "?";
}
/// Returns F, B, W or U (update), as plan files, charts and traces write phases.
[[nodiscard]] constexpr char letter(phase p) { return "FBWU"[static_cast<int>(p)]; }

/// Parameters of the run that all plans of a job share.
struct workload {
  hetplan::mode mode = mode::training;
  double optimizer_factor = 2;  ///< optimizer state per byte of trainable weight: Adam 2, SGD 0
  int context = 0;              ///< tokens of context that each sequence's cache holds
  int tokens = 16;              ///< generation: tokens (steps) per sequence, >= 2

  /// Returns how often the model runs on each sample.
  [[nodiscard]] constexpr int steps() const { return mode == hetplan::mode::generation ? tokens : 1; }

  friend bool operator==(const workload&, const workload&) = default;
};

/// One call of one layer: `batch` samples at once, split over `tensor_parallel` accelerators of the device.
struct work {
  const hetplan::layer& layer;
  hetplan::phase phase = phase::forward;
  double batch = 1;
  int tensor_parallel = 1;
  int context = 0;
  double fraction = 1;  ///< of the layer's tensors, FLOP and bytes: less than 1 where devices share them (the columns of a grid)

  [[nodiscard]] flops flops_per_sample() const {
    switch (phase) {
      case phase::forward: return layer.forward_flops * fraction;
      case phase::backward_input: return layer.backward_input_flops * fraction;
      case phase::backward_weight: return layer.backward_weight_flops * fraction;
      case phase::optimizer_step: break;
    }
    return {};
  }
  [[nodiscard]] bytes weight_traffic() const { return layer.weight_traffic * fraction; }
  [[nodiscard]] bytes traffic() const { return layer.traffic * fraction; }
};

/// Piece of work without its layer.
struct work_kind {
  hetplan::phase phase = phase::forward;
  double batch = 1;
  int tensor_parallel = 1;
  int context = 0;
  double fraction = 1;  ///< of split layers; others are whole

  [[nodiscard]] work of(const layer& l) const { return {l, phase, batch, tensor_parallel, context, l.is_split() ? fraction : 1}; }
  friend bool operator==(const work_kind&, const work_kind&) = default;
};

}  // namespace hetplan
