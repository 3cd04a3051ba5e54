// SPDX-License-Identifier: BSL-1.0
#pragma once
/// One node of the planning graph: what the builder is told, and what the graph holds.

#include <optional>
#include <string>
#include <vector>

#include <hetplan/core/id.hpp>
#include <hetplan/core/quantity.hpp>

namespace HETPLAN_NAMESPACE {

/// Measured seconds of one layer on one kind of device, by batch size (ascending, >= 1).
/// `backward` holds both parts (input and weight gradient) together; empty where only inference was measured.
struct layer_profile {
  std::string device_kind;
  std::vector<double> batch;
  std::vector<double> forward_s;
  std::vector<double> backward_s;

  friend bool operator==(const layer_profile&, const layer_profile&) = default;
};

/// What a layer is to the planner, per sample unless stated; the defaults are those of the model file.
///
/// Source  docs/concepts.md "planning graph". Units SI; 1 MAC = 2 FLOP.
struct layer_spec {
  std::string name;
  std::string kind = "";
  std::optional<flops> forward_flops = {};           ///< required unless profiled
  std::optional<flops> backward_input_flops = {};    ///< = forward
  std::optional<flops> backward_weight_flops = {};   ///< = forward if it has trainable weights, else 0
  bytes weight = {};                                 ///< parameters, held once by whoever runs the layer
  bool trainable = true;                             ///< false: no gradient, optimizer state or all-reduce
  std::optional<bytes> weight_traffic = {};          ///< weight bytes that one call reads (= weight)
  std::string weight_group = "";                     ///< layers of a group share one tensor; "" = none
  bytes activation = {};                             ///< kept from a sample's forward until its backward
  std::optional<bytes> activation_for_weights = {};  ///< the part of it that a split-off W needs after B (= all of it)
  std::optional<bytes> traffic = {};                 ///< device-memory bytes besides weights (= in-edges + largest out-edge)
  bytes kv_bytes_per_token = {};                     ///< key/value cache per token of context
  std::vector<layer_profile> profiles = {};
};

/// A layer as the graph holds it: every default resolved, numbered topologically.
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
  bytes largest_output;  ///< the largest out-edge: what tensor parallelism gathers
  bytes kv_bytes_per_token;
  bool has_flops = true;  ///< false: only the profiles know its time
  std::vector<layer_profile> profiles;

  /// Gradient, optimizer state and all-reduce concern these bytes only.
  [[nodiscard]] bytes trainable_weight() const { return trainable ? weight : bytes{}; }

  /// The profile for a kind of device, or null.
  [[nodiscard]] const layer_profile* profile_for(const std::string& device_kind) const {
    for (const layer_profile& p : profiles) {
      if (p.device_kind == device_kind) return &p;
    }
    return nullptr;
  }

  friend bool operator==(const layer&, const layer&) = default;
};

}  // namespace HETPLAN_NAMESPACE
