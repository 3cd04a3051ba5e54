// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Piper's profiled models: a file's content, and planning graph and cluster from it.

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/exchange/foreign_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/io/cluster_json.hpp>

namespace hetplan::exchange {

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
  explicit piper_reader(const io::json_document& d) : top_(io::json_node(d), "a JSON object") { read_.name = model_name_of(d.file()); }

  piper_workload read();

 private:
  /// Nodes are known before their configurations, which name neighbours.
  void number(const io::json_node& n);

  void read_configurations(const io::json_node& n, piper_node& node) const;
  [[nodiscard]] std::map<std::size_t, bytes> read_sync(const io::json_node& n) const;

  void read_edge(const io::json_node& n);
  [[nodiscard]] std::size_t find(const io::json_node& n) const;
  [[nodiscard]] std::string shown(const piper_edge& e) const;
  void check_cycles() const;

  foreign_object top_;
  piper_workload read_;
  std::unordered_map<std::int64_t, std::size_t> index_;
  std::set<std::pair<std::size_t, std::size_t>> pairs_;
  std::vector<io::json_node> places_;
};

[[nodiscard]] const piper_configuration& chosen(const piper_workload& w, const piper_node& node, const piper_choice& choice);

}  // namespace detail

/// Reads a Piper input.
///
/// Throws      invalid_input `FILE: /pointer: expected X, got Y`: a missing key, a wrong type, a number that is not finite or < 0, an
///             id or an edge twice, an unknown id, a cycle. Keys that the format does not have are let be.
/// Complexity  O(size log size).
/// Source      Piper (NeurIPS 2021) sec. 3, and the README beside its inputs. Deviations from that README, by what the files hold:
///             `maxBatchSize` is called `mbsInBatch`, and `syncTimeFw` is keyed by the tails of incoming edges, `syncTimeBw` by the
///             heads of outgoing ones.
[[nodiscard]] inline piper_workload read_piper_workload(const io::json_document& d) { return detail::piper_reader(d).read(); }

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
[[nodiscard]] planning_graph piper_graph(const piper_workload& w, const piper_choice& choice = {});

/// The devices that a workload allows, equal and each with its bandwidth to a switch.
///
/// Throws  invalid_input: more than io::max_devices.
[[nodiscard]] cluster piper_cluster(const piper_workload& w, const std::string& device_kind = "piper");

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/piper_json.ipp>
#endif
