// SPDX-License-Identifier: BSL-1.0
// Where may a model be cut? Between the modules of one's own code: a layer "l3.attn" stays with all of "l3".
#include <cstdio>
#include <string>
#include <vector>

#include <range/v3/range/conversion.hpp>
#include <range/v3/view/chunk_by.hpp>
#include <range/v3/view/transform.hpp>

#include <hetplan/coarsen/decomposition.hpp>
#include <hetplan/hetplan.hpp>
#include <hetplan/recipes/dora.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

using namespace hetplan;

// [decomposition]
std::string module_of(const layer& l) { return l.name.substr(0, l.name.find('.')); }

// Neighbours of one module are one block, and all blocks one chain: any cut between modules makes a stage.
struct by_module {
  layer_sequence operator()(const planning_graph& model) const {
    layer_sequence row;
    const auto together = [](const layer& a, const layer& b) { return module_of(a) == module_of(b); };
    for (auto&& block : ranges::views::chunk_by(model.layers(), together)) {
      row.blocks.push_back(block | ranges::views::transform(&layer::id) | ranges::to<std::vector>());
    }
    return row;
  }
};
static_assert(decompose::check_decomposition<by_module>());
// [decomposition]

void print(const char* name, const planning_problem& problem, const ranked_plan& best) {
  std::printf("%s: %s\n", name, readable(best.evaluation.latency).c_str());
  for (const stage& s : best.plan.stages) {
    const layer &first = problem.model[s.layers.front()], &last = problem.model[s.layers.back()];
    std::printf("  %-10s %s ... %s\n", problem.cluster[s.devices.front().device].name.c_str(), first.name.c_str(), last.name.c_str());
  }
}

int main() {
  const planning_graph model = zoo::model("qwen3-0.6b");
  const cluster home = zoo::cluster("smart-home-2");
  const planning_problem problem{model, home, roofline{}};
  std::printf("%zu layers, %zu modules\n", model.size(), by_module{}(model).size());
  print("cut anywhere", problem, recipes::dora(problem, minimize_latency{}).plans.front());

  // [decomposition]
  recipes::dora_options options;
  options.partitioner.rows = {by_module{}};
  const plan_result result = recipes::dora(problem, minimize_latency{}, 10, options);
  // [decomposition]
  print("cut between modules", problem, result.plans.front());
}
