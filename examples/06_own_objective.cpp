// SPDX-License-Identifier: BSL-1.0
// An objective of one's own: the energy-delay product, which neither the fastest nor the thriftiest plan minimises.
#include <cstdio>

#include <hetplan/hetplan.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

using namespace hetplan;

// [objective]
// Non-decreasing in both: that lets the search drop partial plans that cannot catch up.
struct energy_delay {
  double score(seconds response, joules energy) const { return response.value() * energy.value(); }
};
// [objective]

template <objective Objective>
void plan_for(const char* name, const planning_problem& problem, const Objective& objective) {
  const plan_result result = recipes::dora(problem, objective);
  const auto& [best, e] = result.plans.front();
  std::size_t used = 0;
  for (const device_evaluation& d : e.devices) used += d.used;
  std::printf("%-20s %10s %10s %8.1f kJ s   %zu stages on %zu devices\n", name, readable(e.latency).c_str(), readable(e.energy()).c_str(),
              1e-3 * e.latency.value() * e.energy().value(), best.stages.size(), used);
}

int main() {
  const planning_graph model = zoo::model("qwen3-0.6b", {});
  const cluster home = zoo::cluster("smart-home-2");
  const planning_problem problem{model, home, roofline{}};
  plan_for("latency", problem, minimize_latency{});
  plan_for("energy", problem, minimize_energy{});
  plan_for("energy-delay product", problem, energy_delay{});
}
