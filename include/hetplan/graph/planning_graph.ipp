// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/graph/planning_graph.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <hetplan/core/min_queue.hpp>
#include <hetplan/core/sorting.hpp>

namespace hetplan {

HETPLAN_INLINE std::vector<std::size_t> topological_order(std::size_t n, std::span<const std::pair<std::size_t, std::size_t>> edges) {
  std::vector<std::size_t> first(n + 1, 0), waiting(n, 0), targets(edges.size());
  for (const auto& [from, to] : edges) {
    ++first[from + 1];
    ++waiting[to];
  }
  for (std::size_t i = 0; i < n; ++i) first[i + 1] += first[i];
  auto next = first;
  for (const auto& [from, to] : edges) targets[next[from]++] = to;

  min_queue<std::size_t> ready;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < n; ++i) {
    if (waiting[i] == 0) ready.push(i);
  }
  order.reserve(n);
  while (!ready.empty()) {
    const std::size_t node = ready.pop();
    order.push_back(node);
    for (std::size_t e = first[node]; e < first[node + 1]; ++e) {
      if (--waiting[targets[e]] == 0) ready.push(targets[e]);
    }
  }
  return order;
}

HETPLAN_INLINE std::pair<std::size_t, std::size_t> edge_on_cycle(std::size_t n, std::span<const std::pair<std::size_t, std::size_t>> edges,
                                                                 std::span<const std::size_t> order) {
  std::vector<char> left(n, 1);
  for (const std::size_t node : order) left[node] = 0;
  // Every node left has a predecessor that is left, so walking back ends on a cycle.
  std::vector<std::size_t> before(n, n);
  for (const auto& [from, to] : edges) {
    if (left[from] && left[to]) before[to] = from;
  }
  auto node = static_cast<std::size_t>(std::find(left.begin(), left.end(), 1) - left.begin());
  for (std::size_t steps = 0; steps < n; ++steps) node = before[node];
  return {before[node], node};
}

HETPLAN_INLINE std::span<const layer_edge> planning_graph::out_edges(layer_id l) const {
  return std::span(edges_).subspan(first_out_[l.index()], first_out_[l.index() + 1] - first_out_[l.index()]);
}

HETPLAN_INLINE std::span<const std::uint32_t> planning_graph::in_edges(layer_id l) const {
  return std::span(in_).subspan(first_in_[l.index()], first_in_[l.index() + 1] - first_in_[l.index()]);
}

HETPLAN_INLINE layer_id planning_graph::find(std::string_view name) const {
  const layer_id* found = by_name_.find(parts_of(name));
  if (found == nullptr) throw invalid_input("model \"" + name_ + "\" has no layer \"" + std::string(name) + "\"");
  return *found;
}

HETPLAN_INLINE double planning_graph::parameters() const {
  std::vector<bool> seen(weight_groups_.size());
  bytes total;
  for (const layer& l : layers_) {
    if (l.weight_group >= 0) {
      if (seen[static_cast<std::size_t>(l.weight_group)]) continue;
      seen[static_cast<std::size_t>(l.weight_group)] = true;
    }
    total += l.weight;
  }
  return total.value() / facts_.bytes_per_parameter;
}

HETPLAN_INLINE flops planning_graph::forward_flops() const {
  flops total;
  for (const layer& l : layers_) total += l.forward_flops;
  return total;
}

HETPLAN_INLINE double token_work::pairs(double added, double cached) const {
  const double most = window ? static_cast<double>(*window) : std::numeric_limits<double>::infinity();
  if (attention == attention_kind::full) return added * std::min(most, added + cached);
  // Each token sees one more than the one before it, until the window is full.
  const double growing = std::clamp(most - cached, 0.0, added);
  return growing * cached + growing * (growing + 1) / 2 + (growing < added ? (added - growing) * most : 0);
}

HETPLAN_INLINE double token_work::kept(double tokens) const { return window ? std::min(static_cast<double>(*window), tokens) : tokens; }

HETPLAN_INLINE bool layer::allows(int degree) const {
  return degree == 1 || degrees.empty() || std::find(degrees.begin(), degrees.end(), degree) != degrees.end();
}

HETPLAN_INLINE std::vector<int> common_degrees(std::span<const int> a, std::span<const int> b) {
  std::vector<int> common(a.begin(), a.end());
  if (a.empty() || b.empty()) common.assign(b.empty() ? a.begin() : b.begin(), b.empty() ? a.end() : b.end());
  else std::erase_if(common, [&](int g) { return std::find(b.begin(), b.end(), g) == b.end(); });
  if (common.empty() && !a.empty()) common.push_back(1);
  return common;
}

HETPLAN_INLINE planning_graph_builder::planning_graph_builder(std::string name, double bytes_per_parameter, int tokens_per_sample)
    : planning_graph_builder(std::move(name), {.bytes_per_parameter = bytes_per_parameter, .tokens_per_sample = tokens_per_sample}) {}

HETPLAN_INLINE planning_graph_builder::planning_graph_builder(std::string name, model_facts facts) {
  graph_.name_ = std::move(name);
  graph_.facts_ = std::move(facts);
  const model_facts& f = graph_.facts_;
  require(f.bytes_per_parameter > 0 && std::isfinite(f.bytes_per_parameter), "bytes_per_parameter", f.bytes_per_parameter,
          "a finite number > 0");
  require(f.tokens_per_sample >= 1, "tokens_per_sample", f.tokens_per_sample, "an integer >= 1");
}

HETPLAN_INLINE layer_id planning_graph_builder::add_layer(layer_spec spec) {
  check(spec);
  const layer_id id(specs_.size());
  if (!graph_.by_name_.insert(parts_of(spec.name), id)) fail("layer \"" + spec.name + "\" appears twice");
  specs_.push_back(std::move(spec));
  return id;
}

HETPLAN_INLINE void planning_graph_builder::add_edge(layer_id from, layer_id to, bytes forward, std::optional<bytes> gradient) {
  if (from.index() >= specs_.size() || to.index() >= specs_.size()) fail("an edge names a layer that was not added");
  const std::string where = "edge \"" + specs_[from.index()].name + "\" -> \"" + specs_[to.index()].name + "\"";
  if (from == to) fail(where + " joins a layer to itself");
  require_amount(forward, where + " bytes");
  if (gradient) require_amount(*gradient, where + " gradient");
  if (!pairs_.insert({from, to})) fail(where + " appears twice");
  graph_.edges_.push_back({from, to, forward, gradient.value_or(forward)});
}

HETPLAN_INLINE void planning_graph_builder::add_edge(std::string_view from, std::string_view to, bytes forward,
                                                     std::optional<bytes> gradient) {
  add_edge(graph_.find(from), graph_.find(to), forward, gradient);
}

HETPLAN_INLINE planning_graph planning_graph_builder::build() && {
  if (specs_.empty()) fail("a model has at least one layer");
  renumber();
  check_passes();
  check_blocks();
  sort_by(graph_.edges_, [](const layer_edge& e) { return std::pair(e.from, e.to); });
  index_edges();
  resolve_layers();
  return std::move(graph_);
}

HETPLAN_INLINE void planning_graph_builder::require(bool ok, const std::string& what, double given, const char* expected) const {
  if (!ok) fail(what + " = " + to_text(given) + "; expected " + expected);
}

HETPLAN_INLINE void planning_graph_builder::check(const layer_spec& s) const {
  if (s.name.empty()) fail("a layer has an empty name");
  const std::string where = "layer \"" + s.name + "\" ";
  if (!s.forward_flops && s.profiles.empty()) fail(where + "needs forward_flops or a profile");
  if (s.forward_flops) require_amount(*s.forward_flops, where + "forward_flops");
  if (s.backward_input_flops) require_amount(*s.backward_input_flops, where + "backward_input_flops");
  if (s.backward_weight_flops) require_amount(*s.backward_weight_flops, where + "backward_weight_flops");
  require_amount(s.weight, where + "weight");
  if (s.weight_traffic) require_amount(*s.weight_traffic, where + "weight_traffic");
  require_amount(s.activation, where + "activation");
  if (s.forward_activation) require_amount(*s.forward_activation, where + "forward_activation");
  if (const auto part = s.activation_for_weights) {
    require_amount(*part, where + "activation_for_weights");
    require(*part <= s.activation, where + "activation_for_weights", part->value(), "at most the layer's activation");
  }
  if (s.traffic) require_amount(*s.traffic, where + "traffic");
  if (s.backward_traffic) require_amount(*s.backward_traffic, where + "backward_traffic");
  require_amount(s.kv_bytes_per_token, where + "kv_bytes_per_token");
  if (s.split == layer_split::along && s.weight > bytes{}) fail(where + "is split along others; expected a layer without weights");
  require(s.split_units >= 0, where + "units", s.split_units, "an integer >= 0");
  require(s.calls >= 0, where + "calls", s.calls, "an integer >= 0");
  if (s.rows) require(std::isfinite(*s.rows) && *s.rows > 0, where + "rows", *s.rows, "a finite number > 0");
  require_amount(s.workspace, where + "workspace");
  require_amount(s.scratch, where + "scratch");
  require_amount(s.forward_workspace, where + "forward_workspace");
  if (s.block) require(*s.block >= 0, where + "block", *s.block, "an integer >= 0");
  for (const int g : s.degrees) require(g >= 1, where + "degrees", g, "integers >= 1");
  check_sequence(s, where);
  key_index kinds;
  for (const layer_profile& p : s.profiles) {
    if (!kinds.insert(parts_of(p.device_kind))) fail(where + "profile \"" + p.device_kind + "\" appears twice");
    check(p, where);
  }
}

HETPLAN_INLINE void planning_graph_builder::check_sequence(const layer_spec& s, const std::string& where) const {
  const token_work& w = s.sequence;
  require_amount(w.attention_flops, where + "attention_flops");
  require_amount(w.attention_traffic, where + "attention_traffic");
  if (w.window) require(*w.window >= 1, where + "window", *w.window, "an integer >= 1");
  if (const auto& e = w.experts) {
    require(e->total >= 1, where + "experts.total", e->total, "an integer >= 1");
    require(e->active >= 1 && e->active <= e->total, where + "experts.active", e->active, "an integer from 1 to experts.total");
    require_amount(e->weight, where + "experts.weight");
    require(e->weight <= s.weight, where + "experts.weight", e->weight.value(), "at most the layer's weight");
    require(e->weight <= s.weight_traffic.value_or(s.weight), where + "experts.weight", e->weight.value(),
            "at most the layer's weight_traffic");
  }
  if (w.per == layer_scope::request) {
    const char* given = w.last_token                      ? "last_token"
                        : w.window                        ? "window"
                        : w.attention != attention_kind{} ? "attention"
                        : w.attention_flops > flops{}     ? "attention_flops"
                        : w.attention_traffic > bytes{}   ? "attention_traffic"
                        : s.kv_bytes_per_token > bytes{}  ? "kv_bytes_per_token"
                                                          : nullptr;
    if (given != nullptr) fail(where + "runs per request and has " + given + "; expected neither attention, cache nor last_token");
  }
  // Amounts belong to the tokens of a sample, so attention over these is a part of the layer's FLOP.
  constexpr double rounding = 1e-9;
  const double whole = s.forward_flops.value_or(flops{}).value();
  const double pairs = w.attention_flops.value() * w.pairs(graph_.facts_.tokens_per_sample, 0);
  require(pairs <= whole * (1 + rounding), where + "attention_flops", w.attention_flops.value(),
          "so many that those of a sample's pairs are at most forward_flops");
}

HETPLAN_INLINE void planning_graph_builder::check_passes() const {
  for (const layer_edge& e : graph_.edges_) {
    const layer_spec &from = specs_[e.from.index()], &to = specs_[e.to.index()];
    const std::string where = "edge \"" + from.name + "\" -> \"" + to.name + "\": ";
    if (to.sequence.per == layer_scope::request && from.sequence.per != layer_scope::request)
      fail(where + "layer \"" + to.name + "\" runs per request; expected per request before it, too");
    if (from.sequence.last_token && !to.sequence.last_token)
      fail(where + "layer \"" + from.name + "\" computes the last token only; expected last_token behind it, too");
  }
}

HETPLAN_INLINE void planning_graph_builder::check_blocks() const {
  keyed<std::size_t> last;  // layer of a block that was seen last
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    const layer_spec& s = specs_[i];
    if (!s.block) continue;
    if (const std::size_t* before = last.find({*s.block}); before != nullptr && *before + 1 < i)
      fail("layer \"" + specs_[*before + 1].name + "\" is between layers \"" + specs_[*before].name + "\" and \"" + s.name +
           "\" of block " + std::to_string(*s.block) + "; expected layers of a block that follow each other");
    last[{*s.block}] = i;
  }
}

HETPLAN_INLINE void planning_graph_builder::check(const layer_profile& p, const std::string& where) const {
  const std::string at = where + "profile \"" + p.device_kind + "\" ";
  if (p.batch.empty()) fail(at + "has no entry");
  if (p.forward_s.size() != p.batch.size()) fail(at + "forward has another length than batch");
  if (!p.backward_s.empty() && p.backward_s.size() != p.batch.size()) fail(at + "backward has another length than batch");
  for (std::size_t i = 0; i < p.batch.size(); ++i) {
    require(std::isfinite(p.batch[i]) && p.batch[i] >= 1, at + "batch", p.batch[i], "a number >= 1");
    if (i > 0) require(p.batch[i] > p.batch[i - 1], at + "batch", p.batch[i], "ascending sizes");
  }
  for (const double t : p.forward_s) require(std::isfinite(t) && t >= 0, at + "forward", t, "finite seconds >= 0");
  for (const double t : p.backward_s) require(std::isfinite(t) && t >= 0, at + "backward", t, "finite seconds >= 0");
}

HETPLAN_INLINE void planning_graph_builder::renumber() {
  auto& edges = graph_.edges_;
  if (std::all_of(edges.begin(), edges.end(), [](const layer_edge& e) { return e.from < e.to; })) return;

  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (const layer_edge& e : edges) pairs.emplace_back(e.from.index(), e.to.index());
  const std::vector<std::size_t> order = topological_order(specs_.size(), pairs);
  if (order.size() < specs_.size()) {
    const auto [from, to] = edge_on_cycle(specs_.size(), pairs, order);
    fail("edge \"" + specs_[from].name + "\" -> \"" + specs_[to].name + "\" is on a cycle");
  }
  std::vector<layer_id> position(specs_.size());
  std::vector<layer_spec> ordered(specs_.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    position[order[i]] = layer_id(i);
    ordered[i] = std::move(specs_[order[i]]);
  }
  specs_ = std::move(ordered);
  for (layer_edge& e : edges) e = {position[e.from.index()], position[e.to.index()], e.forward, e.gradient};
  for (layer_id& id : graph_.by_name_.values()) id = position[id.index()];
}

HETPLAN_INLINE void planning_graph_builder::index_edges() {
  const std::size_t n = specs_.size();
  auto& edges = graph_.edges_;
  graph_.first_out_.assign(n + 1, 0);
  graph_.first_in_.assign(n + 1, 0);
  for (const layer_edge& e : edges) {
    ++graph_.first_out_[e.from.index() + 1];
    ++graph_.first_in_[e.to.index() + 1];
  }
  std::partial_sum(graph_.first_out_.begin(), graph_.first_out_.end(), graph_.first_out_.begin());
  std::partial_sum(graph_.first_in_.begin(), graph_.first_in_.end(), graph_.first_in_.begin());
  graph_.in_.resize(edges.size());
  auto next = graph_.first_in_;
  for (std::size_t i = 0; i < edges.size(); ++i) graph_.in_[next[edges[i].to.index()]++] = static_cast<std::uint32_t>(i);
}

HETPLAN_INLINE void planning_graph_builder::resolve_layers() {
  graph_.layers_.reserve(specs_.size());
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    layer_spec& s = specs_[i];
    const layer_id id(i);
    bytes in, largest_out;
    for (const std::uint32_t e : graph_.in_edges(id)) in += graph_.edges_[e].forward;
    for (const layer_edge& e : graph_.out_edges(id)) largest_out = std::max(largest_out, e.forward);
    const flops forward = s.forward_flops.value_or(flops{});
    const flops backward = s.backward_input_flops.value_or(forward);
    const bytes traffic = s.traffic.value_or(in + largest_out);
    const bool learns = s.trainable && s.weight > bytes{};
    const layer_split by_default = s.weight > bytes{} ? layer_split::rows : layer_split::none;
    const std::int32_t group = group_of(s, id);
    const model_facts& facts = graph_.facts_;
    const int tokens = s.sequence.per == layer_scope::request ? 1 : facts.tokens_per_sample;
    graph_.layers_.push_back({.id = id,
                              .name = std::move(s.name),
                              .kind = std::move(s.kind),
                              .forward_flops = forward,
                              .backward_input_flops = backward,
                              .backward_weight_flops = s.backward_weight_flops.value_or(learns ? forward : flops{}),
                              .weight = s.weight,
                              .trainable = s.trainable,
                              .weight_traffic = s.weight_traffic.value_or(s.weight),
                              .weight_group = group,
                              .activation = s.activation,
                              .forward_activation = s.forward_activation.value_or(s.activation),
                              .activation_for_weights = s.activation_for_weights.value_or(s.activation),
                              .traffic = traffic,
                              .backward_traffic = s.backward_traffic.value_or(backward > flops{} ? traffic : bytes{}),
                              .largest_output = largest_out,
                              .kv_bytes_per_token = s.kv_bytes_per_token,
                              .split = s.split.value_or(by_default),
                              .split_units = s.split_units,
                              .has_flops = s.forward_flops.has_value(),
                              .profiles = std::move(s.profiles),
                              .sequence = s.sequence,
                              .degrees = std::move(s.degrees),
                              .calls = s.calls,
                              .rows = s.rows.value_or(tokens),
                              .workspace = s.workspace,
                              .scratch = s.scratch,
                              .forward_workspace = s.forward_workspace,
                              .block = s.block.value_or(-1),
                              .tokens_per_sample = tokens,
                              .bytes_per_parameter = facts.bytes_per_parameter,
                              .precision = facts.precision.value_or(facts.bytes_per_parameter >= 4 ? precision::fp32 : precision::bf16),
                              .weight_format = facts.weight_format});
  }
}

HETPLAN_INLINE std::int32_t planning_graph_builder::group_of(const layer_spec& s, layer_id id) {
  if (s.weight_group.empty()) return -1;
  const std::size_t group = groups_.number(parts_of(s.weight_group));
  const auto index = static_cast<std::int32_t>(group);
  if (group == graph_.weight_groups_.size()) {
    graph_.weight_groups_.push_back(s.weight_group);
    group_head_.push_back(id);
    return index;
  }
  const layer& head = graph_.layers_[group_head_[group].index()];
  if (head.weight != s.weight || head.trainable != s.trainable) {
    fail("layers \"" + head.name + "\" and \"" + s.name + "\" share weight_group \"" + s.weight_group +
         "\" but differ in weight or trainable");
  }
  return index;
}

HETPLAN_INLINE layer_spec spec_of(const planning_graph& g, const layer& l) {
  return {.name = l.name,
          .kind = l.kind,
          .forward_flops = l.has_flops ? std::optional(l.forward_flops) : std::nullopt,
          .backward_input_flops = l.backward_input_flops,
          .backward_weight_flops = l.backward_weight_flops,
          .weight = l.weight,
          .trainable = l.trainable,
          .weight_traffic = l.weight_traffic,
          .weight_group = l.weight_group < 0 ? "" : g.weight_groups()[static_cast<std::size_t>(l.weight_group)],
          .activation = l.activation,
          .forward_activation = l.forward_activation,
          .activation_for_weights = l.activation_for_weights,
          .traffic = l.traffic,
          .backward_traffic = l.backward_traffic,
          .kv_bytes_per_token = l.kv_bytes_per_token,
          .split = l.split,
          .split_units = l.split_units,
          .profiles = l.profiles,
          .sequence = l.sequence,
          .degrees = l.degrees,
          .calls = l.calls,
          .rows = l.rows,
          .workspace = l.workspace,
          .scratch = l.scratch,
          .forward_workspace = l.forward_workspace,
          .block = l.block < 0 ? std::nullopt : std::optional<int>(l.block)};
}

}  // namespace hetplan
