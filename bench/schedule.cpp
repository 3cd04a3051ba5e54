// SPDX-License-Identifier: BSL-1.0
// The network scheduler's blocks on pipelines of growing size, and the refinement of a candidate.
//
// Targets: a list schedule of 8 stages and 64 microbatches in 20 ms, the whole refinement of one candidate in 200 ms.

#include <string>
#include <vector>

#include <hetplan/hetplan.hpp>
#include <hetplan/schedule/exact_schedule.hpp>
#include <hetplan/solve/glpk.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

#include "measure.hpp"
#include "support/random_cep.hpp"

using namespace hetplan;

namespace {

/// A training pipeline whose stages compute about as long as the air takes for their tensors, each stage on two devices.
schedule::cep_graph pipeline(const cluster& air, int stages, int microbatches) {
  planning_graph_builder b("pipeline");
  for (int s = 0; s < stages; ++s) {
    b.add_layer({.name = "l" + std::to_string(s), .forward_flops = flops(1e9 * (1 + s % 3)), .weight = 20_MB, .activation = 1_MB});
    if (s > 0) b.add_edge(layer_id(s - 1), layer_id(s), 1_MB, 1_MB);
  }
  plan p{.model = "pipeline", .cluster = air.name(), .microbatch_size = 2, .microbatches = microbatches};
  for (int s = 0; s < stages; ++s) {
    p.stages.push_back(
        {.name = "s" + std::to_string(s), .layers = {layer_id(s)}, .devices = {{device_id(2 * s), 1}, {device_id(2 * s + 1), 1}}});
  }
  return {tasks::expand(p, std::move(b).build(), air, roofline{}), air.network()};
}

}  // namespace

int main(int argc, char** argv) {
  const bench::options options(argc, argv);
  bench::table table(options);
  std::vector<device> devices;
  for (int d = 0; d < 16; ++d) devices.push_back({.name = "d" + std::to_string(d), .memory = 8_GB, .compute = flops_per_second(1e11)});
  const cluster air("air", devices, shared_medium{900_Mbit_per_s, 2_ms});

  for (const auto& [stages, microbatches] : std::vector<std::pair<int, int>>{{4, 16}, {8, 64}}) {
    const std::string size = std::to_string(stages) + " stages x " + std::to_string(microbatches) + ", ";
    const bool wanted = stages == 8;
    const schedule::cep_graph cep = pipeline(air, stages, microbatches);
    const std::string transfers = std::to_string(cep.tasks().transfers.size()) + " transfers";
    table.run_within(size + transfers + ": left alone", 21, 0, [&](std::size_t) { return schedule::uncontrolled(cep); });
    table.run_within(size + "list schedule", 21, wanted ? 0.020 : 0, [&](std::size_t) { return schedule::list_schedule(cep); });
    table.run_within(size + "list schedule, 4 chunks", 21, 0,
                     [&](std::size_t) { return schedule::list_schedule(cep, schedule::critical_path_first{}, {.chunks = 4}); });
    table.run_within(size + "refinement", 5, wanted ? 0.200 : 0,
                     [&](std::size_t) { return schedule::searched_transfers{}(cep, {.lp = glpk_lp{}}); });
  }
  for (const char* setting : {"smart-home-1", "smart-home-2", "traffic-monitor", "edge-cluster"}) {
    const cluster place = zoo::cluster(setting);
    for (const char* name : {"qwen3-1.7b", "qwen-omni"}) {
      if (options.quick && std::string(name) == "qwen-omni") continue;
      const planning_graph model = zoo::model(name, {});
      job j{.batch = 32};
      j.workload.optimizer_factor = 0;
      const planning_problem p{model, place, profiled_or_roofline{}, j, judge_models{}, glpk_lp{}};
      const plan_result found = recipes::dora_partitioner(p, minimize_latency{}, 10);
      // Candidates differ; their median is what one costs.
      table.run_within(std::string("a candidate of ") + name + ", " + setting, found.plans.size(), 0.200, [&](std::size_t i) {
        return schedule::detail::refine_one(p, minimize_latency{}, found.plans[i].plan, nullptr, {});
      });
    }
  }
  for (const int transfers : {4, 6, 7}) {
    const int runs = options.quick ? 2 : 11;
    table.run_within("exact, " + std::to_string(transfers) + " transfers", static_cast<std::size_t>(runs), 0, [&](std::size_t i) {
      const test::random_cep r = test::random_small_cep(i + 1, transfers, transfers);
      const schedule::cep_graph cep(r.graph, r.cluster.network());
      return schedule::exact_schedule(cep, schedule::local_search(cep), glpk_milp{});
    });
  }
}
