// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Sailor's layer times and the layer sizes beside them, put onto planning graphs.

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/cluster/device.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/exchange/foreign_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/io/json_node.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::exchange {

// Sailor's plan files: what a file says, with the times that its authors measured, and a plan of ours from it.

/// One data-parallel replica of a stage: machines that run it together by tensor parallelism.
struct sailor_replica {
  struct machine {
    std::string kind;
    int accelerators = 1;  ///< that take part
    std::string zone;

    friend bool operator==(const machine&, const machine&) = default;
  };
  std::vector<machine> machines;
  int tensor_parallel = 1;

  friend bool operator==(const sailor_replica&, const sailor_replica&) = default;
};

/// Consecutive layers, and who computes them.
struct sailor_stage {
  std::vector<std::size_t> layers;  ///< as the file lists them, mistakes included; see renumbered
  std::vector<sailor_replica> replicas;

  friend bool operator==(const sailor_stage&, const sailor_stage&) = default;
};

/// What a plan file says. Times and bytes were measured on the real cluster and are in validation files only.
struct sailor_plan {
  std::string file;         ///< for messages
  int microbatch_size = 1;  ///< samples per replica
  int batch = 1;            ///< samples of an iteration, all replicas together
  std::vector<sailor_stage> stages;
  std::optional<seconds> iteration;  ///< "real"
  std::optional<seconds> reduction;  ///< "red_grads"; of which device is not said, waiting for slower replicas seems to count
  std::optional<bytes> peak_memory;  ///< "max_mem" of one accelerator

  [[nodiscard]] std::size_t layers() const;
};

namespace detail {

class sailor_plan_reader {
 public:
  explicit sailor_plan_reader(const io::json_document& d) : top_(io::json_node(d), "a JSON object") { read_.file = d.file(); }

  sailor_plan read();

 private:
  template <class Quantity>
  [[nodiscard]] std::optional<Quantity> measured(std::string_view key, io::range r) const {
    if (const auto n = top_.find(key)) return Quantity(n->number(r));
    return std::nullopt;
  }

  void read_pipeline(const io::json_node& n);

  /// [[[kind, accelerators, zone], ...], degree]
  [[nodiscard]] static sailor_replica read_replica(const io::json_node& n);
  [[nodiscard]] static std::vector<io::json_node> elements_of(const io::json_node& n, std::string_view expected, std::size_t count);

  void check_batch() const;

  foreign_object top_;
  sailor_plan read_;
};

}  // namespace detail

/// Reads a plan file of Sailor: one pipeline of stages, each with its layers and replicas.
///
/// Units       seconds and bytes, as its simulator takes them.
/// Throws      invalid_input `FILE: /pointer: expected X, got Y`: a missing key, a wrong type, lists that do not have an entry per stage, a
///             number of replicas or a batch that does not go together with the rest, several pipelines.
/// Source      Sailor (SOSP 2025), its repository's sailor/Planner/simulations/validation.
[[nodiscard]] inline sailor_plan read_sailor_plan(const io::json_document& d) { return detail::sailor_plan_reader(d).read(); }

/// The same plan, each stage's layers counted on from where those of the stage before it end.
///
/// Three of the published files list a layer 29 where only 19 is missing; how many layers a stage has is not in doubt.
/// Source      own.
[[nodiscard]] sailor_plan renumbered(sailor_plan p);

/// A device per replica: stage by stage, replicas in file order. Named by kind and number within the kind ("GH-96.0").
///
/// A replica computes and sends as one, so its accelerators are one device; its memory is left for the caller to say.
/// Throws      invalid_input: a replica over several machines, which is no single device.
/// Source      own.
[[nodiscard]] std::vector<device> sailor_devices(const sailor_plan& p);

/// The plan as ours: the devices of sailor_devices, in that order; 1F1B with as many microbatches ahead as stages follow, as DeepSpeed runs
/// it.
///
/// Profiles that were measured at the replica's degree describe the whole replica (with_sailor_profiles), so every assignment says
/// tensor_parallel 1.
///
/// @param model  layer i of the file is layer i here.
/// Throws      invalid_input: layers that are not those of the model, each once and in order (the first that is not is named).
/// Complexity  O(layers + replicas).
/// Source      Sailor (SOSP 2025); its training framework is DeepSpeed's pipeline engine.
[[nodiscard]] plan plan_of(const sailor_plan& p, const planning_graph& model);

/// Seconds of one layer for a whole microbatch.
struct sailor_times {
  double forward_s = 0, backward_s = 0;
  double update_s = 0;  ///< of the optimizer, once per iteration; planning graphs have no place for it

  friend bool operator==(const sailor_times&, const sailor_times&) = default;
};

/// What a profile.json says: one model on one kind of device.
struct sailor_profile {
  std::string file;                                               ///< for messages
  std::size_t layers = 0;                                         ///< of every entry
  std::map<int, std::map<int, std::vector<sailor_times>>> times;  ///< microbatch size -> degree of tensor parallelism -> layer
};

/// A profile as it goes onto a graph. A degree t > 1 makes every such device of a plan a group of t accelerators.
struct sailor_measurement {
  std::string device_kind;
  sailor_profile profile;
  int tensor_parallel = 1;
};

/// The layer sizes that Metis reads: of one microbatch size and degree of tensor parallelism, which only the file's name tells.
struct layer_sizes {
  std::string name;                ///< of the model
  std::vector<bytes> parameters;   ///< per device, by layer
  std::vector<bytes> activations;  ///< a layer's output, of the whole microbatch
};

namespace detail {

class sailor_reader {
 public:
  explicit sailor_reader(const io::json_document& d) : top_(d) { read_.file = d.file(); }

  sailor_profile read();

 private:
  [[nodiscard]] static int whole(const io::json_node& n, std::string_view key, int least, const char* expected);

  std::vector<sailor_times> read_layers(const io::json_node& n);
  [[nodiscard]] static sailor_times read_times(const io::json_node& n);

  io::json_node top_;
  sailor_profile read_;
};

}  // namespace detail

/// Reads a profile.json of Sailor.
///
/// Units       seconds of a whole microbatch; profiles take them as they are, by batch size.
/// Throws      invalid_input `FILE: /pointer: expected X, got Y`: a wrong type, a number that is not finite or < 0, a key that is no
///             whole number, a layer missing, entries with different numbers of layers.
/// Source      Sailor (SOSP 2025), its repository's planner profiles. The order of the outer keys is ours to find: forward times grow
///             with the outer one and update times shrink with the inner one, so they are microbatch size and degree.
[[nodiscard]] inline sailor_profile read_sailor_profile(const io::json_document& d) { return detail::sailor_reader(d).read(); }

/// Reads layer sizes in the form of Metis, which Sailor keeps beside its profiles (mbs1_tmp2.json: microbatch size 1, degree 2).
///
/// Throws      invalid_input: a missing key, a wrong type, a number that is not finite or < 0, lists of different length.
/// Source      Metis (ATC 2024), its repository's profile form, `model.parameters`; times in there are not read.
[[nodiscard]] layer_sizes read_layer_sizes(const io::json_document& d);

/// The graph with a profile per measurement on every layer, layer i of the file on layer i of the graph; a profile that the graph has for
/// the kind is replaced.
///
/// Throws      invalid_input: a measurement of another number of layers (both are named), at a degree that was not measured, without
///             kind, or two of one kind.
/// Complexity  O(layers x measurements x sizes).
/// Source      Sailor (SOSP 2025), its repository's planner profiles.
[[nodiscard]] planning_graph with_sailor_profiles(const planning_graph& g, std::span<const sailor_measurement> measurements);

/// A chain of the given sizes with a profile per measurement; layers are called "layer0", "layer1", ...
///
/// @param microbatch  samples that the sizes are of: the 1 of mbs1_tmp2.json.
/// Deviations  what a layer keeps for its backward is not in the files: its output stands for it, which is less.
/// Throws      what with_sailor_profiles throws; invalid_input: no measurement, a microbatch < 1.
/// Source      Metis (ATC 2024) for the sizes, Sailor (SOSP 2025) for the times.
[[nodiscard]] planning_graph sailor_chain(const layer_sizes& sizes, int microbatch, std::span<const sailor_measurement> measurements);

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/sailor_profile.ipp>
#endif
