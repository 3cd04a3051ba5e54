// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Sailor's layer times and the layer sizes beside them, put onto planning graphs.

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/core/quantity.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/io/json_node.hpp>

namespace hetplan::exchange {

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

#ifndef HETPLAN_COMPILED
#include <hetplan/exchange/sailor_profile.ipp>
#endif
