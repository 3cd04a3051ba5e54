// SPDX-License-Identifier: BSL-1.0
#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/plan/validate.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/simulate/simulator.hpp>
#include <hetplan/solve/glpk.hpp>
#include <hetplan/tasks/task_graph.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include "support/random_instance.hpp"

namespace test_bounds {

using namespace hetplan;
using namespace hetplan::test;

namespace {
Approx about(double x) { return Approx(x).epsilon(1e-9).margin(1e-12); }
}  // namespace

TEST_CASE("no plan beats the bounds, with or without a solver") {
  for_random_instances(120, [](const instance& i) {
    const planning_graph m = i.model();
    const cluster c = i.cluster();
    const evaluation closed = evaluate(i.plan, m, c, roofline{}).evaluation;
    REQUIRE(closed.latency >= closed.bound * (1 - 1e-9));
    REQUIRE(closed.latency >= closed.schedule_bound * (1 - 1e-9));
    REQUIRE(closed.bound.value() >= 0);
    REQUIRE(closed.gap == (closed.bound.value() > 0 ? closed.latency / closed.bound - 1 : 0));
    REQUIRE(closed.schedule_gap == (closed.schedule_bound.value() > 0 ? closed.latency / closed.schedule_bound - 1 : 0));
    if (i.layers.size() > 4) return;  // small models suffice for the solver
    const evaluation solved = evaluate(i.plan, m, c, roofline{}, judge_models{}, glpk_lp{}).evaluation;
    REQUIRE(solved.latency >= solved.bound * (1 - 1e-9));
    REQUIRE(solved.bound >= closed.bound * (1 - 1e-12));
    REQUIRE(solved.latency == closed.latency);
  });
}

TEST_CASE("one device that does everything meets the compute bound where batches do not matter") {
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 200; ++seed) {
    INFO("seed " << seed);
    instance i = random_instance(seed, plan_kind::chain);
    i.devices.resize(1);
    i.devices[0].half_batch = 0;
    i.devices[0].launch = {};
    i.devices[0].memory_bandwidth = bytes_per_second(std::numeric_limits<double>::infinity());
    stage all;
    for (std::size_t l = 0; l < i.layers.size(); ++l) all.layers.push_back(layer_id(l));
    all.devices.push_back({device_id(0), i.plan.microbatch_size});
    i.plan.stages = {all};
    i.plan.schedule = {};
    i.plan.parameter_server = {};
    const evaluation e = evaluate(i.plan, i.model(), i.cluster(), roofline{}).evaluation;
    REQUIRE(e.latency.value() == about(e.bound.value()));
    REQUIRE(e.latency.value() == about(e.schedule_bound.value()));
    REQUIRE(e.devices[0].busy.value() == about(e.latency.value()));
  }
}

TEST_CASE("on an uncontended chain the run is its critical path, and more bandwidth never hurts") {
  // Stages on single devices with wires of their own, whose transfers take no longer than their producers compute: they never meet.
  int chains = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 1000; ++seed) {
    INFO("seed " << seed);
    instance i = random_instance(seed, plan_kind::chain);
    i.net = net_kind::mesh;
    for (stage& s : i.plan.stages) {
      s.devices.resize(1);
      s.devices[0].samples = i.plan.microbatch_size;
    }
    if (i.plan.schedule.kind == schedule_kind::explicit_orders) i.plan.schedule = {};
    for (layer_spec& l : i.layers) {
      l.forward_flops = std::max(*l.forward_flops, 1_MFLOP);
      l.backward_input_flops = std::max(l.backward_input_flops.value_or(*l.forward_flops), 1_MFLOP);
    }
    const planning_graph m = i.model();
    if (i.plan.stages.size() < 2) continue;
    tasks::task_graph g = tasks::expand(i.plan, m, i.cluster(), roofline{});
    double slowest = 0, shortest = 1e9;
    for (const tasks::transfer& t : g.transfers) slowest = std::max(slowest, t.volume_bytes);
    for (const tasks::compute_task& t : g.computes) shortest = std::min(shortest, t.duration_s);
    i.capacity = std::max(1.0, slowest / shortest);
    const auto latency = [&] {
      const cluster c = i.cluster();
      const tasks::task_graph graph = tasks::expand(i.plan, m, c, roofline{});
      const trace t = simulate(graph, c.network());
      const std::vector<double> ends = tasks::longest_paths(graph, c.network()).earliest_end_s;
      REQUIRE(t.latency.value() == about(*std::max_element(ends.begin(), ends.end())));
      return t.latency.value();
    };
    double before = latency();
    for (const double more : {1.1, 1.7, 4.0, 100.0}) {
      i.capacity *= more;
      const double now = latency();
      REQUIRE(now <= before * (1 + 1e-12));
      before = now;
    }
    ++chains;
  }
  CHECK(chains > 300);
}

TEST_CASE("faster devices never hurt where the network does not matter") {
  for_random_instances(60, [](const instance& original) {
    instance i = original;
    i.net = net_kind::mesh;
    i.capacity = 1e15;  // transfers take only their latency
    i.plan.sharing_policy = sharing::fair_share;
    random_source random(i.layers.size());
    const double before = judge(i.plan, i.model(), i.cluster(), roofline{}).evaluation.latency.value();
    device& d = i.devices[random.index(i.devices.size())];
    d.compute = d.compute * 1.5;
    d.memory_bandwidth = d.memory_bandwidth * 1.5;
    REQUIRE(judge(i.plan, i.model(), i.cluster(), roofline{}).evaluation.latency.value() <= before * (1 + 1e-6));
  });
}

TEST_CASE("peak memory of a pipeline is its state and as many microbatches as its schedule keeps") {
  int stages_checked = 0;
  for_random_instances(100, [&](const instance& i) {
    const plan& p = i.plan;
    if (p.schedule.kind == schedule_kind::explicit_orders) return;
    const planning_graph m = i.model();
    const stage_graph g = make_stage_graph(p, m);
    const std::vector<int> warmup = resolve_warmup(p, g);
    const evaluation e = judge(p, m, i.cluster(), roofline{}).evaluation;
    for (std::size_t s = 0; s < p.stages.size(); ++s) {
      for (const assignment& a : p.stages[s].devices) {
        double state = 0, activations = 0, cache = 0;
        bool tied = false;
        for (const layer_id l : p.stages[s].layers) {
          activations += m[l].activation.value() * a.samples;
          cache += m[l].kv_bytes_per_token.value() * (p.workload.context + p.workload.tokens) * a.samples * g.nodes[s].microbatches;
          if (m[l].weight_group >= 0 && std::exchange(tied, true)) continue;
          const double w = m[l].weight.value();
          state += w + (p.workload.mode == mode::training && m[l].trainable ? w * (1 + p.workload.optimizer_factor) : 0);
        }
        int kept = 1;
        if (p.workload.mode == mode::training) {
          kept = p.schedule.kind == schedule_kind::gpipe ? g.nodes[s].microbatches : std::min(warmup[s], g.nodes[s].microbatches);
        }
        const double expected = state + activations * kept + (p.workload.mode == mode::generation ? cache : 0);
        REQUIRE(e.devices[a.device.index()].peak_memory.value() == about(expected));
        ++stages_checked;
      }
    }
  });
  CHECK(stages_checked > 1500);
}

TEST_CASE("1F1B never holds more than GPipe, nor a smaller warm-up more than a larger one") {
  for_random_instances(40, [](const instance& original) {
    instance i = original;
    if (i.plan.schedule.kind == schedule_kind::explicit_orders) return;
    const planning_graph m = i.model();
    const cluster c = i.cluster();
    i.plan.schedule.transfers.clear();
    const auto peaks = [&] { return judge(i.plan, m, c, roofline{}).trace.peak_bytes; };
    i.plan.schedule.kind = schedule_kind::one_f_one_b;
    const std::vector<int> k = resolve_warmup(i.plan, make_stage_graph(i.plan, m));
    i.plan.schedule.warmup = k;
    const auto own = peaks();
    for (int& x : i.plan.schedule.warmup) x += 1;
    const auto larger = validate(i.plan, m, c) ? own : peaks();
    i.plan.schedule.kind = schedule_kind::gpipe;
    i.plan.schedule.warmup = {};
    const auto all = peaks();
    for (std::size_t d = 0; d < own.size(); ++d) {
      REQUIRE(own[d] <= larger[d] * (1 + 1e-12));
      REQUIRE(larger[d] <= all[d] * (1 + 1e-12));
    }
  });
}

TEST_CASE("energy is what tasks and transfers add up to, and grows in proportion to the power") {
  for_random_instances(60, [](const instance& i) {
    const planning_graph m = i.model();
    const judgement j = judge(i.plan, m, i.cluster(), roofline{});
    std::vector<double> joules_of(i.devices.size(), 0);
    std::vector<char> used(i.devices.size(), 0);
    for (const tasks::compute_task& t : j.graph.computes) {
      const power_profile& p = i.devices[t.device.index()].power;
      joules_of[t.device.index()] += ((p.active - p.idle) * seconds(t.duration_s)).value();
      used[t.device.index()] = 1;
    }
    for (const tasks::transfer& t : j.graph.transfers) {
      joules_of[t.from.index()] += t.volume_bytes * i.devices[t.from.index()].power.send.value();
      joules_of[t.to.index()] += t.volume_bytes * i.devices[t.to.index()].power.receive.value();
      used[t.from.index()] = used[t.to.index()] = 1;
    }
    // A server counts as used even if nothing is reduced.
    if (i.plan.workload.mode == mode::training && i.plan.parameter_server) used[i.plan.parameter_server->index()] = 1;
    for (std::size_t d = 0; d < used.size(); ++d) {
      REQUIRE(j.evaluation.devices[d].used == (used[d] != 0));
      const double idle = used[d] != 0 ? i.devices[d].power.idle.value() * j.evaluation.latency.value() : 0;
      REQUIRE(j.evaluation.devices[d].energy.value() == about(joules_of[d] + idle));
    }
    instance strong = i;
    for (device& d : strong.devices) d.power = {d.power.idle * 2, d.power.active * 2, d.power.send * 2, d.power.receive * 2};
    REQUIRE(judge(strong.plan, m, strong.cluster(), roofline{}).evaluation.energy().value() == 2 * j.evaluation.energy().value());
  });
}

}  // namespace test_bounds
