// SPDX-License-Identifier: BSL-1.0
// What Dora's first phase finds on the built-in settings, against the baselines and against itself with parts taken away.
// Prints the tables of docs/reproduction/dora.md; --json: one array. Everything is simulated with contention; batch 32, Adam (Qwen-Omni: SGD).

#include <cstdio>
#include <string>
#include <vector>

#include <hetplan/hetplan.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

#include "measure.hpp"
#include "report.hpp"

using namespace hetplan;

namespace {

using row = std::vector<std::string>;

std::string latency(const plan_result& r) {
  return r.plans.empty() ? "-" : readable(r.plans.front().predicted->latency);
}

job training_of(const std::string& model) {
  job j{.batch = 32};
  if (model == "qwen-omni") j.workload.optimizer_factor = 0;
  return j;
}

/// Calls f(row, problem): the row begins with setting and model.
template <class F>
void for_each_case(bool quick, F&& f) {
  for (const char* setting : {"smart-home-1", "smart-home-2", "traffic-monitor", "edge-cluster"}) {
    const cluster devices = zoo::cluster(setting);
    for (const char* name : {"bert-base", "qwen3-0.6b", "qwen3-1.7b", "qwen-omni"}) {
      if (quick && std::string(name) != "bert-base") continue;
      const planning_graph model = zoo::model(name, {});
      f(row{setting, name}, planning_problem{model, devices, profiled_or_roofline{}, training_of(name)});
    }
  }
}

bench::report against_the_baselines(bool quick) {
  const minimize_latency fast;
  bench::report table("Against the baselines: time of one training iteration",
                      {"setting", "model", "on-device", "data-parallel", "pipeline", "dora, phase 1", "its energy", "planning"});
  for_each_case(quick, [&](row r, const auto& problem) {
    const plan_result dora = recipes::dora_partitioner(problem, fast, 1);
    for (const plan_result& other : {recipes::on_device(problem, fast, 1), recipes::data_parallel(problem, fast, 1), recipes::pipeline(problem, fast, 1)}) {
      r.push_back(latency(other));
    }
    r.push_back(latency(dora));
    r.push_back(dora.plans.empty() ? "-" : readable(dora.plans.front().predicted->energy()));
    char planning[32];
    std::snprintf(planning, sizeof planning, "%.0f ms", 1e3 * dora.elapsed.value());
    r.push_back(planning);
    table.add(std::move(r));
  });
  return table;
}

bench::report parts_taken_away(bool quick) {
  struct variant {
    const char* name;
    recipes::partitioner_options how;
  };
  const variant variants[] = {{"K 1", {.k = 1}},
                              {"K 3", {.k = 3}},
                              {"K 10", {}},
                              {"K 30", {.k = 30}},
                              {"blocks of 3 %", {.merge_share = 0.03}},
                              {"two substates only", {.across_chains = false}}};
  row headings{"setting", "model"};
  for (const variant& v : variants) headings.emplace_back(v.name);
  bench::report table("Parts taken away", headings);
  for_each_case(quick, [&](row r, const auto& problem) {
    for (const variant& v : variants) r.push_back(latency(recipes::dora_partitioner(problem, minimize_latency{}, 1, v.how)));
    table.add(std::move(r));
  });
  return table;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::options options(argc, argv);
  bench::print({against_the_baselines(options.quick), parts_taken_away(options.quick)}, options);
}
