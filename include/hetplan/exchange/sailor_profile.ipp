// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/sailor_profile.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include <range/v3/range/conversion.hpp>
#include <range/v3/view/join.hpp>
#include <range/v3/view/map.hpp>
#include <range/v3/view/transform.hpp>

#include <hetplan/core/escaped.hpp>
#include <hetplan/exchange/foreign_model.hpp>
#include <hetplan/graph/planning_graph_builder.hpp>
#include <hetplan/io/text.hpp>

namespace hetplan::exchange {

namespace detail {

HETPLAN_INLINE sailor_profile sailor_reader::read() {
  constexpr std::string_view expected = "an object from microbatch size to degree of tensor parallelism to layer to seconds";
  for (const auto& [size, degrees] : top_.members(expected)) {
    auto& of_size = read_.times[whole(degrees, size, 1, "a microbatch size >= 1")];
    if (!of_size.empty()) degrees.fail_with("expected every microbatch size once, got " + io::in_quotes(size) + " again");
    for (const auto& [degree, layers] : degrees.members("an object from degree of tensor parallelism to layers")) {
      auto& of_degree = of_size[whole(layers, degree, 1, "a degree of tensor parallelism >= 1")];
      if (!of_degree.empty()) layers.fail_with("expected every degree once, got " + io::in_quotes(degree) + " again");
      of_degree = read_layers(layers);
    }
    if (of_size.empty()) degrees.fail("at least one degree of tensor parallelism");
  }
  if (read_.times.empty()) top_.fail("at least one microbatch size");
  return std::move(read_);
}

HETPLAN_INLINE int sailor_reader::whole(const io::json_node& n, std::string_view key, int least, const char* expected) {
  const auto v = number_in(key);
  if (!v || *v < least || *v > 1e6 || *v != std::floor(*v))
    n.fail_with("expected " + std::string(expected) + " as key, got " + io::in_quotes(key));
  return static_cast<int>(*v);
}

HETPLAN_INLINE std::vector<sailor_times> sailor_reader::read_layers(const io::json_node& n) {
  const auto members = n.members("an object from layer to seconds");
  std::vector<std::optional<sailor_times>> found(n.size());
  for (const auto& [layer, times] : members) {
    const auto l = static_cast<std::size_t>(whole(times, layer, 0, "the number of a layer"));
    if (l >= found.size()) {
      times.fail_with("expected layers 0 to " + std::to_string(found.size() - 1) + " (there are " + std::to_string(found.size()) +
                      "), got " + io::in_quotes(layer));
    }
    if (found[l]) times.fail_with("expected every layer once, got " + io::in_quotes(layer) + " again");
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

HETPLAN_INLINE sailor_times sailor_reader::read_times(const io::json_node& n) {
  constexpr std::string_view expected = "3 numbers, seconds of forward, backward and update";
  std::vector<double> v;
  for (const io::json_node t : n.elements(expected)) v.push_back(t.number(io::range::at_least_zero));
  if (v.size() != 3) n.fail_with("expected " + std::string(expected) + ", got " + std::to_string(v.size()));
  return {v[0], v[1], v[2]};
}

/// One layer's profile over all microbatch sizes that were measured at the degree.
[[nodiscard]] HETPLAN_INLINE layer_profile profile_of(const sailor_measurement& m, std::size_t layer) {
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

HETPLAN_INLINE void check_measurement(const sailor_measurement& m, const std::string& model, std::size_t layers) {
  const std::string where = "sailor: " + escaped(m.profile.file) + ": ";
  if (m.device_kind.empty()) throw invalid_input(where + "expected the name of a device kind, got \"\"");
  if (m.profile.layers != layers) {
    throw invalid_input(where + "expected times of the " + std::to_string(layers) + " layers of model " + io::in_quotes(model) + ", got " +
                        std::to_string(m.profile.layers));
  }
  const auto degrees = m.profile.times | ranges::views::values | ranges::views::join | ranges::views::keys | ranges::to<std::set<int>>();
  if (degrees.contains(m.tensor_parallel)) return;
  const std::string known = io::joined(degrees | ranges::views::transform([](int degree) { return std::to_string(degree); }));
  throw invalid_input(where + "expected a measured degree of tensor parallelism (" + io::shortened(known, 200) + "), got " +
                      std::to_string(m.tensor_parallel));
}

}  // namespace detail

HETPLAN_INLINE layer_sizes read_layer_sizes(const io::json_document& d) {
  const foreign_object model(foreign_object(io::json_node(d), "a JSON object").at("model", "an object"), "an object");
  const foreign_object parameters(model.at("parameters", "an object"), "an object");
  layer_sizes read;
  read.name = model.at("model_name", "a name").name();
  const auto list = [&](std::string_view key) {
    std::vector<bytes> all;
    for (const io::json_node n : parameters.at(key, "an array of bytes").elements("at least one layer", 1)) {
      all.emplace_back(n.number(io::range::at_least_zero));
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

HETPLAN_INLINE planning_graph with_sailor_profiles(const planning_graph& g, std::span<const sailor_measurement> measurements) {
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

HETPLAN_INLINE planning_graph sailor_chain(const layer_sizes& sizes, int microbatch, std::span<const sailor_measurement> measurements) {
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

}  // namespace hetplan::exchange
