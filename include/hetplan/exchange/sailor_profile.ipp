// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/sailor_profile.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <range/v3/range/conversion.hpp>
#include <range/v3/view/join.hpp>
#include <range/v3/view/map.hpp>
#include <range/v3/view/transform.hpp>

#include <hetplan/core/error.hpp>
#include <hetplan/plan/orders.hpp>

namespace hetplan::exchange {

HETPLAN_INLINE std::size_t sailor_plan::layers() const {
  std::size_t n = 0;
  for (const sailor_stage& s : stages) n += s.layers.size();
  return n;
}

namespace detail {

HETPLAN_INLINE sailor_plan sailor_plan_reader::read() {
  read_.microbatch_size = top_.at("mbs", "an integer >= 1").integer<int>(1);
  read_.batch = top_.at("gbs", "an integer >= 1").integer<int>(1);
  const io::json_node pipelines = top_.at("pipeline_list", "an array of pipelines");
  for (const io::json_node n : pipelines.elements("an array of pipelines")) read_pipeline(n);
  if (pipelines.size() != 1) pipelines.fail_with("expected one pipeline, got " + std::to_string(pipelines.size()));
  check_batch();
  read_.iteration = measured<seconds>("real", io::range::above_zero);
  read_.reduction = measured<seconds>("red_grads", io::range::at_least_zero);
  read_.peak_memory = measured<bytes>("max_mem", io::range::above_zero);
  return std::move(read_);
}

HETPLAN_INLINE void sailor_plan_reader::read_pipeline(const io::json_node& n) {
  const foreign_object pipeline(n, "a pipeline, an object");
  const auto stages = static_cast<std::size_t>(pipeline.at("num_stages", "an integer >= 1").integer<int>(1, 100000));
  std::vector<sailor_stage> all(stages);
  const auto listed = [&](std::string_view key, std::string_view what, auto&& read_one) {
    const io::json_node list = pipeline.at(key, "an array with an entry per stage");
    const auto entries = list.elements("an array with an entry per stage");
    if (list.size() != stages) {
      list.fail_with("expected " + std::string(what) + " of " + std::to_string(stages) + " stages, got " + std::to_string(list.size()));
    }
    std::size_t s = 0;
    for (const io::json_node one : entries) read_one(one, all[s++]);
  };
  listed("layers_per_stage", "layers", [](const io::json_node& one, sailor_stage& s) {
    for (const io::json_node l : one.elements("the numbers of at least one layer", 1)) {
      s.layers.push_back(static_cast<std::size_t>(l.integer<int>(0, 1000000)));
    }
  });
  listed("tmp_per_stage", "replicas", [](const io::json_node& one, sailor_stage& s) {
    for (const io::json_node r : one.elements("at least one replica", 1)) s.replicas.push_back(read_replica(r));
  });
  listed("dp", "numbers of replicas", [](const io::json_node& one, sailor_stage& s) {
    if (one.integer<int>(1) != static_cast<int>(s.replicas.size())) {
      one.fail("the number of replicas that tmp_per_stage lists, " + std::to_string(s.replicas.size()));
    }
  });
  read_.stages = std::move(all);
}

HETPLAN_INLINE sailor_replica sailor_plan_reader::read_replica(const io::json_node& n) {
  constexpr std::string_view expected = "a replica: machines and the degree of tensor parallelism";
  const auto parts = elements_of(n, expected, 2);
  sailor_replica read;
  int accelerators = 0;
  for (const io::json_node m : parts[0].elements("at least one machine", 1)) {
    const auto fields = elements_of(m, "a machine: kind, number of accelerators, zone", 3);
    read.machines.push_back({std::string(fields[0].name("the kind of the machine's accelerators")), fields[1].integer<int>(1, 10000),
                             std::string(fields[2].text("the name of a zone"))});
    accelerators += read.machines.back().accelerators;
  }
  read.tensor_parallel = parts[1].integer<int>(1);
  if (read.tensor_parallel > accelerators) {
    parts[1].fail("a degree of at most " + std::to_string(accelerators) + ", as many as the machines have accelerators");
  }
  return read;
}

HETPLAN_INLINE std::vector<io::json_node> sailor_plan_reader::elements_of(const io::json_node& n, std::string_view expected,
                                                                          std::size_t count) {
  std::vector<io::json_node> all;
  for (const io::json_node e : n.elements(expected)) all.push_back(e);
  if (all.size() != count) n.fail_with("expected " + std::string(expected) + ", got " + std::to_string(all.size()) + " elements");
  return all;
}

HETPLAN_INLINE void sailor_plan_reader::check_batch() const {
  for (const sailor_stage& s : read_.stages) {
    const long long together = static_cast<long long>(read_.microbatch_size) * static_cast<long long>(s.replicas.size());
    if (read_.batch % together != 0) {
      top_.at("gbs", "").fail("a multiple of " + std::to_string(together) + ", what the replicas of a stage take at once");
    }
  }
}

}  // namespace detail

HETPLAN_INLINE sailor_plan renumbered(sailor_plan p) {
  std::size_t next = 0;
  for (sailor_stage& s : p.stages) {
    for (std::size_t& l : s.layers) l = next++;
  }
  return p;
}

HETPLAN_INLINE std::vector<device> sailor_devices(const sailor_plan& p) {
  std::vector<device> all;
  for (const sailor_stage& s : p.stages) {
    for (const sailor_replica& r : s.replicas) {
      if (r.machines.size() != 1) {
        throw invalid_input("sailor: " + escaped(p.file) + ": expected replicas of one machine each, got one of " +
                            std::to_string(r.machines.size()) + " machines");
      }
      const std::string& kind = r.machines.front().kind;
      const auto same = [&](const device& d) { return d.kind == kind; };
      device d{.name = kind + "." + std::to_string(std::count_if(all.begin(), all.end(), same)), .kind = kind};
      d.accelerators = r.tensor_parallel;
      all.push_back(std::move(d));
    }
  }
  return all;
}

HETPLAN_INLINE plan plan_of(const sailor_plan& p, const planning_graph& model) {
  const std::string where = "sailor: " + escaped(p.file) + ": ";
  if (p.layers() != model.size()) {
    throw invalid_input(where + "expected the " + std::to_string(model.size()) + " layers of model " + io::in_quotes(model.name()) +
                        ", got " + std::to_string(p.layers()));
  }
  const auto together = [&](const sailor_stage& s) { return p.microbatch_size * static_cast<int>(s.replicas.size()); };
  plan made{.model = model.name(), .planner = "sailor"};
  made.microbatch_size = together(p.stages.front());
  made.microbatches = p.batch / made.microbatch_size;
  std::size_t next = 0, devices = 0;
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    stage one{.name = "stage" + std::to_string(s)};
    for (const std::size_t l : p.stages[s].layers) {
      if (l != next) {
        throw invalid_input(where + "stage " + std::to_string(s) + ": expected layer " + std::to_string(next) + " next, got " +
                            std::to_string(l));
      }
      one.layers.emplace_back(next++);
    }
    for (std::size_t r = 0; r < p.stages[s].replicas.size(); ++r) one.devices.push_back({device_id(devices++), p.microbatch_size});
    if (together(p.stages[s]) != made.microbatch_size) one.microbatch_size = together(p.stages[s]);
    made.stages.push_back(std::move(one));
  }
  set_warmup(made, model, warmup_rule::depth);
  return made;
}

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
  for (const auto& t : found) all.push_back(*t);  // distinct indices below their own count: all are set
  return all;
}

HETPLAN_INLINE sailor_times sailor_reader::read_times(const io::json_node& n) {
  constexpr std::string_view expected = "3 numbers, seconds of forward, backward and update";
  std::vector<double> v;
  for (const io::json_node t : n.elements(expected)) v.push_back(t.number(io::range::at_least_zero));
  if (v.size() != 3) n.fail_with("expected " + std::string(expected) + ", got " + std::to_string(v.size()));
  return {v[0], v[1], v[2]};
}

/// Returns the profile of a layer over all microbatch sizes measured at the degree.
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
  planning_graph_builder b(g.name(), g.facts());
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
