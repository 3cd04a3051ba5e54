// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Profiled models of Piper as planning graphs and clusters.

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

/// One way to run a layer at one degree of tensor parallelism: Piper's TMPC. With m microbatches in flight a layer takes
/// memory_per_microbatch * m + memory_fixed. Keys of the maps are neighbours' indices in piper_workload::nodes.
struct piper_configuration {
  std::string name;                                 ///< "vanilla", "activation recomp"
  double time = 0;                                  ///< forward + backward of one microbatch, in the file's unit of time
  bytes parameters = {};                            ///< per device
  bytes memory_per_microbatch = {};                 ///< a
  bytes memory_fixed = {};                          ///< b
  std::map<std::size_t, bytes> sync_forward = {};   ///< c^fw, by predecessor
  std::map<std::size_t, bytes> sync_backward = {};  ///< c^bw, by successor
};

struct piper_node {
  std::int64_t id = 0;
  std::string name = "";                                           ///< need not be unique
  std::map<int, std::vector<piper_configuration>> configurations;  ///< by degree of tensor parallelism
};

struct piper_edge {
  std::size_t from = 0, to = 0;  ///< indices into piper_workload::nodes
  bytes cost = {};               ///< per microbatch

  friend bool operator==(const piper_edge&, const piper_edge&) = default;
};

/// The content of a Piper input file.
struct piper_workload {
  std::string name;            ///< the file's, without folder and extension
  int devices = 1;             ///< upper limit
  bytes memory = {};           ///< of a device
  bytes_per_second bandwidth;  ///< from a device to all others
  int microbatches = 1;        ///< per batch
  std::vector<piper_node> nodes;
  std::vector<piper_edge> edges;
};

/// Options for turning a workload into a planning graph.
struct piper_choice {
  int tensor_parallel = 1;
  std::string configuration = "vanilla";
  seconds time_unit{1};           ///< the format has none: the BERT file holds seconds, files made from PipeDream's profiles ms
  double forward_share = 1. / 3;  ///< share of the time; the usual ratio to backward is 1 : 2, or 1 : 3 with recomputation
  std::string device_kind = "piper";
};

namespace detail {

class piper_reader {
 public:
  explicit piper_reader(const io::json_document& d) : top_(io::json_node(d), "a JSON object") { read_.name = model_name_of(d.file()); }

  piper_workload read();

 private:
  /// Numbers a node. All nodes are numbered before configurations, which refer to neighbours, are read.
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
/// Throws      invalid_input `FILE: /pointer: expected X, got Y`: a missing key, a wrong type, a number that is not finite or < 0, a
///             duplicate id or edge, an unknown id, a cycle. Unknown keys are ignored.
/// Complexity  O(size log size).
/// Source      Piper (NeurIPS 2021) sec. 3, and the README beside its inputs. Deviations from that README, following the files:
///             `maxBatchSize` is called `mbsInBatch`; `syncTimeFw` is keyed by the tails of incoming edges, `syncTimeBw` by the heads of
///             outgoing ones.
[[nodiscard]] inline piper_workload read_piper_workload(const io::json_document& d) { return detail::piper_reader(d).read(); }

/// Returns the planning graph of one configuration. A sample is a microbatch; k of them take k times as long. A layer's name is its id and
/// name, "5 ParallelTransformerLayer".
///
/// Weights     are `parameters`; activations kept for the backward are `memory_per_microbatch`. `memory_fixed` is left out: in the vanilla
///             configurations it is twice the parameters, which is what planning with an optimizer factor of 0 counts (weights and
///             gradients). With recomputation it includes working memory.
/// Tensor parallelism  a degree t > 1 makes every device of the plan a group of t accelerators. Times do not include its synchronisation
///             (`sync_*`).
/// Throws      invalid_input: a node without the chosen configuration (the message lists those it has), a share outside [0, 1], a unit
///             that is not finite and > 0.
/// Source      Piper (NeurIPS 2021) sec. 3; the split of time into forward and backward is ours.
[[nodiscard]] planning_graph piper_graph(const piper_workload& w, const piper_choice& choice = {});

/// Returns the cluster of a workload: equal devices, each linked to a switch with its bandwidth.
///
/// Throws  invalid_input: more than io::max_devices.
[[nodiscard]] cluster piper_cluster(const piper_workload& w, const std::string& device_kind = "piper");

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/piper_json.ipp>
#endif
