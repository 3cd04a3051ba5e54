// SPDX-License-Identifier: BSL-1.0
// Work with a deadline: neither the fastest plan nor the most frugal one, but each for a part of the time.
#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <range/v3/view/enumerate.hpp>

#include <hetplan/adapt/replication.hpp>
#include <hetplan/hetplan.hpp>
#include <hetplan/mix/pareto_set.hpp>
#include <hetplan/mix/progress.hpp>

using namespace hetplan;

int main() {
  planning_graph_builder layers("blocks");
  for (int i = 0; i < 8; ++i) {
    layers.add_layer({.name = "block" + std::to_string(i), .forward_flops = 60_GFLOP, .weight = 20_MB, .activation = 8_MB});
    if (i > 0) layers.add_edge(layer_id(i - 1), layer_id(i), 3_MB, 3_MB);
  }
  const planning_graph model = std::move(layers).build();
  const cluster home("home",
                     {{.name = "laptop", .memory = 4_GB, .compute = 9_TFLOP_per_s, .power = {8_W, 90_W}},
                      {.name = "tablet", .memory = 4_GB, .compute = 3_TFLOP_per_s, .power = {2_W, 10_W}},
                      {.name = "phone", .memory = 4_GB, .compute = 2_TFLOP_per_s, .power = {1_W, 6_W}}},
                     shared_medium{600_Mbit_per_s, 2_ms});
  const planning_problem problem{model, home, roofline{}, job{.batch = 32}};

  std::vector<ranked_plan> plans = recipes::dora(problem, minimize_latency{}, 20).plans;
  for (ranked_plan& p : recipes::dora(problem, minimize_energy{}, 20).plans) plans.push_back(std::move(p));
  const auto front = mix::pareto_plans(plans, mix::response_time{}, mix::total_energy{});  // fastest first
  mix::plan_rates rates{.idle_W = 11};
  for (const auto& entry : front.entries()) rates.plans.push_back({1 / entry.point[0], entry.point[1] / entry.point[0]});
  for (const auto& from : front.entries()) {
    const adapt::holdings held = adapt::holdings_of(plans[from.item].plan, model, home.size());
    for (const auto& to : front.entries()) {
      rates.switches.between.push_back(*adapt::estimate_switch(problem, held, plans[to.item].plan, adapt::nominal(home)));
    }
  }
  for (const auto& [i, e] : ranges::views::enumerate(front.entries())) std::printf("plan %zu: %.2f s, %.0f J\n", i, e.point[0], e.point[1]);

  const double work = 600, deadline_s = 3600;
  const mix::mixture m = mix::mix(rates, {.horizon_s = deadline_s, .progress = work});
  for (const mix::mixture_part& part : m.parts) std::printf("%.0f s of plan %zu, ", part.seconds, part.plan);
  std::printf("%.0f s idle: %.0f kJ\n", m.idle_s, 1e-3 * m.energy_J);

  const mix::uniform_progress controller{rates};
  mix::job_state left{.work_left = work, .time_left_s = deadline_s};
  double energy_J = 0;
  while (left.time_left_s > 0) {
    const mix::decision d = controller.decide(left);
    const double luck = left.time_left_s > deadline_s / 2 ? 0.9 : 1.0;  // slower than expected at first
    const double rate = d.plan ? luck * rates.plans[*d.plan].rate : 0;
    const double works_s = rate > 0 ? std::min(d.seconds - d.pause_s, left.work_left / rate) : 0;
    energy_J += rates.idle_W * (d.seconds - works_s);
    if (d.plan) energy_J += rates.plans[*d.plan].power_W * works_s + rates.cost(left.running, *d.plan).energy_J;
    left = mix::after(left, d, d.seconds, rate * works_s);
  }
  std::printf("where the first half is 10 %% slower: %.0f kJ, %.0f of %.0f iterations left\n", 1e-3 * energy_J, left.work_left, work);
}
