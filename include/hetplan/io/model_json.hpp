// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Model files: hetplan/model/1.

#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/io/json_node.hpp>
#include <hetplan/io/json_text.hpp>

namespace hetplan::io {

inline constexpr std::string_view model_format = "hetplan/model/1";

namespace keys {
inline constexpr std::array<std::string_view, 8> model{
    "format", "name", "layers", "edges", "bytes_per_parameter", "tokens_per_sample", "precision", "weight_format"};
inline constexpr std::array<std::string_view, 32> layer{"name",
                                                        "forward_flops",
                                                        "kind",
                                                        "weight",
                                                        "trainable",
                                                        "weight_traffic",
                                                        "weight_group",
                                                        "backward_input_flops",
                                                        "backward_weight_flops",
                                                        "activation",
                                                        "activation_for_weights",
                                                        "traffic",
                                                        "backward_traffic",
                                                        "kv_bytes_per_token",
                                                        "split",
                                                        "units",
                                                        "profile",
                                                        "per",
                                                        "attention_flops",
                                                        "attention",
                                                        "window",
                                                        "last_token",
                                                        "experts",
                                                        "degrees",
                                                        "attention_traffic",
                                                        "calls",
                                                        "forward_activation",
                                                        "workspace",
                                                        "scratch",
                                                        "forward_workspace",
                                                        "block",
                                                        "rows"};
inline constexpr std::array<std::string_view, 3> experts{"total", "active", "weight"};
inline constexpr std::array<std::string_view, 3> profile{"batch", "forward", "backward"};
inline constexpr std::array<std::string_view, 4> edge{"from", "to", "bytes", "gradient"};
}  // namespace keys

namespace detail {

class model_reader {
 public:
  explicit model_reader(const json_document& d);

  planning_graph read();

 private:
  struct shared_tensor {
    std::string layer;
    bytes weight;
    bool trainable = true;
  };
  struct listed_edge {
    json_node node;
    layer_id from, to;
  };

  [[nodiscard]] model_facts facts() const;

  void read_layer(const json_node& n);

  static void read_sequence(const json_object& o, layer_spec& s);
  static void read_experts(const json_node& n, layer_spec& s);

  void check_group(const json_node& n, const layer_spec& s);

  static void read_profiles(const json_node& n, layer_spec& s);
  static std::vector<double> read_times(const json_node& n, std::size_t count);

  void read_edge(const json_node& n);
  [[nodiscard]] layer_id find_layer(const json_node& n) const;

  /// Throws invalid_input that names an edge if the graph has a cycle.
  void fail_on_cycle() const;

  json_object top_;
  planning_graph_builder builder_;
  std::unordered_map<std::string_view, layer_id> ids_;
  std::unordered_map<std::string, shared_tensor> weight_groups_;
  std::vector<listed_edge> edges_;
};

json write_profile(const layer_profile& p);

json model_json(const planning_graph& g);

}  // namespace detail

/// Reads a model file. Throws invalid_input `FILE: /pointer: expected X, got Y` for what docs/reference/files.md calls bad input.
[[nodiscard]] inline planning_graph read_model(const json_document& d) { return detail::model_reader(d).read(); }

/// Returns the model file of a graph without defaults; reading it gives the identical graph.
[[nodiscard]] inline std::string write_model(const planning_graph& g) { return json_text(detail::model_json(g)); }

/// Returns the output of `show MODEL --json`: the model file and its totals.
[[nodiscard]] std::string describe_model(const planning_graph& g);

}  // namespace hetplan::io

#ifndef HETPLAN_SEPARATE
#include <hetplan/io/model_json.ipp>
#endif
