// SPDX-License-Identifier: BSL-1.0
// What Dora's first phase finds on the built-in settings, against the baselines and against itself with parts taken away.
// Prints the tables of docs/reproduction/dora.md. Everything is simulated with contention; batch 32, Adam (Qwen-Omni: SGD).

#include <cstdio>
#include <string>

#include <hetplan/hetplan.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

#include "measure.hpp"

using namespace hetplan;

namespace {

std::string latency(const plan_result& r) {
  return r.plans.empty() ? "-" : readable(r.plans.front().predicted->latency);
}

job training_of(const std::string& model) {
  job j{.batch = 32};
  if (model == "qwen-omni") j.workload.optimizer_factor = 0;
  return j;
}

template <class Row>
void for_each_case(bool quick, Row&& row) {
  for (const char* setting : {"smart-home-1", "smart-home-2", "traffic-monitor", "edge-cluster"}) {
    const cluster devices = zoo::cluster(setting);
    for (const char* name : {"bert-base", "qwen3-0.6b", "qwen3-1.7b", "qwen-omni"}) {
      if (quick && std::string(name) != "bert-base") continue;
      const planning_graph model = zoo::model(name, {});
      row(std::string("| ") + setting + " | " + name, planning_problem{model, devices, profiled_or_roofline{}, training_of(name)});
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bench::options options(argc, argv);
  const minimize_latency fast;

  std::printf("| setting | model | on-device | data-parallel | pipeline | dora | its energy | planning |\n|---|---|---|---|---|---|---|---|\n");
  for_each_case(options.quick, [&](const std::string& head, const auto& problem) {
    const plan_result dora = recipes::dora(problem, fast, 1);
    std::printf("%s | %s | %s | %s | **%s** | %s | %.0f ms |\n", head.c_str(), latency(recipes::on_device(problem, fast, 1)).c_str(),
                latency(recipes::data_parallel(problem, fast, 1)).c_str(), latency(recipes::pipeline(problem, fast, 1)).c_str(), latency(dora).c_str(),
                dora.plans.empty() ? "-" : readable(dora.plans.front().predicted->energy()).c_str(), 1e3 * dora.elapsed.value());
  });

  struct variant {
    const char* name;
    recipes::dora_options how;
  };
  const variant variants[] = {{"K 1", {.k = 1}},
                              {"K 3", {.k = 3}},
                              {"K 10", {}},
                              {"K 30", {.k = 30}},
                              {"blocks of 3 %", {.merge_share = 0.03}},
                              {"two substates only", {.across_chains = false}}};
  std::printf("\n| setting | model |");
  for (const variant& v : variants) std::printf(" %s |", v.name);
  std::printf("\n|---|---|---|---|---|---|---|---|\n");
  for_each_case(options.quick, [&](const std::string& head, const auto& problem) {
    std::printf("%s |", head.c_str());
    for (const variant& v : variants) std::printf(" %s |", latency(recipes::dora(problem, fast, 1, v.how)).c_str());
    std::printf("\n");
  });
}
