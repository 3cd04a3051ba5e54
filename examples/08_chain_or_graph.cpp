// SPDX-License-Identifier: BSL-1.0
// Planning a multimodal model as a graph or as the chain that most planners see. In the chain the towers for sound
// and sight stand one behind the other, and what one makes is handed through the other; in the graph they run at once.
#include <cstdio>

#include <hetplan/hetplan.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

using namespace hetplan;

int main() {
  const planning_graph graph = zoo::model("qwen-omni", {});
  const planning_graph chain = chain_view(graph);  // the same layers in a row
  const job jobs[] = {{.workload = {.mode = mode::inference}, .batch = 1},
                      {.workload = {.mode = mode::inference}, .batch = 2},
                      {.workload = {.mode = mode::training, .optimizer_factor = 0}, .batch = 32}};
  std::printf("%-16s %-16s %10s %10s %8s\n", "setting", "job", "chain", "graph", "gain");
  for (const char* setting : {"smart-home-1", "smart-home-2", "traffic-monitor", "edge-cluster"}) {
    const cluster devices = zoo::cluster(setting);
    for (const job& wanted : jobs) {
      const plan_result as_chain = recipes::dora(planning_problem{chain, devices, roofline{}, wanted}, minimize_latency{}, 1);
      const plan_result as_graph = recipes::dora(planning_problem{graph, devices, roofline{}, wanted}, minimize_latency{}, 1);
      const seconds slow = as_chain.plans.front().evaluation.latency, fast = as_graph.plans.front().evaluation.latency;
      std::printf("%-16s %-10s of %-3d %10s %10s %6.1f %%\n", setting, std::string(to_string(wanted.workload.mode)).c_str(), wanted.batch,
                  readable(slow).c_str(), readable(fast).c_str(), 100 * (1 - fast / slow));
    }
  }
}
