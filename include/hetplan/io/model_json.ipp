// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/model_json.hpp>

#include <utility>

namespace hetplan::io {

namespace detail {

inline constexpr std::array<std::pair<std::string_view, layer_split>, 4> layer_splits{
    {{"none", layer_split::none}, {"rows", layer_split::rows}, {"columns", layer_split::columns}, {"along", layer_split::along}}};

inline constexpr std::array<std::pair<std::string_view, layer_scope>, 2> layer_scopes{
    {{"token", layer_scope::token}, {"request", layer_scope::request}}};
inline constexpr std::array<std::pair<std::string_view, attention_kind>, 2> attention_kinds{
    {{"causal", attention_kind::causal}, {"full", attention_kind::full}}};

HETPLAN_INLINE model_reader::model_reader(const json_document& d)
    : top_(open_document(d, model_format, keys::model)), builder_(std::string(top_.at("name", "text").text()), facts()) {}

HETPLAN_INLINE planning_graph model_reader::read() {
  const json_node layers = top_.at("layers", "an array of layers");
  for (const json_node n : layers.elements("at least one layer", 1)) read_layer(n);
  if (const auto edges = top_.find("edges")) {
    for (const json_node n : edges->elements("an array of edges")) read_edge(n);
  }
  try {
    return std::move(builder_).build();
  } catch (const invalid_input& e) {
    fail_on_cycle();
    top_.node().fail_with(shortened(e.what(), 400));
  }
}

HETPLAN_INLINE model_facts model_reader::facts() const {
  model_facts f{.bytes_per_parameter = top_.amount<bytes>("bytes_per_parameter", range::above_zero).value_or(bytes(4)).value(),
                .tokens_per_sample = top_.integer_or("tokens_per_sample", 1, 1)};
  if (const auto n = top_.find("precision")) f.precision = n->one_of(precisions);
  if (const auto n = top_.find("weight_format")) f.weight_format = n->name("the name of a weight format");
  return f;
}

HETPLAN_INLINE void model_reader::read_layer(const json_node& n) {
  const json_object o(n, keys::layer, "a layer");
  layer_spec s;
  const json_node name = o.at("name", "a name");
  s.name = name.name();
  if (const auto kind = o.find("kind")) s.kind = kind->text();
  s.forward_flops = o.amount<flops>("forward_flops", range::at_least_zero);
  s.backward_input_flops = o.amount<flops>("backward_input_flops", range::at_least_zero);
  s.backward_weight_flops = o.amount<flops>("backward_weight_flops", range::at_least_zero);
  s.weight = o.amount<bytes>("weight", range::at_least_zero).value_or(bytes{});
  if (const auto trainable = o.find("trainable")) s.trainable = trainable->boolean();
  s.weight_traffic = o.amount<bytes>("weight_traffic", range::at_least_zero);
  s.activation = o.amount<bytes>("activation", range::at_least_zero).value_or(bytes{});
  s.forward_activation = o.amount<bytes>("forward_activation", range::at_least_zero);
  s.activation_for_weights = o.amount<bytes>("activation_for_weights", range::at_least_zero);
  if (s.activation_for_weights && *s.activation_for_weights > s.activation) {
    o.find("activation_for_weights")->fail("bytes up to the activation, " + to_text(s.activation.value()));
  }
  s.traffic = o.amount<bytes>("traffic", range::at_least_zero);
  s.backward_traffic = o.amount<bytes>("backward_traffic", range::at_least_zero);
  s.kv_bytes_per_token = o.amount<bytes>("kv_bytes_per_token", range::at_least_zero).value_or(bytes{});
  // Older files have booleans: true for rows.
  if (const auto split = o.find("split"))
    s.split = !split->is_boolean() ? split->one_of(layer_splits) : split->boolean() ? layer_split::rows : layer_split::none;
  if (s.split == layer_split::along && s.weight > bytes{}) o.find("split")->fail_with("expected \"along\" for layers without weights only");
  s.split_units = o.integer_or("units", 1, 0);
  read_sequence(o, s);
  if (const auto profile = o.find("profile")) read_profiles(*profile, s);
  if (!s.forward_flops && s.profiles.empty()) n.fail_missing("forward_flops", "FLOP >= 0, or a profile");
  if (const auto group = o.find("weight_group")) {
    s.weight_group = group->name("the name of a group");
    check_group(*group, s);
  }
  const auto [known, fresh] = ids_.emplace(name.text(), layer_id(ids_.size()));
  if (!fresh) name.fail("a name that no other layer has");
  at_node(n, [&] { return builder_.add_layer(std::move(s)); });
}

HETPLAN_INLINE void model_reader::read_sequence(const json_object& o, layer_spec& s) {
  token_work& w = s.sequence;
  w.per = o.one_of("per", layer_scopes, std::optional(layer_scope::token));
  w.attention_flops = o.amount<flops>("attention_flops", range::at_least_zero).value_or(flops{});
  w.attention = o.one_of("attention", attention_kinds, std::optional(attention_kind::causal));
  if (const auto window = o.find("window")) w.window = window->integer(1);
  if (const auto last = o.find("last_token")) w.last_token = last->boolean();
  if (const auto experts = o.find("experts")) read_experts(*experts, s);
  w.attention_traffic = o.amount<bytes>("attention_traffic", range::at_least_zero).value_or(bytes{});
  if (const auto degrees = o.find("degrees")) {
    for (const json_node n : degrees->elements("an array with at least one degree", 1)) s.degrees.push_back(n.integer(1));
  }
  s.calls = o.integer_or("calls", 0, 1);
  if (const auto rows = o.find("rows")) s.rows = rows->number(range::above_zero);
  s.workspace = o.amount<bytes>("workspace", range::at_least_zero).value_or(bytes{});
  s.scratch = o.amount<bytes>("scratch", range::at_least_zero).value_or(bytes{});
  s.forward_workspace = o.amount<bytes>("forward_workspace", range::at_least_zero).value_or(bytes{});
  if (const auto block = o.find("block")) s.block = block->integer(0);
}

HETPLAN_INLINE void model_reader::read_experts(const json_node& n, layer_spec& s) {
  const json_object o(n, keys::experts, "an object with total, active, weight");
  expert_weights e{.total = o.required_integer("total", 1), .active = o.required_integer("active", 1)};
  e.weight = o.required_amount<bytes>("weight", range::at_least_zero);
  if (e.active > e.total) o.find("active")->fail("an integer up to total, " + std::to_string(e.total));
  if (e.weight > s.weight) o.find("weight")->fail("bytes up to the layer's weight, " + to_text(s.weight.value()));
  if (s.weight_traffic && e.weight > *s.weight_traffic)
    o.find("weight")->fail("bytes up to the layer's weight_traffic, " + to_text(s.weight_traffic->value()));
  s.sequence.experts = e;
}

HETPLAN_INLINE void model_reader::check_group(const json_node& n, const layer_spec& s) {
  const auto [it, fresh] = weight_groups_.emplace(s.weight_group, shared_tensor{s.name, s.weight, s.trainable});
  if (fresh || (it->second.weight == s.weight && it->second.trainable == s.trainable)) return;
  n.fail_with("expected the same weight and trainable as layer " + in_quotes(it->second.layer) + " of group " + in_quotes(s.weight_group) +
              ", got weight " + to_text(s.weight.value()) + (s.trainable ? "" : ", not trainable"));
}

HETPLAN_INLINE void model_reader::read_profiles(const json_node& n, layer_spec& s) {
  for (const auto& [kind, value] : n.members("an object from device kind to profile")) {
    const json_object o(value, keys::profile, "a profile");
    layer_profile p{std::string(kind), {}, {}, {}};
    for (const json_node b : o.at("batch", "an array of batch sizes").elements("at least one batch size", 1)) {
      p.batch.push_back(b.number(range::any));
      if (p.batch.back() < 1) b.fail("a batch size >= 1");
      if (p.batch.size() > 1 && p.batch.back() <= p.batch[p.batch.size() - 2]) b.fail("ascending batch sizes");
    }
    p.forward_s = read_times(o.at("forward", "an array of seconds"), p.batch.size());
    if (const auto backward = o.find("backward")) p.backward_s = read_times(*backward, p.batch.size());
    s.profiles.push_back(std::move(p));
  }
  if (s.profiles.empty()) n.fail("at least one device kind");
}

HETPLAN_INLINE std::vector<double> model_reader::read_times(const json_node& n, std::size_t count) {
  std::vector<double> times;
  for (const json_node t : n.elements("an array of seconds")) times.push_back(t.amount<seconds>(range::at_least_zero).value());
  if (times.size() != count) {
    n.fail_with("expected one entry per batch size (" + std::to_string(count) + "), got " + std::to_string(times.size()));
  }
  return times;
}

HETPLAN_INLINE void model_reader::read_edge(const json_node& n) {
  const json_object o(n, keys::edge, "an edge");
  const layer_id from = find_layer(o.at("from", "the name of a layer")), to = find_layer(o.at("to", "the name of a layer"));
  const bytes forward = o.required_amount<bytes>("bytes", range::at_least_zero);
  const auto gradient = o.amount<bytes>("gradient", range::at_least_zero);
  if (from == to) o.at("to", "").fail("another layer than from");
  at_node(n, [&] { builder_.add_edge(from, to, forward, gradient); });
  edges_.push_back({n, from, to});
}

HETPLAN_INLINE layer_id model_reader::find_layer(const json_node& n) const {
  const auto it = ids_.find(n.text("the name of a layer"));
  if (it != ids_.end()) return it->second;
  std::vector<std::string_view> known;
  for (const auto& [name, id] : ids_) known.push_back(name);
  std::sort(known.begin(), known.end());
  n.fail("the name of a layer", suggestion(n.text(), known));
}

HETPLAN_INLINE void model_reader::fail_on_cycle() const {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (const listed_edge& e : edges_) pairs.emplace_back(e.from.index(), e.to.index());
  const std::vector<std::size_t> order = topological_order(ids_.size(), pairs);
  if (order.size() == ids_.size()) return;
  const auto at = std::find(pairs.begin(), pairs.end(), edge_on_cycle(ids_.size(), pairs, order)) - pairs.begin();
  const json_node& node = edges_[static_cast<std::size_t>(at)].node;
  const json_object edge(node, keys::edge);
  node.fail_with("expected edges without a cycle, got " + in_quotes(edge.at("from", "").text()) + " -> " +
                 in_quotes(edge.at("to", "").text()) + ", which is on one");
}

HETPLAN_INLINE json write_profile(const layer_profile& p) {
  json o;
  const auto list = [&](const char* key, const std::vector<double>& values) {
    for (const double v : values) o[key].push_back(json_number(v));
  };
  list("batch", p.batch);
  list("forward", p.forward_s);
  if (!p.backward_s.empty()) list("backward", p.backward_s);
  return o;
}

HETPLAN_INLINE json write_layer(const planning_graph& g, const layer& l) {
  bytes in;
  for (const std::uint32_t e : g.in_edges(l.id)) in += g.edges()[e].forward;
  const bool learns = l.trainable && l.weight > bytes{};
  json o;
  o["name"] = l.name;
  put_unless(o, "kind", l.kind, std::string());
  if (l.has_flops) put(o, "forward_flops", l.forward_flops);
  put_unless(o, "backward_input_flops", l.backward_input_flops, l.forward_flops);
  put_unless(o, "backward_weight_flops", l.backward_weight_flops, learns ? l.forward_flops : flops{});
  put_unless(o, "weight", l.weight, bytes{});
  if (!l.trainable) o["trainable"] = false;
  put_unless(o, "weight_traffic", l.weight_traffic, l.weight);
  if (l.weight_group >= 0) o["weight_group"] = g.weight_groups()[static_cast<std::size_t>(l.weight_group)];
  put_unless(o, "activation", l.activation, bytes{});
  put_unless(o, "forward_activation", l.forward_activation, l.activation);
  put_unless(o, "activation_for_weights", l.activation_for_weights, l.activation);
  put_unless(o, "traffic", l.traffic, in + l.largest_output);
  put_unless(o, "backward_traffic", l.backward_traffic, l.backward_input_flops > flops{} ? l.traffic : bytes{});
  put_unless(o, "kv_bytes_per_token", l.kv_bytes_per_token, bytes{});
  if (l.split != (l.weight > bytes{} ? layer_split::rows : layer_split::none)) o["split"] = to_string(l.split);
  if (l.split_units > 0) o["units"] = l.split_units;
  const token_work& w = l.sequence;
  if (w.per == layer_scope::request) o["per"] = "request";
  put_unless(o, "attention_flops", w.attention_flops, flops{});
  if (w.attention == attention_kind::full) o["attention"] = "full";
  if (w.window) o["window"] = *w.window;
  if (w.last_token) o["last_token"] = true;
  if (w.experts) {
    json& e = o["experts"];
    e["total"] = w.experts->total;
    e["active"] = w.experts->active;
    put(e, "weight", w.experts->weight);
  }
  if (!l.degrees.empty()) o["degrees"] = l.degrees;
  put_unless(o, "attention_traffic", w.attention_traffic, bytes{});
  if (l.calls != 1) o["calls"] = l.calls;
  put_unless(o, "rows", l.rows, static_cast<double>(l.tokens_per_sample));
  put_unless(o, "workspace", l.workspace, bytes{});
  put_unless(o, "scratch", l.scratch, bytes{});
  put_unless(o, "forward_workspace", l.forward_workspace, bytes{});
  if (l.block >= 0) o["block"] = l.block;
  for (const layer_profile& p : l.profiles) o["profile"][p.device_kind] = write_profile(p);
  return o;
}

HETPLAN_INLINE json model_json(const planning_graph& g) {
  json o;
  o["format"] = model_format;
  o["name"] = g.name();
  put_unless(o, "bytes_per_parameter", g.bytes_per_parameter(), 4.0);
  if (g.tokens_per_sample() != 1) o["tokens_per_sample"] = g.tokens_per_sample();
  if (g.facts().precision) o["precision"] = to_string(*g.facts().precision);
  if (!g.facts().weight_format.empty()) o["weight_format"] = g.facts().weight_format;
  o["layers"] = json::array();
  for (const layer& l : g.layers()) o["layers"].push_back(write_layer(g, l));
  if (g.edges().empty()) return o;
  o["edges"] = json::array();
  for (const layer_edge& e : g.edges()) {
    json x;
    x["from"] = g[e.from].name;
    x["to"] = g[e.to].name;
    put(x, "bytes", e.forward);
    put_unless(x, "gradient", e.gradient, e.forward);
    o["edges"].push_back(std::move(x));
  }
  return o;
}

}  // namespace detail

HETPLAN_INLINE std::string describe_model(const planning_graph& g) {
  json o = detail::model_json(g);
  put(o, "parameters", g.parameters());
  put(o, "forward_flops", g.forward_flops());
  return json_text(o);
}

}  // namespace hetplan::io
