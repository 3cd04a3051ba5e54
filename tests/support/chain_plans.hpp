// SPDX-License-Identifier: BSL-1.0
#pragma once
/// All pipelines of single devices for a small chain, judged: an oracle for planners of inference and generation, and random chains on
/// which to compare with it.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/plan/plan_result.hpp>
#include <hetplan/plan/validate.hpp>
#include <hetplan/simulate/evaluate.hpp>

#include "support/random_source.hpp"

namespace hetplan::test {

/// Calls f(plan) for every cut of a chain into stages on single devices, neighbours on different ones, for every microbatch size. Devices
/// with several stages take microbatch by microbatch, or stage by stage.
inline void for_each_chain_plan(const planning_problem& problem, bool devices_return, const std::function<void(plan)>& f) {
  const std::size_t layers = problem.model.size(), devices = problem.cluster.size();
  std::vector<std::size_t> first, on;
  const auto emit = [&](int size) {
    plan p = blank_plan(problem, "all", size);
    for (std::size_t s = 0; s < first.size(); ++s) {
      stage st{.name = "s" + std::to_string(s), .devices = {{device_id(on[s]), size}}};
      for (std::size_t l = first[s]; l < (s + 1 < first.size() ? first[s + 1] : layers); ++l) st.layers.emplace_back(l);
      p.stages.push_back(std::move(st));
    }
    std::vector<char> seen(devices, 0);
    bool returns = false;
    for (const std::size_t d : on) returns = std::exchange(seen[d], 1) != 0 || returns;
    if (!returns) return f(std::move(p));
    p.schedule.kind = schedule_kind::explicit_orders;
    for (const bool by_stage : {false, true}) {
      p.schedule.orders.assign(devices, {});
      const int stages = static_cast<int>(on.size());
      for (int i = 0; i < stages * p.microbatches; ++i) {
        const int s = by_stage ? i / p.microbatches : i % stages, m = by_stage ? i % p.microbatches : i / stages;
        p.schedule.orders[on[static_cast<std::size_t>(s)]].push_back({phase::forward, stage_id(s), m});
      }
      f(p);
      if (p.microbatches == 1) break;
    }
  };
  const std::function<void(std::size_t)> extend = [&](std::size_t from) {
    for (std::size_t d = 0; d < devices; ++d) {
      if (!on.empty() && on.back() == d) continue;
      if (!devices_return && std::find(on.begin(), on.end(), d) != on.end()) continue;
      first.push_back(from);
      on.push_back(d);
      for (const int size : problem.job.candidate_microbatch_sizes()) emit(size);
      for (std::size_t next = from + 1; next < layers; ++next) extend(next);
      first.pop_back();
      on.pop_back();
    }
  };
  extend(0);
}

struct best_of_all {
  double latency_s = std::numeric_limits<double>::infinity();
  std::optional<plan> best = {};
  long long judged = 0;

  /// Judges a plan; one that breaks a rule, a pin or a limit does not count.
  void consider(const planning_problem& problem, const plan& p) {
    if (validate(p, problem)) return;
    const evaluation e = judge(p, problem.model, problem.cluster, problem.cost, problem.models).evaluation;
    ++judged;
    if (find_broken_limit(e, problem.cluster) || !(e.latency.value() < latency_s)) return;
    latency_s = e.latency.value();
    best = p;
  }
};

struct chain_shape {
  int most_layers = 5;
  int most_devices = 3;
  bool ties = false;  ///< equal layers and devices
  double frozen = 0;  ///< chance of a layer that is not trained
};

/// Returns a chain for generation: dense layers, some with caches and attention, some with experts.
inline planning_graph random_token_chain(random_source& random, const chain_shape& shape) {
  planning_graph_builder b("chain", {.bytes_per_parameter = 2, .tokens_per_sample = 16});
  const int layers = random.integer(1, shape.most_layers);
  std::vector<layer_id> all;
  const auto layer_of = [&](int i) {
    layer_spec l{.name = "l" + std::to_string(i),
                 .forward_flops = flops(16 * random.between(1e9, 8e9)),
                 .weight = bytes(random.between(5e7, 4e8)),
                 .activation = bytes(16 * random.between(1e4, 1e5)),
                 .kv_bytes_per_token = bytes(random.chance(0.5) ? random.between(1e3, 2e4) : 0)};
    if (random.chance(0.2)) l.sequence.experts = expert_weights{8, random.integer(1, 4), l.weight * random.between(0.5, 1)};
    l.traffic = bytes(16 * random.between(1e4, 1e6));  // so that a pass of more tokens takes longer
    return l;
  };
  layer_spec same = layer_of(0);
  for (int i = 0; i < layers; ++i) {
    layer_spec l = shape.ties && random.chance(0.7) ? same : layer_of(i);
    l.name = "l" + std::to_string(i);
    if (shape.frozen > 0) l.trainable = !random.chance(shape.frozen);
    all.push_back(b.add_layer(std::move(l)));
    if (i > 0) b.add_edge(all[all.size() - 2], all.back(), bytes(16 * (shape.ties ? 1e4 : random.between(1e3, 1e5))));
  }
  return std::move(b).build();
}

/// Returns devices joined by a wireless network, each with room for `room` times the weights of the model.
inline cluster random_token_devices(random_source& random, const planning_graph& model, const chain_shape& shape, double least_room,
                                    double most_room) {
  double weights = 0;
  for (const layer& l : model.layers()) weights += l.weight.value();
  std::vector<device> all;
  const int devices = random.integer(1, shape.most_devices);
  for (int i = 0; i < devices; ++i) {
    device d;
    if (i > 0 && shape.ties && random.chance(0.5)) {
      d = all.front();
    } else {
      d.memory = bytes(weights * random.between(least_room, most_room) + 1e7);
      d.compute = flops_per_second(random.between(1e12, 1e13));
      d.memory_bandwidth = bytes_per_second(random.between(2e10, 2e11));
      if (random.chance(0.3)) d.half_rows = random.between(1, 30);
      if (random.chance(0.3)) d.launch = seconds(random.between(0, 1e-3));
      if (random.chance(0.3)) d.overhead = seconds(random.between(0, 1e-3));
    }
    d.name = "d" + std::to_string(i);
    d.kind = "";
    all.push_back(std::move(d));
  }
  return {"devices", std::move(all), shared_medium{bytes_per_second(random.between(1e7, 1e9)), seconds(random.between(0, 2e-3))}};
}

inline job random_token_job(random_source& random) {
  job j{.workload = {.mode = mode::generation}, .batch = random.pick(std::vector{1, 1, 2, 4})};
  j.workload.tokens = random.pick(std::vector{1, 2, 8, 40});
  if (random.chance(0.7)) j.workload.prompt = random.integer(0, 40);
  if (random.chance(0.2)) j.workload.context = random.integer(0, 100);
  return j;
}

struct chain_instance {
  planning_graph model;
  hetplan::cluster cluster;
  hetplan::job job;
};

/// What a planner made of random instances.
struct compared_plans {
  int none = 0;      ///< instances without a plan
  int missed = 0;    ///< instances with a plan that is faster than the planner's
  double worst = 1;  ///< the planner's latency by that of the fastest
};

/// Compares a planner with the best of all plans on random instances. It must find a valid plan wherever there is one.
///
/// @param first     of the numbers that the instances are drawn by.
/// @param draw      (random, i) -> chain_instance.
/// @param consider  (problem, best_of_all&): considers all plans.
/// @param planner   (problem) -> plan_result.
/// @param seen      (best_of_all, the planner's best plan): looks at both where there is a plan.
template <class Draw, class Consider, class Planner, class Seen>
compared_plans compare_with_the_best(int cases, std::uint64_t first, const Draw& draw, const Consider& consider, const Planner& planner,
                                     const Seen& seen) {
  compared_plans sum;
  for (int i = 0; i < cases; ++i) {
    random_source random(first + static_cast<std::uint64_t>(i));
    const chain_instance drawn = draw(random, i);
    planning_problem problem{drawn.model, drawn.cluster, roofline{}, drawn.job};
    problem.with_bounds = false;
    best_of_all all;
    consider(problem, all);
    INFO("case " << i << " from " << first << ": best of " << all.judged << " plans: " << all.latency_s << " s");
    const plan_result found = planner(problem);
    if (!all.best) {
      ++sum.none;
      continue;
    }
    REQUIRE_FALSE(found.plans.empty());
    const ranked_plan& best = found.plans.front();
    CHECK_FALSE(validate(best.plan, problem));
    CHECK_FALSE(find_broken_limit(best.evaluation, problem.cluster));
    seen(all, best);
    const double found_s = best.evaluation.latency.value();
    if (found_s <= all.latency_s * (1 + 1e-9)) continue;
    ++sum.missed;
    sum.worst = std::max(sum.worst, found_s / all.latency_s);
    UNSCOPED_INFO("case " << i << ": " << found_s << " s by " << best.plan.planner << ", not " << all.latency_s);
  }
  return sum;
}

}  // namespace hetplan::test
