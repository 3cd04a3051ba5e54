// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The only way to make a planning graph: every rule about layers and edges is checked here.

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan {

/// Collects layers and edges by name or id, then builds the graph.
///
///     planning_graph_builder b("toy");
///     const auto a = b.add_layer({.name = "a", .forward_flops = 2_GFLOP, .weight = 4_MB});
///     const auto c = b.add_layer({.name = "c", .forward_flops = 1_GFLOP});
///     b.add_edge(a, c, 600_kB);
///     const planning_graph g = std::move(b).build();
///
/// Ids that the builder returns number its own calls; the built graph may renumber (see build()).
/// Throws           invalid_input from every member, naming the layer or edge and the rule.
/// Complexity       build: O(V + E log E).
class planning_graph_builder {
 public:
  explicit planning_graph_builder(std::string name, double bytes_per_parameter = 4, int tokens_per_sample = 1);

  /// Adds a layer with a name of its own. A layer without profile needs forward_flops.
  layer_id add_layer(layer_spec spec);

  /// Adds the tensor u -> v; `gradient` defaults to `forward`, 0 means no backward transfer.
  void add_edge(layer_id from, layer_id to, bytes forward, std::optional<bytes> gradient = {});

  void add_edge(std::string_view from, std::string_view to, bytes forward, std::optional<bytes> gradient = {});

  /// Numbers the layers topologically (the order of the calls where that is topological already, see
  /// topological_order), resolves every default and indexes the graph.
  [[nodiscard]] planning_graph build() &&;

 private:
  [[noreturn]] void fail(const std::string& what) const { throw invalid_input("model \"" + graph_.name_ + "\": " + what); }
  void require(bool ok, const std::string& what, double given, const char* expected) const;
  template <class Quantity>
  void require_amount(Quantity q, const std::string& what) const {
    require(is_finite(q) && q.value() >= 0, what, q.value(), "a finite number >= 0");
  }

  void check(const layer_spec& s) const;

  void check(const layer_profile& p, const std::string& where) const;

  void renumber();

  void index_edges();

  void resolve_layers();

  std::int32_t group_of(const layer_spec& s, layer_id id);

  planning_graph graph_;
  std::vector<layer_spec> specs_;
  std::vector<layer_id> group_head_;
  std::unordered_map<std::string, std::int32_t> group_index_;
  std::set<std::pair<layer_id, layer_id>> pairs_;
};

/// The specification of a layer that is built, every default spelled out: what a builder needs to make it again.
[[nodiscard]] layer_spec spec_of(const planning_graph& g, const layer& l);

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/graph/planning_graph_builder.ipp>
#endif
