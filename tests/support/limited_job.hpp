// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Tiny random jobs under tight memory, energy budgets and busy shares, and a search for a feasible plan of one pipeline by the judge.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/partition/brute_force.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/simulate/evaluate.hpp>

#include "support/random_source.hpp"

namespace hetplan::test {

struct limited_job {
  planning_graph model;
  hetplan::cluster cluster;
  hetplan::job job;

  explicit limited_job(random_source random) : model(random_model(random)), cluster(random_cluster(random)), job(random_job(random)) {}

  [[nodiscard]] planning_problem problem(any_lp_solver lp = {}) const {
    return {model, cluster, roofline{}, job, judge_models{}, std::move(lp)};
  }

  /// Returns a plan that keeps all limits, by enumeration of cuts, device groups, shares, microbatch sizes and warm-up rules; or none.
  ///
  /// @param savers  true: in training, also with recomputed activations and sharded optimizer state.
  [[nodiscard]] std::optional<plan> any_plan(bool savers = false) const {
    const planning_problem p = problem();
    std::vector<device> roomy(cluster.devices().begin(), cluster.devices().end());  // the judge checks memory
    for (device& d : roomy) d.memory = bytes(1e15);
    const hetplan::cluster large("roomy", roomy, mesh{bytes_per_second(1), seconds(0)});
    const layer_sequence row = sequence_of(model);
    std::optional<plan> found;
    const auto keeps_limits = [&](const plan& x) {
      return !find_broken_limit(judge(x, model, cluster, p.cost, p.models).evaluation, cluster);
    };
    const bool training = job.workload.mode == mode::training;
    for (const int size : job.candidate_microbatch_sizes()) {
      for (const warmup_rule rule : warmup_rules) {
        if (found || (!training && rule != warmup_rule::hide_communication)) break;
        partition::for_each_plan(row, model, large, p.cost, p.models.memory, blank_plan(p, "any", size),
                                 {.warmup = rule, .all_shares = true}, [&](const plan& x) {
                                   if (keeps_limits(x)) found = x;
                                   if (!found && savers && training) {
                                     plan saving = x;
                                     for (stage& s : saving.stages) s.recompute = recomputation::stage, s.shard = sharding::state;
                                     if (keeps_limits(saving)) found = std::move(saving);
                                   }
                                   return found ? control::stop : control::go;
                                 });
      }
    }
    return found;
  }

 private:
  static planning_graph random_model(random_source& random) {
    planning_graph_builder b("limited");
    const int layers = random.integer(1, 3);
    for (int i = 0; i < layers; ++i) {
      b.add_layer({.name = "l" + std::to_string(i),
                   .forward_flops = flops(random.pick(std::vector{0.0, 1e8, 3e8})),
                   .weight = bytes(random.pick(std::vector{0.0, 1e6, 2e6})),
                   .activation = bytes(random.pick(std::vector{0.0, 5e5, 4.5e6})),
                   .kv_bytes_per_token = bytes(random.pick(std::vector{0.0, 1e3}))});
      if (i > 0) b.add_edge(layer_id(i - 1), layer_id(i), bytes(random.pick(std::vector{0.0, 1e4, 1e6})));
    }
    return std::move(b).build();
  }
  static hetplan::cluster random_cluster(random_source& random) {
    std::vector<device> all;
    const int devices = random.integer(1, 3);
    for (int i = 0; i < devices; ++i) {
      device d{.name = "d" + std::to_string(i),
               .memory = bytes(random.pick(std::vector{5e6, 4e7, 1e9})),
               .compute = flops_per_second(random.pick(std::vector{1e11, 4e11, 1e12}))};
      d.half_batch = random.pick(std::vector{0.0, 2.0});
      d.launch = seconds(random.pick(std::vector{0.0, 1e-4}));
      d.power = {watts(random.pick(std::vector{0.0, 1.0, 3.0})), watts(random.pick(std::vector{5.0, 20.0})), joules_per_byte(1e-8),
                 joules_per_byte(1e-8)};
      if (random.chance(0.6)) d.energy_budget = joules(random.pick(std::vector{1e-3, 0.01, 0.05, 0.3, 5.0}));
      if (random.chance(0.6)) d.max_busy = random.pick(std::vector{0.2, 0.5, 0.9});
      all.push_back(std::move(d));
    }
    const bytes_per_second capacity(random.pick(std::vector{1e6, 2.5e7}));
    const seconds latency(random.pick(std::vector{0.0, 1e-3}));
    if (random.chance(0.5)) return {"limited", std::move(all), star{capacity, latency}};
    return {"limited", std::move(all), mesh{capacity, latency}};
  }
  static hetplan::job random_job(random_source& random) {
    hetplan::job j;
    j.workload.mode = random.pick(std::vector{mode::training, mode::inference, mode::generation});
    j.workload.tokens = 3;
    j.workload.context = j.workload.mode == mode::generation ? 50 : 0;
    j.batch = random.integer(1, 4);
    if (random.chance(0.5)) j.microbatch_sizes = {j.batch};
    if (random.chance(0.3)) j.objective = objective_kind::energy;
    return j;
  }
};

}  // namespace hetplan::test
