// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Layers: their specification for the builder, and the resolved node of the planning graph.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/core/quantity.hpp>

namespace hetplan {

/// Measured seconds of one layer on one kind of device, by batch size (ascending, >= 1). `backward_s` is the whole
/// backward (input and weight gradient); empty if only inference was measured.
struct layer_profile {
  std::string device_kind;
  std::vector<double> batch;
  std::vector<double> forward_s;
  std::vector<double> backward_s;

  friend bool operator==(const layer_profile&, const layer_profile&) = default;
};

/// Cut of a layer's weights where devices share tensors (the columns of a grid).
/// Source  DeepCEE, section 3.3.3; the pair columns, rows is Megatron's.
enum class layer_split {
  none,     ///< every device runs the whole layer
  rows,     ///< the output is summed over the columns by an all-reduce
  columns,  ///< the output stays split
  along     ///< no weights; works on split tensors
};

/// Specification of a layer, per sample unless stated. Defaults are those of model files.
/// Source  semantics, section 2. SI units; 1 MAC = 2 FLOP.
struct layer_spec {
  std::string name;
  std::string kind = "";
  std::optional<flops> forward_flops = {};           ///< required unless profiled
  std::optional<flops> backward_input_flops = {};    ///< default: forward_flops
  std::optional<flops> backward_weight_flops = {};   ///< default: forward_flops if it has trainable weights, else 0
  bytes weight = {};                                 ///< parameters, held once by each device that runs the layer
  bool trainable = true;                             ///< false: no gradient, optimizer state or all-reduce
  std::optional<bytes> weight_traffic = {};          ///< weight bytes that one call reads; default: weight
  std::string weight_group = "";                     ///< layers of a group share one tensor; empty: no group
  bytes activation = {};                             ///< kept from a sample's forward until its backward
  std::optional<bytes> activation_for_weights = {};  ///< part of `activation` that a separate backward_weight needs; default: all
  std::optional<bytes> traffic = {};                 ///< device-memory bytes besides weights; default: in-edges + largest out-edge
  bytes kv_bytes_per_token = {};                     ///< key/value cache per token of context
  std::optional<layer_split> split = {};             ///< default: rows if it has weights, else none
  int split_units = 0;                               ///< number of indivisible units (heads, experts): parts are whole units; 0: any part
  std::vector<layer_profile> profiles = {};
};

/// Layer of a planning graph: every default resolved, numbered topologically.
struct layer {
  layer_id id;
  std::string name;
  std::string kind;
  flops forward_flops;
  flops backward_input_flops;
  flops backward_weight_flops;
  bytes weight;
  bool trainable = true;
  bytes weight_traffic;
  std::int32_t weight_group = -1;  ///< index into planning_graph::weight_groups(), -1 = none
  bytes activation;
  bytes activation_for_weights;  ///< <= activation
  bytes traffic;
  bytes largest_output;  ///< largest out-edge, which tensor parallelism gathers
  bytes kv_bytes_per_token;
  layer_split split = layer_split::none;
  int split_units = 0;
  bool has_flops = true;  ///< false: only the profiles tell its time
  std::vector<layer_profile> profiles;

  /// Returns the bytes that have gradients, optimizer state and an all-reduce.
  [[nodiscard]] bytes trainable_weight() const { return trainable ? weight : bytes{}; }

  [[nodiscard]] bool is_split() const { return split != layer_split::none; }

  /// Returns the profile for a kind of device, or null.
  [[nodiscard]] const layer_profile* profile_for(const std::string& device_kind) const {
    for (const layer_profile& p : profiles) {
      if (p.device_kind == device_kind) return &p;
    }
    return nullptr;
  }

  friend bool operator==(const layer&, const layer&) = default;
};

[[nodiscard]] constexpr std::string_view to_string(layer_split s) {
  return s == layer_split::none ? "none" : s == layer_split::rows ? "rows" : s == layer_split::columns ? "columns" : "along";
}

}  // namespace hetplan
