// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Sailor's plan files: what a file says, with the times that its authors measured, and a plan of ours from it.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/cluster/device.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/io/foreign_model.hpp>
#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::io {

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

  [[nodiscard]] std::size_t layers() const {
    std::size_t n = 0;
    for (const sailor_stage& s : stages) n += s.layers.size();
    return n;
  }
};

namespace detail {

class sailor_plan_reader {
 public:
  explicit sailor_plan_reader(const json_document& d) : top_(json_node(d), "a JSON object") { read_.file = d.file(); }

  sailor_plan read() {
    read_.microbatch_size = top_.at("mbs", "an integer >= 1").integer<int>(1);
    read_.batch = top_.at("gbs", "an integer >= 1").integer<int>(1);
    const json_node pipelines = top_.at("pipeline_list", "an array of pipelines");
    for (const json_node n : pipelines.elements("an array of pipelines")) read_pipeline(n);
    if (pipelines.size() != 1) pipelines.fail_with("expected one pipeline, got " + std::to_string(pipelines.size()));
    check_batch();
    read_.iteration = measured<seconds>("real", range::above_zero);
    read_.reduction = measured<seconds>("red_grads", range::at_least_zero);
    read_.peak_memory = measured<bytes>("max_mem", range::above_zero);
    return std::move(read_);
  }

 private:
  template <class Quantity>
  [[nodiscard]] std::optional<Quantity> measured(std::string_view key, range r) const {
    if (const auto n = top_.find(key)) return Quantity(n->number(r));
    return std::nullopt;
  }

  void read_pipeline(const json_node& n) {
    const foreign_object pipeline(n, "a pipeline, an object");
    const auto stages = static_cast<std::size_t>(pipeline.at("num_stages", "an integer >= 1").integer<int>(1, 100000));
    std::vector<sailor_stage> all(stages);
    const auto listed = [&](std::string_view key, std::string_view what, auto&& read_one) {
      const json_node list = pipeline.at(key, "an array with an entry per stage");
      const auto entries = list.elements("an array with an entry per stage");
      if (list.size() != stages) {
        list.fail_with("expected " + std::string(what) + " of " + std::to_string(stages) + " stages, got " + std::to_string(list.size()));
      }
      std::size_t s = 0;
      for (const json_node one : entries) read_one(one, all[s++]);
    };
    listed("layers_per_stage", "layers", [](const json_node& one, sailor_stage& s) {
      for (const json_node l : one.elements("the numbers of at least one layer", 1)) {
        s.layers.push_back(static_cast<std::size_t>(l.integer<int>(0, 1000000)));
      }
    });
    listed("tmp_per_stage", "replicas", [](const json_node& one, sailor_stage& s) {
      for (const json_node r : one.elements("at least one replica", 1)) s.replicas.push_back(read_replica(r));
    });
    listed("dp", "numbers of replicas", [](const json_node& one, sailor_stage& s) {
      if (one.integer<int>(1) != static_cast<int>(s.replicas.size())) {
        one.fail("the number of replicas that tmp_per_stage lists, " + std::to_string(s.replicas.size()));
      }
    });
    read_.stages = std::move(all);
  }

  /// [[[kind, accelerators, zone], ...], degree]
  [[nodiscard]] static sailor_replica read_replica(const json_node& n) {
    constexpr std::string_view expected = "a replica: machines and the degree of tensor parallelism";
    const auto parts = elements_of(n, expected, 2);
    sailor_replica read;
    int accelerators = 0;
    for (const json_node m : parts[0].elements("at least one machine", 1)) {
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
  [[nodiscard]] static std::vector<json_node> elements_of(const json_node& n, std::string_view expected, std::size_t count) {
    std::vector<json_node> all;
    for (const json_node e : n.elements(expected)) all.push_back(e);
    if (all.size() != count) n.fail_with("expected " + std::string(expected) + ", got " + std::to_string(all.size()) + " elements");
    return all;
  }

  void check_batch() const {
    for (const sailor_stage& s : read_.stages) {
      const long long together = static_cast<long long>(read_.microbatch_size) * static_cast<long long>(s.replicas.size());
      if (read_.batch % together != 0) {
        top_.at("gbs", "").fail("a multiple of " + std::to_string(together) + ", what the replicas of a stage take at once");
      }
    }
  }

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
[[nodiscard]] inline sailor_plan read_sailor_plan(const json_document& d) { return detail::sailor_plan_reader(d).read(); }

/// The same plan, each stage's layers counted on from where those of the stage before it end.
///
/// Three of the published files list a layer 29 where only 19 is missing; how many layers a stage has is not in doubt.
/// Source      own.
[[nodiscard]] inline sailor_plan renumbered(sailor_plan p) {
  std::size_t next = 0;
  for (sailor_stage& s : p.stages) {
    for (std::size_t& l : s.layers) l = next++;
  }
  return p;
}

/// A device per replica: stage by stage, replicas in file order. Named by kind and number within the kind ("GH-96.0").
///
/// A replica computes and sends as one, so its accelerators are one device; its memory is left for the caller to say.
/// Throws      invalid_input: a replica over several machines, which is no single device.
/// Source      own.
[[nodiscard]] inline std::vector<device> sailor_devices(const sailor_plan& p) {
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
[[nodiscard]] inline plan plan_of(const sailor_plan& p, const planning_graph& model) {
  const std::string where = "sailor: " + escaped(p.file) + ": ";
  if (p.layers() != model.size()) {
    throw invalid_input(where + "expected the " + std::to_string(model.size()) + " layers of model " + in_quotes(model.name()) + ", got " +
                        std::to_string(p.layers()));
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

}  // namespace hetplan::io
