// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/piper_json.hpp>

#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

#include <range/v3/range/conversion.hpp>
#include <range/v3/view/transform.hpp>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/core/error.hpp>

namespace hetplan::exchange {

namespace detail {

HETPLAN_INLINE piper_workload piper_reader::read() {
  read_.devices = top_.at("maxDevices", "an integer >= 1").integer<int>(1);
  read_.memory = bytes(top_.number("maxMemoryPerDevice", io::range::above_zero));
  read_.bandwidth = bytes_per_second(top_.number("bandwidth", io::range::above_zero));
  const auto described = top_.find("maxBatchSize");  // name in the format's description; files say mbsInBatch
  read_.microbatches = (described ? *described : top_.at("mbsInBatch", "an integer >= 1")).integer<int>(1);
  const io::json_node nodes = top_.at("nodes", "an array of nodes");
  for (const io::json_node n : nodes.elements("at least one node", 1)) number(n);
  std::size_t i = 0;
  for (const io::json_node n : nodes.elements("at least one node", 1)) read_configurations(n, read_.nodes[i++]);
  for (const io::json_node n : top_.at("edges", "an array of edges").elements("an array of edges")) read_edge(n);
  check_cycles();
  return std::move(read_);
}

HETPLAN_INLINE void piper_reader::number(const io::json_node& n) {
  const foreign_object o(n, "a node");
  const io::json_node id = o.at("id", "an integer");
  piper_node node{id.integer<std::int64_t>(std::numeric_limits<std::int64_t>::min()), "", {}};
  if (const auto name = o.find("name")) node.name = name->text();
  if (!index_.emplace(node.id, read_.nodes.size()).second) id.fail("an id that no other node has");
  read_.nodes.push_back(std::move(node));
}

HETPLAN_INLINE void piper_reader::read_configurations(const io::json_node& n, piper_node& node) const {
  const io::json_node all = foreign_object(n).at("TMPCs", "an object from degree of tensor parallelism to configurations");
  for (const auto& [degree, list] : all.members("an object from degree of tensor parallelism to configurations")) {
    const auto t = number_in(degree);
    if (!t || *t < 1 || *t > 1e6 || *t != std::floor(*t)) list.fail_with("expected a degree >= 1 as key, got " + io::in_quotes(degree));
    auto& known = node.configurations[static_cast<int>(*t)];
    if (!known.empty()) list.fail_with("expected every degree once, got " + io::in_quotes(degree) + " again");
    for (const io::json_node c : list.elements("at least one configuration", 1)) {
      const foreign_object o(c, "a configuration");
      const io::json_node name = o.at("id", "a name");
      for (const piper_configuration& other : known) {
        if (other.name == name.name()) name.fail("a name that no other configuration of this degree has");
      }
      known.push_back({.name = std::string(name.name()),
                       .time = o.number("timePerSample", io::range::at_least_zero),
                       .parameters = bytes(o.number("parameterSize", io::range::at_least_zero)),
                       .memory_per_microbatch = bytes(o.number("memoryUsageA", io::range::at_least_zero)),
                       .memory_fixed = bytes(o.number("memoryUsageB", io::range::at_least_zero)),
                       .sync_forward = read_sync(o.at("syncTimeFw", "an object from node to bytes")),
                       .sync_backward = read_sync(o.at("syncTimeBw", "an object from node to bytes"))});
    }
  }
  if (node.configurations.empty()) all.fail("at least one degree");
}

HETPLAN_INLINE std::map<std::size_t, bytes> piper_reader::read_sync(const io::json_node& n) const {
  std::map<std::size_t, bytes> sync;
  for (const auto& [neighbour, cost] : n.members("an object from node to bytes")) {
    std::int64_t id = 0;
    const auto [end, code] = std::from_chars(neighbour.data(), neighbour.data() + neighbour.size(), id);
    const auto it = code == std::errc() && end == neighbour.data() + neighbour.size() ? index_.find(id) : index_.end();
    if (it == index_.end()) cost.fail_with("expected the id of a node as key, got " + io::in_quotes(neighbour));
    if (!sync.emplace(it->second, bytes(cost.number(io::range::at_least_zero))).second) {
      cost.fail_with("expected every node once, got " + io::in_quotes(neighbour) + " again");
    }
  }
  return sync;
}

HETPLAN_INLINE void piper_reader::read_edge(const io::json_node& n) {
  const foreign_object o(n, "an edge");
  const io::json_node to = o.at("destId", "the id of a node");
  const piper_edge e{find(o.at("sourceId", "the id of a node")), find(to), bytes(o.number("communicationCost", io::range::at_least_zero))};
  if (e.from == e.to) to.fail("another node than sourceId");
  if (!pairs_.emplace(e.from, e.to).second) n.fail_with("expected every edge once, got " + shown(e) + " again");
  read_.edges.push_back(e);
  places_.push_back(n);
}

HETPLAN_INLINE std::size_t piper_reader::find(const io::json_node& n) const {
  const auto it = index_.find(n.integer<std::int64_t>(std::numeric_limits<std::int64_t>::min()));
  if (it == index_.end()) n.fail("the id of a node");
  return it->second;
}

HETPLAN_INLINE std::string piper_reader::shown(const piper_edge& e) const {
  return std::to_string(read_.nodes[e.from].id) + " -> " + std::to_string(read_.nodes[e.to].id);
}

HETPLAN_INLINE void piper_reader::check_cycles() const {
  const auto ends = [](const piper_edge& e) { return std::pair(e.from, e.to); };
  const auto pairs = read_.edges | ranges::views::transform(ends) | ranges::to<std::vector>();
  if (const auto at = index_on_cycle(read_.nodes.size(), pairs)) {
    places_[*at].fail_with("expected edges without a cycle, got " + shown(read_.edges[*at]) + ", which is on one");
  }
}

HETPLAN_INLINE const piper_configuration& chosen(const piper_workload& w, const piper_node& node, const piper_choice& choice) {
  std::string offered;
  for (const auto& [degree, all] : node.configurations) {
    for (const piper_configuration& c : all) {
      if (degree == choice.tensor_parallel && c.name == choice.configuration) return c;
      offered += (offered.empty() ? "" : ", ") + io::in_quotes(c.name) + " at " + std::to_string(degree);
    }
  }
  throw invalid_input("piper_graph: " + escaped(w.name) + ": node " + std::to_string(node.id) + ": expected one of its configurations " +
                      io::shortened(offered, 400) + ", got " + io::in_quotes(choice.configuration) + " at " +
                      std::to_string(choice.tensor_parallel));
}

}  // namespace detail

HETPLAN_INLINE planning_graph piper_graph(const piper_workload& w, const piper_choice& choice) {
  const auto require = [&](bool ok, const char* what, double given, const char* expected) {
    if (!ok) throw invalid_input("piper_graph: " + std::string(what) + " = " + to_text(given) + "; expected " + expected);
  };
  require(choice.forward_share >= 0 && choice.forward_share <= 1, "forward_share", choice.forward_share, "a share from 0 to 1");
  require(is_finite(choice.time_unit) && choice.time_unit.value() > 0, "time_unit", choice.time_unit.value(), "finite seconds > 0");
  planning_graph_builder b(w.name);
  for (const piper_node& node : w.nodes) {
    const piper_configuration& c = detail::chosen(w, node, choice);
    const double time_s = c.time * choice.time_unit.value();
    layer_profile measured{choice.device_kind, {1}, {choice.forward_share * time_s}, {(1 - choice.forward_share) * time_s}};
    b.add_layer({.name = std::to_string(node.id) + (node.name.empty() ? "" : " " + node.name),
                 .kind = node.name,
                 .weight = c.parameters,
                 .activation = c.memory_per_microbatch,
                 .profiles = {proportional_beyond(std::move(measured))}});
  }
  for (const piper_edge& e : w.edges) b.add_edge(layer_id(e.from), layer_id(e.to), e.cost);
  return std::move(b).build();
}

HETPLAN_INLINE cluster piper_cluster(const piper_workload& w, const std::string& device_kind) {
  if (w.devices < 1 || static_cast<std::size_t>(w.devices) > io::max_devices) {
    throw invalid_input("piper_cluster: " + escaped(w.name) + ": devices = " + std::to_string(w.devices) + "; expected 1 to " +
                        std::to_string(io::max_devices));
  }
  std::vector<device> all;
  for (int i = 0; i < w.devices; ++i) all.push_back({.name = "device" + std::to_string(i), .kind = device_kind, .memory = w.memory});
  if (all.size() == 1) return cluster(w.name, std::move(all.front()));
  return cluster(w.name, std::move(all), star{w.bandwidth});
}

}  // namespace hetplan::exchange
