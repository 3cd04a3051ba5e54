// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Sailor's layer times and the layer sizes beside them, put onto planning graphs.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/graph/planning_graph_builder.hpp>
#include <hetplan/io/foreign_model.hpp>

namespace hetplan::io {

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
  explicit sailor_reader(const json_document& d) : top_(d) { read_.file = d.file(); }

  sailor_profile read() {
    constexpr std::string_view expected = "an object from microbatch size to degree of tensor parallelism to layer to seconds";
    for (const auto& [size, degrees] : top_.members(expected)) {
      auto& of_size = read_.times[whole(degrees, size, 1, "a microbatch size >= 1")];
      if (!of_size.empty()) degrees.fail_with("expected every microbatch size once, got " + in_quotes(size) + " again");
      for (const auto& [degree, layers] : degrees.members("an object from degree of tensor parallelism to layers")) {
        auto& of_degree = of_size[whole(layers, degree, 1, "a degree of tensor parallelism >= 1")];
        if (!of_degree.empty()) layers.fail_with("expected every degree once, got " + in_quotes(degree) + " again");
        of_degree = read_layers(layers);
      }
      if (of_size.empty()) degrees.fail("at least one degree of tensor parallelism");
    }
    if (read_.times.empty()) top_.fail("at least one microbatch size");
    return std::move(read_);
  }

 private:
  [[nodiscard]] static int whole(const json_node& n, std::string_view key, int least, const char* expected) {
    const auto v = number_in(key);
    if (!v || *v < least || *v > 1e6 || *v != std::floor(*v))
      n.fail_with("expected " + std::string(expected) + " as key, got " + in_quotes(key));
    return static_cast<int>(*v);
  }

  std::vector<sailor_times> read_layers(const json_node& n) {
    const auto members = n.members("an object from layer to seconds");
    std::vector<std::optional<sailor_times>> found(n.size());
    for (const auto& [layer, times] : members) {
      const auto l = static_cast<std::size_t>(whole(times, layer, 0, "the number of a layer"));
      if (l >= found.size()) {
        times.fail_with("expected layers 0 to " + std::to_string(found.size() - 1) + " (there are " + std::to_string(found.size()) +
                        "), got " + in_quotes(layer));
      }
      if (found[l]) times.fail_with("expected every layer once, got " + in_quotes(layer) + " again");
      found[l] = read_times(times);
    }
    if (found.empty()) n.fail("at least one layer");
    if (read_.layers == 0) read_.layers = found.size();
    if (read_.layers != found.size()) {
      n.fail_with("expected " + std::to_string(read_.layers) + " layers as in the first entry, got " + std::to_string(found.size()));
    }
    std::vector<sailor_times> all;
    for (const auto& t : found) all.push_back(*t);  // as many as numbers below their count, each once: all are there
    return all;
  }
  [[nodiscard]] static sailor_times read_times(const json_node& n) {
    constexpr std::string_view expected = "3 numbers, seconds of forward, backward and update";
    std::vector<double> v;
    for (const json_node t : n.elements(expected)) v.push_back(t.number(range::at_least_zero));
    if (v.size() != 3) n.fail_with("expected " + std::string(expected) + ", got " + std::to_string(v.size()));
    return {v[0], v[1], v[2]};
  }

  json_node top_;
  sailor_profile read_;
};

/// One layer's profile over all microbatch sizes that were measured at the degree.
[[nodiscard]] inline layer_profile profile_of(const sailor_measurement& m, std::size_t layer) {
  layer_profile p{m.device_kind, {}, {}, {}};
  for (const auto& [size, degrees] : m.profile.times) {
    const auto at = degrees.find(m.tensor_parallel);
    if (at == degrees.end()) continue;
    p.batch.push_back(size);
    p.forward_s.push_back(at->second[layer].forward_s);
    p.backward_s.push_back(at->second[layer].backward_s);
  }
  return proportional_beyond(std::move(p));
}

inline void check_measurement(const sailor_measurement& m, const std::string& model, std::size_t layers) {
  const std::string where = "sailor: " + escaped(m.profile.file) + ": ";
  if (m.device_kind.empty()) throw invalid_input(where + "expected the name of a device kind, got \"\"");
  if (m.profile.layers != layers) {
    throw invalid_input(where + "expected times of the " + std::to_string(layers) + " layers of model " + in_quotes(model) + ", got " +
                        std::to_string(m.profile.layers));
  }
  std::map<int, int> degrees;
  for (const auto& [size, of_size] : m.profile.times) {
    for (const auto& [degree, times] : of_size) ++degrees[degree];
  }
  if (degrees.contains(m.tensor_parallel)) return;
  std::string known;
  for (const auto& [degree, count] : degrees) known += (known.empty() ? "" : ", ") + std::to_string(degree);
  throw invalid_input(where + "expected a measured degree of tensor parallelism (" + shortened(known, 200) + "), got " +
                      std::to_string(m.tensor_parallel));
}

}  // namespace detail

/// Reads a profile.json of Sailor.
///
/// Units       seconds of a whole microbatch; profiles take them as they are, by batch size.
/// Throws      invalid_input `FILE: /pointer: expected X, got Y`: a wrong type, a number that is not finite or < 0, a key that is no
///             whole number, a layer missing, entries with different numbers of layers.
/// Source      Sailor (SOSP 2025), its repository's planner profiles. The order of the outer keys is ours to find: forward times grow
///             with the outer one and update times shrink with the inner one, so they are microbatch size and degree.
[[nodiscard]] inline sailor_profile read_sailor_profile(const json_document& d) { return detail::sailor_reader(d).read(); }

/// Reads layer sizes in the form of Metis, which Sailor keeps beside its profiles (mbs1_tmp2.json: microbatch size 1, degree 2).
///
/// Throws      invalid_input: a missing key, a wrong type, a number that is not finite or < 0, lists of different length.
/// Source      Metis (ATC 2024), its repository's profile form, `model.parameters`; times in there are not read.
[[nodiscard]] inline layer_sizes read_layer_sizes(const json_document& d) {
  const foreign_object model(foreign_object(json_node(d), "a JSON object").at("model", "an object"), "an object");
  const foreign_object parameters(model.at("parameters", "an object"), "an object");
  layer_sizes read;
  read.name = model.at("model_name", "a name").name();
  const auto list = [&](std::string_view key) {
    std::vector<bytes> all;
    for (const json_node n : parameters.at(key, "an array of bytes").elements("at least one layer", 1)) {
      all.emplace_back(n.number(range::at_least_zero));
    }
    return all;
  };
  read.parameters = list("parameters_per_layer_bytes");
  read.activations = list("activation_parameters_bytes");
  if (read.activations.size() != read.parameters.size()) {
    parameters.at("activation_parameters_bytes", "")
        .fail_with("expected one entry per layer (" + std::to_string(read.parameters.size()) + "), got " +
                   std::to_string(read.activations.size()));
  }
  return read;
}

/// The graph with a profile per measurement on every layer, layer i of the file on layer i of the graph; a profile that the graph has for
/// the kind is replaced.
///
/// Throws      invalid_input: a measurement of another number of layers (both are named), at a degree that was not measured, without
///             kind, or two of one kind.
/// Complexity  O(layers x measurements x sizes).
/// Source      Sailor (SOSP 2025), its repository's planner profiles.
[[nodiscard]] inline planning_graph with_sailor_profiles(const planning_graph& g, std::span<const sailor_measurement> measurements) {
  for (const sailor_measurement& m : measurements) detail::check_measurement(m, g.name(), g.size());
  planning_graph_builder b(g.name(), g.bytes_per_parameter(), g.tokens_per_sample());
  for (const layer& l : g.layers()) {
    layer_spec s = spec_of(g, l);
    std::erase_if(s.profiles, [&](const layer_profile& p) {
      return std::any_of(measurements.begin(), measurements.end(),
                         [&](const sailor_measurement& m) { return m.device_kind == p.device_kind; });
    });
    for (const sailor_measurement& m : measurements) s.profiles.push_back(detail::profile_of(m, l.id.index()));
    b.add_layer(std::move(s));
  }
  for (const layer_edge& e : g.edges()) b.add_edge(e.from, e.to, e.forward, e.gradient);
  return std::move(b).build();
}

/// A chain of the given sizes with a profile per measurement; layers are called "layer0", "layer1", ...
///
/// @param microbatch  samples that the sizes are of: the 1 of mbs1_tmp2.json.
/// Deviations  what a layer keeps for its backward is not in the files: its output stands for it, which is less.
/// Throws      what with_sailor_profiles throws; invalid_input: no measurement, a microbatch < 1.
/// Source      Metis (ATC 2024) for the sizes, Sailor (SOSP 2025) for the times.
[[nodiscard]] inline planning_graph sailor_chain(const layer_sizes& sizes, int microbatch,
                                                 std::span<const sailor_measurement> measurements) {
  if (microbatch < 1) throw invalid_input("sailor_chain: microbatch = " + std::to_string(microbatch) + "; expected an integer >= 1");
  if (measurements.empty()) throw invalid_input("sailor_chain: expected at least one measurement, got none");
  for (const sailor_measurement& m : measurements) detail::check_measurement(m, sizes.name, sizes.parameters.size());
  planning_graph_builder b(sizes.name);
  for (std::size_t l = 0; l < sizes.parameters.size(); ++l) {
    const bytes output = sizes.activations[l] / microbatch;
    layer_spec s{.name = "layer" + std::to_string(l), .weight = sizes.parameters[l], .activation = output};
    for (const sailor_measurement& m : measurements) s.profiles.push_back(detail::profile_of(m, l));
    b.add_layer(std::move(s));
    if (l > 0) b.add_edge(layer_id(l - 1), layer_id(l), sizes.activations[l - 1] / microbatch);
  }
  return std::move(b).build();
}

}  // namespace hetplan::io
