// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Plans, layer times and layer sizes from Sailor's files, and planning graphs and plans made from them.

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

/// A data-parallel replica of a stage: machines that run it together by tensor parallelism.
struct sailor_replica {
  struct machine {
    std::string kind;
    int accelerators = 1;  ///< used by the replica
    std::string zone;

    friend bool operator==(const machine&, const machine&) = default;
  };
  std::vector<machine> machines;
  int tensor_parallel = 1;

  friend bool operator==(const sailor_replica&, const sailor_replica&) = default;
};

/// Consecutive layers and the replicas that compute them.
struct sailor_stage {
  std::vector<std::size_t> layers;  ///< as listed in the file, mistakes included; see renumbered
  std::vector<sailor_replica> replicas;

  friend bool operator==(const sailor_stage&, const sailor_stage&) = default;
};

/// The content of a plan file. Times and bytes were measured on the real cluster; only validation files have them.
struct sailor_plan {
  std::string file;         ///< name in messages
  int microbatch_size = 1;  ///< samples per replica
  int batch = 1;            ///< samples per iteration, over all replicas
  std::vector<sailor_stage> stages;
  std::optional<seconds> iteration;  ///< "real"
  std::optional<seconds> reduction;  ///< "red_grads"; the file names no device, and waiting for slower replicas seems to count
  std::optional<bytes> peak_memory;  ///< "max_mem", per accelerator

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
/// Units       seconds and bytes, as in its simulator.
/// Throws      invalid_input `FILE: /pointer: expected X, got Y`: a missing key, a wrong type, lists without one entry per stage, an
///             inconsistent number of replicas, a batch that replicas cannot divide, several pipelines.
/// Source      Sailor (SOSP 2025), its repository's sailor/Planner/simulations/validation.
[[nodiscard]] inline sailor_plan read_sailor_plan(const io::json_document& d) { return detail::sailor_plan_reader(d).read(); }

/// Returns the plan with layers numbered consecutively from stage to stage.
///
/// Three of the published files list a layer 29 in place of the missing 19; the number of layers per stage is correct.
/// Source      own.
[[nodiscard]] sailor_plan renumbered(sailor_plan p);

/// Returns a device per replica, stage by stage in file order, named by kind and number within the kind ("GH-96.0").
///
/// A replica computes and sends as one, so its accelerators are one device. The caller sets the device's memory.
/// Throws      invalid_input: a replica over several machines, which is no single device.
/// Source      own.
[[nodiscard]] std::vector<device> sailor_devices(const sailor_plan& p);

/// Returns a file's plan on the devices of sailor_devices, scheduled as by DeepSpeed: 1F1B with a warm-up microbatch per later stage.
///
/// Profiles measured at the replica's degree describe the whole replica (with_sailor_profiles), so every assignment has tensor_parallel 1.
///
/// @param model  its layer i is layer i of the file.
/// Throws      invalid_input: layers other than those of the model, each once and in order (the message names the first).
/// Complexity  O(layers + replicas).
/// Source      Sailor (SOSP 2025); its training framework is DeepSpeed's pipeline engine.
[[nodiscard]] plan plan_of(const sailor_plan& p, const planning_graph& model);

/// Seconds of a layer for a whole microbatch.
struct sailor_times {
  double forward_s = 0, backward_s = 0;
  double update_s = 0;  ///< of the optimizer, once per iteration; planning graphs do not hold it

  friend bool operator==(const sailor_times&, const sailor_times&) = default;
};

/// The content of a profile.json: one model on one kind of device.
struct sailor_profile {
  std::string file;                                               ///< name in messages
  std::size_t layers = 0;                                         ///< in every entry
  std::map<int, std::map<int, std::vector<sailor_times>>> times;  ///< microbatch size -> degree of tensor parallelism -> layer
};

/// A profile to add to a graph. With a degree t > 1, a device of the plan is a group of t accelerators.
struct sailor_measurement {
  std::string device_kind;
  sailor_profile profile;
  int tensor_parallel = 1;
};

/// Layer sizes in the format of Metis, for a microbatch size and a degree of tensor parallelism that only the file's name tells.
struct layer_sizes {
  std::string name;                ///< of the model
  std::vector<bytes> parameters;   ///< per device, by layer
  std::vector<bytes> activations;  ///< output of each layer, for the whole microbatch
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
/// Units       seconds of a whole microbatch, kept by batch size.
/// Throws      invalid_input `FILE: /pointer: expected X, got Y`: a wrong type, a number that is not finite or < 0, a key that is no
///             whole number, a missing layer, entries with different numbers of layers.
/// Source      Sailor (SOSP 2025), its repository's planner profiles. The meaning of the keys is inferred: forward times grow with the
///             outer key, update times shrink with the inner one, so they are microbatch size and degree.
[[nodiscard]] inline sailor_profile read_sailor_profile(const io::json_document& d) { return detail::sailor_reader(d).read(); }

/// Reads layer sizes in the format of Metis, which Sailor keeps beside its profiles (mbs1_tmp2.json: microbatch size 1, degree 2).
///
/// Throws      invalid_input: a missing key, a wrong type, a number that is not finite or < 0, lists of different length.
/// Source      Metis (ATC 2024), its repository's profile format, `model.parameters`; its times are ignored.
[[nodiscard]] layer_sizes read_layer_sizes(const io::json_document& d);

/// Returns the graph with a profile per measurement on every layer: layer i of the file is layer i of the graph. Existing profiles of the
/// same device kind are replaced.
///
/// Throws      invalid_input: a measurement of another number of layers (both are named), at a degree that was not measured, without
///             kind, or two of one kind.
/// Complexity  O(layers x measurements x sizes).
/// Source      Sailor (SOSP 2025), its repository's planner profiles.
[[nodiscard]] planning_graph with_sailor_profiles(const planning_graph& g, std::span<const sailor_measurement> measurements);

/// Returns a chain of layers "layer0", "layer1" and so on, with the given sizes and a profile per measurement.
///
/// @param microbatch  samples that the sizes are for: 1 in mbs1_tmp2.json.
/// Deviations  the files lack the activations kept for the backward; the layer's output stands for them, which is less.
/// Throws      what with_sailor_profiles throws; invalid_input: no measurement, a microbatch < 1.
/// Source      Metis (ATC 2024) for the sizes, Sailor (SOSP 2025) for the times.
[[nodiscard]] planning_graph sailor_chain(const layer_sizes& sizes, int microbatch, std::span<const sailor_measurement> measurements);

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/sailor_profile.ipp>
#endif
