// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Piper's profiled models: a file's content, and planning graph and cluster from it.

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cluster/topology.hpp>
#include <hetplan/graph/planning_graph_builder.hpp>
#include <hetplan/io/cluster_json.hpp>
#include <hetplan/io/foreign_model.hpp>

namespace hetplan::io {

/// One way to run a layer at one degree of tensor parallelism: Piper's TMPC. With m microbatches under way a layer takes
/// memory_per_microbatch * m + memory_fixed. The maps go by the neighbour's index in piper_workload::nodes.
struct piper_configuration {
  std::string name;                                 ///< "vanilla", "activation recomp"
  double time = 0;                                  ///< forward + backward of one microbatch, in the file's unit of time
  bytes parameters = {};                            ///< per device
  bytes memory_per_microbatch = {};                 ///< a
  bytes memory_fixed = {};                          ///< b
  std::map<std::size_t, bytes> sync_forward = {};   ///< c^fw, by the layers that this one reads
  std::map<std::size_t, bytes> sync_backward = {};  ///< c^bw, by the layers that read this one
};

struct piper_node {
  std::int64_t id = 0;
  std::string name = "";                                           ///< for people; need not be unique
  std::map<int, std::vector<piper_configuration>> configurations;  ///< by degree of tensor parallelism
};

struct piper_edge {
  std::size_t from = 0, to = 0;  ///< indices into piper_workload::nodes
  bytes cost = {};               ///< of one microbatch

  friend bool operator==(const piper_edge&, const piper_edge&) = default;
};

/// What a file says.
struct piper_workload {
  std::string name;            ///< the file's, without folder and ending
  int devices = 1;             ///< at most
  bytes memory = {};           ///< of a device
  bytes_per_second bandwidth;  ///< from a device to the outside
  int microbatches = 1;        ///< in a batch
  std::vector<piper_node> nodes;
  std::vector<piper_edge> edges;
};

/// How a workload becomes a planning graph.
struct piper_choice {
  int tensor_parallel = 1;
  std::string configuration = "vanilla";
  seconds time_unit{1};           ///< the format names no unit: the BERT file holds seconds, those made from PipeDream's profiles ms
  double forward_share = 1. / 3;  ///< of the time; the rest is backward. By convention 1 : 2; 1 : 3 where activations are recomputed
  std::string device_kind = "piper";
};

namespace detail {

class piper_reader {
 public:
  explicit piper_reader(const json_document& d) : top_(json_node(d), "a JSON object") { read_.name = model_name_of(d.file()); }

  piper_workload read() {
    read_.devices = top_.at("maxDevices", "an integer >= 1").integer<int>(1);
    read_.memory = bytes(top_.number("maxMemoryPerDevice", range::above_zero));
    read_.bandwidth = bytes_per_second(top_.number("bandwidth", range::above_zero));
    const auto described = top_.find("maxBatchSize");  // as the format's description calls it; the files say mbsInBatch
    read_.microbatches = (described ? *described : top_.at("mbsInBatch", "an integer >= 1")).integer<int>(1);
    const json_node nodes = top_.at("nodes", "an array of nodes");
    for (const json_node n : nodes.elements("at least one node", 1)) number(n);
    std::size_t i = 0;
    for (const json_node n : nodes.elements("at least one node", 1)) read_configurations(n, read_.nodes[i++]);
    for (const json_node n : top_.at("edges", "an array of edges").elements("an array of edges")) read_edge(n);
    check_cycles();
    return std::move(read_);
  }

 private:
  /// Nodes are known before their configurations, which name neighbours.
  void number(const json_node& n) {
    const foreign_object o(n, "a node");
    const json_node id = o.at("id", "an integer");
    piper_node node{id.integer<std::int64_t>(std::numeric_limits<std::int64_t>::min()), "", {}};
    if (const auto name = o.find("name")) node.name = name->text();
    if (!index_.emplace(node.id, read_.nodes.size()).second) id.fail("an id that no other node has");
    read_.nodes.push_back(std::move(node));
  }

  void read_configurations(const json_node& n, piper_node& node) const {
    const json_node all = foreign_object(n).at("TMPCs", "an object from degree of tensor parallelism to configurations");
    for (const auto& [degree, list] : all.members("an object from degree of tensor parallelism to configurations")) {
      const auto t = number_in(degree);
      if (!t || *t < 1 || *t > 1e6 || *t != std::floor(*t)) list.fail_with("expected a degree >= 1 as key, got " + in_quotes(degree));
      auto& known = node.configurations[static_cast<int>(*t)];
      if (!known.empty()) list.fail_with("expected every degree once, got " + in_quotes(degree) + " again");
      for (const json_node c : list.elements("at least one configuration", 1)) {
        const foreign_object o(c, "a configuration");
        const json_node name = o.at("id", "a name");
        for (const piper_configuration& other : known) {
          if (other.name == name.name()) name.fail("a name that no other configuration of this degree has");
        }
        known.push_back({.name = std::string(name.name()),
                         .time = o.number("timePerSample", range::at_least_zero),
                         .parameters = bytes(o.number("parameterSize", range::at_least_zero)),
                         .memory_per_microbatch = bytes(o.number("memoryUsageA", range::at_least_zero)),
                         .memory_fixed = bytes(o.number("memoryUsageB", range::at_least_zero)),
                         .sync_forward = read_sync(o.at("syncTimeFw", "an object from node to bytes")),
                         .sync_backward = read_sync(o.at("syncTimeBw", "an object from node to bytes"))});
      }
    }
    if (node.configurations.empty()) all.fail("at least one degree");
  }
  [[nodiscard]] std::map<std::size_t, bytes> read_sync(const json_node& n) const {
    std::map<std::size_t, bytes> sync;
    for (const auto& [neighbour, cost] : n.members("an object from node to bytes")) {
      std::int64_t id = 0;
      const auto [end, code] = std::from_chars(neighbour.data(), neighbour.data() + neighbour.size(), id);
      const auto it = code == std::errc() && end == neighbour.data() + neighbour.size() ? index_.find(id) : index_.end();
      if (it == index_.end()) cost.fail_with("expected the id of a node as key, got " + in_quotes(neighbour));
      if (!sync.emplace(it->second, bytes(cost.number(range::at_least_zero))).second) {
        cost.fail_with("expected every node once, got " + in_quotes(neighbour) + " again");
      }
    }
    return sync;
  }

  void read_edge(const json_node& n) {
    const foreign_object o(n, "an edge");
    const json_node to = o.at("destId", "the id of a node");
    const piper_edge e{find(o.at("sourceId", "the id of a node")), find(to), bytes(o.number("communicationCost", range::at_least_zero))};
    if (e.from == e.to) to.fail("another node than sourceId");
    if (!pairs_.emplace(e.from, e.to).second) n.fail_with("expected every edge once, got " + shown(e) + " again");
    read_.edges.push_back(e);
    places_.push_back(n);
  }
  [[nodiscard]] std::size_t find(const json_node& n) const {
    const auto it = index_.find(n.integer<std::int64_t>(std::numeric_limits<std::int64_t>::min()));
    if (it == index_.end()) n.fail("the id of a node");
    return it->second;
  }
  [[nodiscard]] std::string shown(const piper_edge& e) const {
    return std::to_string(read_.nodes[e.from].id) + " -> " + std::to_string(read_.nodes[e.to].id);
  }
  void check_cycles() const {
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    for (const piper_edge& e : read_.edges) pairs.emplace_back(e.from, e.to);
    if (const auto at = index_on_cycle(read_.nodes.size(), pairs)) {
      places_[*at].fail_with("expected edges without a cycle, got " + shown(read_.edges[*at]) + ", which is on one");
    }
  }

  foreign_object top_;
  piper_workload read_;
  std::unordered_map<std::int64_t, std::size_t> index_;
  std::set<std::pair<std::size_t, std::size_t>> pairs_;
  std::vector<json_node> places_;
};

[[nodiscard]] inline const piper_configuration& chosen(const piper_workload& w, const piper_node& node, const piper_choice& choice) {
  std::string offered;
  for (const auto& [degree, all] : node.configurations) {
    for (const piper_configuration& c : all) {
      if (degree == choice.tensor_parallel && c.name == choice.configuration) return c;
      offered += (offered.empty() ? "" : ", ") + in_quotes(c.name) + " at " + std::to_string(degree);
    }
  }
  throw invalid_input("piper_graph: " + escaped(w.name) + ": node " + std::to_string(node.id) + ": expected one of its configurations " +
                      shortened(offered, 400) + ", got " + in_quotes(choice.configuration) + " at " +
                      std::to_string(choice.tensor_parallel));
}

}  // namespace detail

/// Reads a Piper input.
///
/// Throws      invalid_input `FILE: /pointer: expected X, got Y`: a missing key, a wrong type, a number that is not finite or < 0, an
///             id or an edge twice, an unknown id, a cycle. Keys that the format does not have are let be.
/// Complexity  O(size log size).
/// Source      Piper (NeurIPS 2021) sec. 3, and the README beside its inputs. Deviations from that README, by what the files hold:
///             `maxBatchSize` is called `mbsInBatch`, and `syncTimeFw` is keyed by the tails of incoming edges, `syncTimeBw` by the
///             heads of outgoing ones.
[[nodiscard]] inline piper_workload read_piper_workload(const json_document& d) { return detail::piper_reader(d).read(); }

/// The planning graph of one configuration. A sample is a microbatch; k of them take k times as long. Layers are called by id and
/// name, "5 ParallelTransformerLayer".
///
/// Weights     are `parameters`, what is kept for the backward is `memory_per_microbatch`. `memory_fixed` is left out: in the vanilla
///             configurations it is twice the parameters, which is what planning with an optimizer factor of 0 counts (weights and
///             gradients). That of recomputation holds working space besides.
/// Tensor parallelism  a degree t > 1 makes every device of the plan a group of t accelerators. Its synchronisation (`sync_*`) is in
///             no time here.
/// Throws      invalid_input: a node without the chosen configuration (it lists what the node has), a share outside [0, 1], a unit
///             that is not finite and > 0.
/// Source      Piper (NeurIPS 2021) sec. 3; the split of time into forward and backward is ours.
[[nodiscard]] inline planning_graph piper_graph(const piper_workload& w, const piper_choice& choice = {}) {
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

/// The devices that a workload allows, equal and each with its bandwidth to a switch.
///
/// Throws  invalid_input: more than max_devices.
[[nodiscard]] inline cluster piper_cluster(const piper_workload& w, const std::string& device_kind = "piper") {
  if (w.devices < 1 || static_cast<std::size_t>(w.devices) > max_devices) {
    throw invalid_input("piper_cluster: " + escaped(w.name) + ": devices = " + std::to_string(w.devices) + "; expected 1 to " +
                        std::to_string(max_devices));
  }
  std::vector<device> all;
  for (int i = 0; i < w.devices; ++i) all.push_back({.name = "device" + std::to_string(i), .kind = device_kind, .memory = w.memory});
  if (all.size() == 1) return cluster(w.name, std::move(all.front()));
  return cluster(w.name, std::move(all), star{w.bandwidth});
}

}  // namespace hetplan::io
