// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/dnn_partitioning_json.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/strong_components.hpp>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/exchange/foreign_model.hpp>
#include <hetplan/io/json_node.hpp>
#include <hetplan/io/json_text.hpp>
#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/stage_graph.hpp>

namespace hetplan::exchange {

HETPLAN_INLINE std::string write_placement(const plan& p, const planning_graph& model, const cluster& c) {
  if (p.pipeline_count() > 1)
    throw invalid_input("placement: expected a plan with one pipeline, got " + std::to_string(p.pipeline_count()));
  std::vector<device_id> device(model.size());
  for (const stage& s : p.stages) {
    if (const std::string more = beyond_plain(s); !more.empty())
      throw invalid_input("placement: expected every layer on one device, got stage \"" + s.name + "\", which is " + more);
    if (s.devices.size() > 1) {
      throw invalid_input("placement: expected every layer on one device, got stage \"" + s.name + "\" on " +
                          std::to_string(s.devices.size()));
    }
    if (!s.offload.empty())
      throw invalid_input("placement: expected weights in the devices' memory, got stage \"" + s.name + "\" with some in tier \"" +
                          s.offload.front().tier + "\"");
    for (const layer_id l : s.layers) device[l.index()] = s.devices.front().device;
  }
  io::json o;
  o["format"] = "hetplan/placement/1";
  o["model"] = model.name();
  o["cluster"] = c.name();
  o["placement"] = io::json::object();
  for (const layer& l : model.layers()) o["placement"][l.name] = c[device[l.id.index()]].name;
  o["order"] = io::json::object();
  const auto orders = device_orders(p, make_stage_graph(p, model), c.size());
  for (const hetplan::device& d : c.devices()) {
    if (orders[d.id.index()].empty()) continue;
    io::json& list = o["order"][d.name] = io::json::array();
    for (const order_entry& e : orders[d.id.index()]) {
      if (e.what != phase::forward || e.microbatch != 0) continue;
      for (const layer_id l : p[e.stage].layers) list.push_back(model[l].name);
    }
  }
  return io::json_text(o);
}

namespace detail {

/// Returns a member of an object that may have unknown keys.
[[nodiscard]] HETPLAN_INLINE std::optional<io::json_node> foreign_member(const io::json_node& object, std::string_view key) {
  for (const auto& [k, value] : object.members()) {
    if (k == key) return value;
  }
  return std::nullopt;
}

[[nodiscard]] HETPLAN_INLINE io::json_node required_member(const io::json_node& object, std::string_view key, std::string_view expected) {
  if (const auto found = foreign_member(object, key)) return *found;
  object.fail_missing(key, expected);
}

/// Returns a plain number >= 0: the format has no units in strings.
[[nodiscard]] HETPLAN_INLINE double plain_number(const io::json_node& object, std::string_view key) {
  return required_member(object, key, "a number >= 0").number(io::range::at_least_zero);
}

/// Returns a boolean written as `true`, `false`, 1 or 0.
[[nodiscard]] HETPLAN_INLINE bool flag(const io::json_node& object, std::string_view key) {
  const io::json_node n = required_member(object, key, "true, false, 1 or 0");
  if (!n.is_integer()) return n.boolean();
  return n.integer(0, 1) == 1;
}

[[nodiscard]] HETPLAN_INLINE io::json_node id_at(const io::json_node& object, std::string_view key) {
  return required_member(object, key, "an integer >= 0");
}

[[nodiscard]] HETPLAN_INLINE std::size_t known_operator(const io::json_node& n, const std::map<long long, std::size_t>& by_id) {
  const auto at = by_id.find(n.integer<long long>(0));
  if (at == by_id.end()) n.fail("the id of a node");
  return at->second;
}

}  // namespace detail

HETPLAN_INLINE dnn_partitioning_workload read_dnn_partitioning(const io::json_document& d) {
  const io::json_node root(d);
  dnn_partitioning_workload all;
  place::placement_workload& w = all.workload;
  w.accelerator_memory = bytes(detail::plain_number(root, "maxSizePerFPGA"));
  w.accelerators = detail::required_member(root, "maxFPGAs", "an integer >= 0").integer(0, place::max_placement_devices);
  w.cpus = detail::required_member(root, "maxCPUs", "an integer >= 0").integer(0, place::max_placement_devices);
  if (w.accelerators == 0 && w.cpus == 0) root.fail_with("expected at least one device, got maxFPGAs 0 and maxCPUs 0");
  std::map<long long, std::size_t> by_id;
  for (const io::json_node n : detail::required_member(root, "nodes", "at least one node").elements("at least one node", 1)) {
    const io::json_node id = detail::id_at(n, "id");
    all.ids.push_back(id.integer<long long>(0));
    if (!by_id.emplace(all.ids.back(), w.operators.size()).second) id.fail("every id once", " again");
    place::placed_operator& o = w.operators.emplace_back();
    if (const auto name = detail::foreign_member(n, "name")) o.name = name->text();
    o.on_accelerator = detail::flag(n, "supportedOnFpga");
    o.cpu_time = seconds(detail::plain_number(n, "cpuLatency") / 1000);
    o.accelerator_time = seconds(detail::plain_number(n, "fpgaLatency") / 1000);
    o.backward = detail::flag(n, "isBackwardNode");
    o.size = bytes(detail::plain_number(n, "size"));
    if (const auto color = detail::foreign_member(n, "colorClass")) o.color = color->integer<long long>(0);
  }
  const io::json_node edges = detail::required_member(root, "edges", "edges");
  std::vector<std::optional<double>> cost(w.operators.size());
  for (const io::json_node e : edges.elements("edges")) {
    const std::size_t from = detail::known_operator(detail::id_at(e, "sourceId"), by_id);
    const std::size_t to = detail::known_operator(detail::id_at(e, "destId"), by_id);
    const double cost_ms = detail::plain_number(e, "cost");
    if (cost[from].value_or(cost_ms) != cost_ms) {
      e.fail_with("expected cost " + to_text(*cost[from]) + " as of another edge from " + std::to_string(all.ids[from]) + ", got " +
                  to_text(cost_ms));
    }
    if (w.operators[from].backward && !w.operators[to].backward) e.fail_with("expected no edge from a backward to a forward node");
    cost[from] = cost_ms;
    w.operators[from].transfer = seconds(cost_ms / 1000);
    w.edges.emplace_back(from, to);
  }
  if (const auto order = topological_order(w.operators.size(), w.edges); order.size() < w.operators.size()) {
    const auto [from, to] = edge_on_cycle(w.operators.size(), w.edges, order);
    edges.fail_with("expected no cycle, got one through " + std::to_string(all.ids[from]) + " -> " + std::to_string(all.ids[to]));
  }
  return all;
}

HETPLAN_INLINE std::vector<std::size_t> read_dnn_partitioning_split(const io::json_document& d, const dnn_partitioning_workload& of) {
  const io::json_node root(d);
  const place::placement_workload& w = of.workload;
  std::map<long long, std::size_t> by_id;
  for (std::size_t i = 0; i < of.ids.size(); ++i) by_id.emplace(of.ids[i], i);
  std::vector<std::optional<std::size_t>> device(w.operators.size());
  std::map<long long, std::size_t> device_of_color;
  std::size_t first = 0;
  for (const auto& [key, count] : {std::pair{"fpgas", w.accelerators}, std::pair{"cpus", w.cpus}}) {
    std::size_t next = 0;
    for (const io::json_node list : detail::required_member(root, key, "a list of devices").elements("a list of devices")) {
      const auto nodes = detail::required_member(list, "nodes", "a list of ids").elements("a list of ids");
      if (next == static_cast<std::size_t>(count) && nodes.begin() != nodes.end())
        list.fail_with("expected at most " + std::to_string(count) + " " + key + ", got one more");
      for (const io::json_node n : nodes) {
        const std::size_t i = detail::known_operator(n, by_id);
        if (device[i]) n.fail("every node once", " again");
        device[i] = first + next;
        if (w.operators[i].color) device_of_color.emplace(*w.operators[i].color, *device[i]);
      }
      if (next < static_cast<std::size_t>(count)) ++next;
    }
    first += static_cast<std::size_t>(count);
  }
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < device.size(); ++i) {
    if (!device[i] && w.operators[i].color && device_of_color.contains(*w.operators[i].color))
      device[i] = device_of_color[*w.operators[i].color];
    if (!device[i]) root.fail_with("expected every node on a device, got none for " + std::to_string(of.ids[i]));
    all.push_back(*device[i]);
  }
  return all;
}

namespace detail {

/// Returns the layer of each operator, numbered by first operators: colors are joined, then circles of forward edges and backward edges
/// turned round.
[[nodiscard]] HETPLAN_INLINE std::vector<std::size_t> training_layers(const place::placement_workload& w) {
  std::vector<std::size_t> label(w.operators.size());
  std::iota(label.begin(), label.end(), std::size_t{0});
  std::map<long long, std::size_t> first;
  for (std::size_t i = 0; i < label.size(); ++i) {
    if (const auto color = w.operators[i].color) label[i] = first.emplace(*color, i).first->second;
  }
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  for (const auto& [from, to] : w.edges) {
    if (w.operators[from].backward == w.operators[to].backward && label[from] != label[to])
      edges.push_back(w.operators[from].backward ? std::pair(label[to], label[from]) : std::pair(label[from], label[to]));
  }
  std::sort(edges.begin(), edges.end());
  const boost::compressed_sparse_row_graph<boost::directedS> g(boost::edges_are_sorted, edges.begin(), edges.end(), label.size());
  std::vector<std::size_t> component(label.size());
  boost::strong_components(g, boost::make_iterator_property_map(component.begin(), boost::get(boost::vertex_index, g)));
  std::map<std::size_t, std::size_t> number;
  for (std::size_t& l : label) l = number.emplace(component[l], number.size()).first->second;
  return label;
}

}  // namespace detail

HETPLAN_INLINE dnn_partitioning_model dnn_partitioning_training(const dnn_partitioning_workload& all, const std::string& name) {
  const place::placement_workload& w = all.workload;
  for (std::size_t i = 0; i < w.operators.size(); ++i) {
    if (!w.operators[i].on_accelerator && w.accelerators > 0)
      throw invalid_input("model \"" + name + "\": node " + std::to_string(all.ids[i]) +
                          " cannot run on an accelerator; a profile cannot say that");
  }
  const auto accelerators = static_cast<std::size_t>(w.accelerators), count = accelerators + static_cast<std::size_t>(w.cpus);
  constexpr std::size_t most_devices = 1000;  // as in cluster files
  if (count > most_devices) {
    throw invalid_input("model \"" + name + "\": expected at most " + std::to_string(most_devices) + " devices, got " +
                        std::to_string(count));
  }
  const std::vector<std::size_t> label = detail::training_layers(w);
  const std::size_t n = *std::max_element(label.begin(), label.end()) + 1;
  std::vector<layer_spec> layers(n);
  std::vector<std::array<double, 4>> times(n);  // accelerator and cpu, forward and backward
  for (std::size_t i = 0; i < label.size(); ++i) {
    const place::placed_operator& o = w.operators[i];
    layer_spec& l = layers[label[i]];
    if (l.name.empty()) l.name = std::to_string(all.ids[i]) + (o.name.empty() ? "" : " " + o.name);
    l.weight += o.size;
    times[label[i]][o.backward ? 1 : 0] += o.accelerator_time.value();
    times[label[i]][o.backward ? 3 : 2] += o.cpu_time.value();
  }
  std::vector<std::pair<std::size_t, std::size_t>> order;  // of layers
  for (const auto& [from, to] : w.edges) {
    const std::size_t a = label[from], b = label[to];
    if (a != b && w.operators[from].backward == w.operators[to].backward)
      order.push_back(w.operators[from].backward ? std::pair(b, a) : std::pair(a, b));
  }
  std::vector<std::size_t> place(n);
  {
    const std::vector<std::size_t> sorted = topological_order(n, order);
    for (std::size_t i = 0; i < n; ++i) place[sorted[i]] = i;
  }
  // Seconds by pair of layers, forward and back; a tensor counts once for each layer that reads it.
  std::map<std::pair<std::size_t, std::size_t>, std::array<double, 2>> carried;
  std::set<std::pair<std::size_t, std::size_t>> counted;
  for (const auto& [from, to] : w.edges) {
    const std::size_t a = label[from], b = label[to];
    if (a == b) continue;
    const bool back = w.operators[from].backward || place[a] > place[b];
    auto& seconds = carried[back ? std::pair(b, a) : std::pair(a, b)];
    if (counted.emplace(from, b).second) seconds[back ? 1 : 0] += w.operators[from].transfer.value();
  }
  constexpr double link = 1e9;
  planning_graph_builder model(name);
  for (std::size_t l = 0; l < n; ++l) {
    layers[l].kind = "operator";
    layers[l].trainable = false;
    for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
      if ((k == 0 ? w.accelerators : w.cpus) == 0) continue;
      layers[l].profiles.push_back(proportional_beyond({.device_kind = k == 0 ? "accelerator" : "cpu",
                                                        .batch = {1},
                                                        .forward_s = {times[l][2 * k]},
                                                        .backward_s = {times[l][2 * k + 1]}}));
    }
    model.add_layer(std::move(layers[l]));
  }
  for (const auto& [ends, seconds] : carried)
    model.add_edge(layer_id(ends.first), layer_id(ends.second), bytes(seconds[0] * link), bytes(seconds[1] * link));

  bytes held;
  for (const place::placed_operator& o : w.operators) held += o.size;
  std::vector<device> devices;
  route_table net;
  for (std::size_t d = 0; d < count; ++d) {
    const bool accelerator = d < accelerators;
    const std::string kind = accelerator ? "accelerator" : "cpu";
    devices.push_back({.name = kind + std::to_string(accelerator ? d : d - accelerators),
                       .kind = kind,
                       .memory = accelerator ? std::max(bytes(1), w.accelerator_memory) : std::max(bytes(1), held)});
    if (!accelerator) continue;
    for (const char* way : {" out", " in"}) net.listed.push_back({devices.back().name + way, bytes_per_second(link)});
  }
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = 0; b < count; ++b) {
      if (a == b) continue;
      route r;
      if (a < accelerators) r.via.push_back({resource_id(2 * a), 1});
      if (b < accelerators) r.via.push_back({resource_id(2 * b + 1), 1});
      net.rules.push_back({devices[a].name, devices[b].name, std::move(r)});
    }
  }
  cluster c = count > 1 ? cluster(name, std::move(devices), net) : cluster(name, std::move(devices.front()));
  return {std::move(model).build(), std::move(c)};
}

}  // namespace hetplan::exchange
