// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/sailor_plan.hpp>

#include <algorithm>
#include <utility>

#include <hetplan/core/escaped.hpp>
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

}  // namespace hetplan::exchange
