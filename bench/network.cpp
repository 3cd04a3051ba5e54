// SPDX-License-Identifier: BSL-1.0
// What knowing the network is worth: Dora's ablation (Fig 14), its top-K curve (Fig 17) and contention study (Fig 2).
// Prints tables of docs/reproduction/dora.md; --json: one array. Everything is simulated on the real, shared network.

#include <cstdio>
#include <string>
#include <vector>

#include <hetplan/cluster/uncontended.hpp>
#include <hetplan/hetplan.hpp>
#include <hetplan/solve/glpk.hpp>
#include <hetplan/zoo/devices.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

#include "measure.hpp"
#include "report.hpp"

using namespace hetplan;

namespace {

using row = std::vector<std::string>;
using problem = planning_problem<profiled_or_roofline, judge_models<>, glpk_lp>;

problem problem_of(const planning_graph& model, const cluster& devices, const job& wanted) { return {model, devices, {}, wanted, {}, {}}; }

job job_of(mode how, const std::string& model) {
  job j{.workload = {.mode = how}, .batch = how == mode::training ? 32 : how == mode::inference ? 8 : 4};
  if (model == "qwen-omni") j.workload.optimizer_factor = 0;
  if (how == mode::generation) j.workload.context = 512;
  return j;
}

std::string response(const plan_result& r) { return r.plans.empty() ? "-" : readable(r.plans.front().predicted->response()); }

/// The best plan of a planner that sees no contention, on the real network.
plan_result best_on_paper(const problem& real, plan_result* ideal = nullptr) {
  const cluster private_network = uncontended(real.cluster);
  const plan_result seen = recipes::dora_partitioner(problem_of(real.model, private_network, real.job), minimize_latency{}, 1);
  if (ideal != nullptr) *ideal = seen;
  plan_result judged;
  for (plan p : seen.plans) {
    p.predicted = judge(p, real.model, real.cluster, real.cost).evaluation;
    judged.plans.push_back(std::move(p));
  }
  return judged;
}

plan_result scheduled_even_split(const problem& p) {
  const plan_result even = recipes::even_split(p, minimize_latency{}, 10);
  return even.plans.empty() ? even : schedule::refine(p, minimize_latency{}, even.plans, 1);
}

/// How far the best plan's transfers are from the best order, at most.
std::string order_gap(const plan_result& r) {
  if (r.plans.empty()) return "-";
  const evaluation& e = *r.plans.front().predicted;
  const double percent = 100 * (e.latency / e.contention_bound - 1);
  if (percent < 1e-7) return "0";
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %%", percent);
  return percent < 0.01 ? "< 0.01 %" : text;
}

bench::report ablation(bool quick) {
  bench::report table("Phases: time of an iteration, in generation between tokens",
                      {"setting", "job", "on paper", "even split", "phase 2 only", "phase 1 only", "both", "order at most off", "planning"});
  for (const char* setting : {"smart-home-1", "smart-home-2", "traffic-monitor", "edge-cluster"}) {
    const cluster devices = zoo::cluster(setting);
    for (const char* name : {"qwen3-1.7b", "qwen-omni"}) {
      if (quick && std::string(name) == "qwen-omni") continue;
      const planning_graph model = zoo::model(name, {});
      for (const mode how : {mode::training, mode::inference, mode::generation}) {
        const problem p = problem_of(model, devices, job_of(how, name));
        const plan_result both = recipes::dora(p, minimize_latency{}, 1);
        char planning[32];
        std::snprintf(planning, sizeof planning, "%.0f ms", 1e3 * both.elapsed.value());
        table.add({setting, std::string(name) + ", " + std::string(to_string(how)), response(best_on_paper(p)),
                   response(recipes::even_split(p, minimize_latency{}, 1)), response(scheduled_even_split(p)),
                   response(recipes::dora_partitioner(p, minimize_latency{}, 1)), response(both), order_gap(both), planning});
      }
    }
  }
  return table;
}

bench::report top_k(bool quick) {
  const std::vector<int> ks{1, 3, 5, 10, 15, 30};
  row headings{"setting", "model"};
  for (const int k : ks) headings.push_back("K " + std::to_string(k));
  bench::report table("Top K: a training iteration by the candidates that phase 1 hands over", headings);
  for (const char* setting : {"smart-home-1", "smart-home-2", "traffic-monitor", "edge-cluster"}) {
    const cluster devices = zoo::cluster(setting);
    for (const char* name : {"qwen3-1.7b", "qwen-omni"}) {
      if (quick) continue;
      const planning_graph model = zoo::model(name, {});
      row r{setting, name};
      for (const int k : ks) r.push_back(response(recipes::dora(problem_of(model, devices, job_of(mode::training, name)), minimize_latency{}, 1, {.partitioner = {.k = k}})));
      table.add(std::move(r));
    }
  }
  return table;
}

/// Two laptops and two phones on 650 Mbit/s: the plan for private wires there, the same plan in the air, the best for the air.
bench::report contention(bool quick) {
  const std::vector<device> home{zoo::device("rtx4050", "laptop0"), zoo::device("rtx4050", "laptop1"), zoo::device("snapdragon-8-elite", "phone0"),
                                 zoo::device("snapdragon-8-elite", "phone1")};
  const cluster air("two laptops, two phones", home, shared_medium{650_Mbit_per_s, 2_ms});
  bench::report table("Contention: two laptops and two phones on one 650 Mbit/s Wi-Fi",
                      {"job", "model", "private wires", "in the air", "slower", "in the air, scheduled", "best for the air", "gain"});
  for (const mode how : {mode::training, mode::inference, mode::generation}) {
    for (const char* name : {"qwen3-0.6b", "qwen3-1.7b"}) {
      if (quick && how != mode::training) continue;
      const planning_graph model = zoo::model(name, {});
      const problem p = problem_of(model, air, job_of(how, name));
      plan_result ideal;
      const plan_result real = best_on_paper(p, &ideal);
      const plan_result scheduled = real.plans.empty() ? real : schedule::refine(p, minimize_latency{}, real.plans, 1);
      const plan_result best = recipes::dora(p, minimize_latency{}, 1, {.partitioner = {.k = 30}});
      char slower[32] = "-", gain[32] = "-";
      if (!real.plans.empty() && !best.plans.empty()) {
        const seconds in_air = real.plans.front().predicted->response();
        std::snprintf(slower, sizeof slower, "%.2f x", in_air / ideal.plans.front().predicted->response());
        std::snprintf(gain, sizeof gain, "%.2f x", in_air / best.plans.front().predicted->response());
      }
      table.add({std::string(to_string(how)), name, response(ideal), response(real), slower, response(scheduled), response(best), gain});
    }
  }
  return table;
}

/// A pipeline of 8 stages on two unequal devices each: where replicas exchange much, order pays.
template <class Network>
void add_replicas(bench::report& table, const char* name, const Network& net, int microbatches) {
  std::vector<device> devices;
  for (int d = 0; d < 16; ++d) devices.push_back({.name = "d" + std::to_string(d), .memory = 8_GB, .compute = flops_per_second(1e11)});
  const cluster c("sixteen", devices, net);
  planning_graph_builder layers("pipeline");
  plan p{.model = "pipeline", .cluster = "sixteen", .microbatch_size = 3, .microbatches = microbatches};
  for (int s = 0; s < 8; ++s) {
    layers.add_layer({.name = "l" + std::to_string(s), .forward_flops = flops(1e9 * (1 + s * 5 % 3)), .weight = 20_MB, .activation = 1_MB});
    if (s > 0) layers.add_edge(layer_id(s - 1), layer_id(s), 1_MB, 1_MB);
    p.stages.push_back({.name = "s" + std::to_string(s), .layers = {layer_id(s)}, .devices = {{device_id(2 * s), 2}, {device_id(2 * s + 1), 1}}});
  }
  const schedule::cep_graph cep(tasks::expand(p, std::move(layers).build(), c, roofline{}), c.network());
  const schedule::network_schedule alone = schedule::uncontrolled(cep), best = schedule::schedule_transfers(cep);
  char gain[32], gap[32];
  std::snprintf(gain, sizeof gain, "%.1f %%", 100 * (1 - best.latency / alone.latency));
  std::snprintf(gap, sizeof gap, "%.2f %%", std::max(0.0, 100 * best.gap));
  table.add({name, std::to_string(cep.tasks().transfers.size()), readable(alone.latency), readable(schedule::list_schedule(cep).latency),
             readable(schedule::list_schedule(cep, schedule::longest_tail_first{}).latency), readable(best.latency), gain, gap});
}

bench::report replicas(bool quick) {
  bench::report table("Replicas: 8 stages, two devices each, 64 microbatches of 3",
                      {"network", "transfers", "left alone", "critical path first", "longest tail first", "searched", "gain", "at most off"});
  const int m = quick ? 4 : 64;
  add_replicas(table, "one medium, 900 Mbit/s", shared_medium{900_Mbit_per_s, 2_ms}, m);
  add_replicas(table, "ring, 200 Mbit/s", ring{200_Mbit_per_s, 1_ms}, m);
  add_replicas(table, "half-duplex ring, 200 Mbit/s", ring{200_Mbit_per_s, 1_ms, duplex::half}, m);
  add_replicas(table, "star, 100 Mbit/s", star{100_Mbit_per_s, 1_ms}, m);
  add_replicas(table, "half-duplex star, 200 Mbit/s", star{200_Mbit_per_s, 1_ms, duplex::half}, m);
  return table;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::options options(argc, argv);
  bench::print({ablation(options.quick), top_k(options.quick), contention(options.quick), replicas(options.quick)}, options);
}
