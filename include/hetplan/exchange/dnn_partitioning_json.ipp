// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/dnn_partitioning_json.hpp>

#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <hetplan/core/error.hpp>
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

}  // namespace hetplan::exchange
