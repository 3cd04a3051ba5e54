// SPDX-License-Identifier: BSL-1.0
#include <cstdio>
#include <iostream>
#include <optional>

#include <hetplan/core/crew.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/io/json_text.hpp>
#include <hetplan/io/plan_json.hpp>
#include <hetplan/io/results_json.hpp>

#include "commands.hpp"

namespace cli {

using namespace hetplan;

namespace {

void print(const std::vector<io::comparison_row>& rows, const cluster& devices) {
  std::printf("%-19s %10s %10s %10s %10s   %s\n", "planner", "latency", "energy", "bound", "gap", "per device: energy, memory");
  std::optional<infeasibility_proof> proof;
  for (const io::comparison_row& row : rows) {
    if (!row.best) {
      const bool memory = row.status.result != outcome::stopped && row.broken == limit_kind::memory;  // the reason begins with the limit
      std::printf("%-19s %s%s\n", row.planner.c_str(), memory ? "out of " : (std::string(to_string(row.status.result)) + ": ").c_str(),
                  escaped(row.status.reason).c_str());
      if (row.status.proof) proof = row.status.proof;
      continue;
    }
    const evaluation& e = row.best->evaluation;
    std::printf("%-19s %10s %10s %10s %8.1f %%  ", row.planner.c_str(), readable(e.latency).c_str(), readable(e.energy()).c_str(),
                readable(e.bound).c_str(), 100 * readable_gap(e.gap));
    for (const device& d : devices.devices()) {
      const device_evaluation& x = e.devices[d.id.index()];
      if (x.used) std::printf(" %s %s, %s;", escaped(d.name).c_str(), readable(x.energy).c_str(), readable(x.peak_memory).c_str());
    }
    std::printf("\n");
    if (!row.status.ok())
      std::printf("%-19s %s\n", "", (std::string(to_string(row.status.result)) + ": " + escaped(row.status.reason)).c_str());
  }
  const bool any = std::any_of(rows.begin(), rows.end(), [](const io::comparison_row& row) { return row.best.has_value(); });
  if (proof) std::cout << (any ? "others find no plan because there is none of their kind\n" : "no plan is possible\n") << describe(*proof);
}

}  // namespace

int compare(const common_options& options, const compare_options& o) {
  const planning_graph model = load_model(options, o.model);
  const cluster devices = load_cluster(o.cluster);
  const job wanted = load_job(o.job, {}, "", o.schedules);
  check_pair(model, devices, o.cluster, wanted.workload);
  check_pins(o.job, wanted, model, devices);
  for (const std::string& name : o.planners) require_planner("--planners", name);
  require_each_once("--planners", o.planners);
  std::vector<std::string> names = o.planners.empty() ? planner_names() : o.planners;
  // By default, only planners for such a job.
  if (o.planners.empty() && wanted.workload.mode != mode::inference) std::erase_if(names, places_operators);
  common_options each = options;  // planners run side by side, each on one thread
  each.threads.reset();
  for (const std::string& line : unused_options(each, names, wanted.workload.mode == mode::inference)) warn(line);
  for (const std::string& line : unused_wishes(wanted, names)) warn(line);
  const problem p{model, devices, any_cost_model(profiled_or_roofline{}), wanted, {}, glpk_lp{}, options.budget};
  numbered_work answers(names.size(), options.threads.value_or(0), [&](std::size_t i) {
    progress bar(each, names[i]);
    try {
      return run_planner(each, names[i], p, 1, bar);
    } catch (const invalid_input& e) {  // of one planner: the others answer
      if (names.size() == 1) throw;
      plan_result none;
      none.status = {outcome::none_found, e.what()};
      return none;
    }
  });
  std::vector<io::comparison_row> rows;
  bool any = false;
  for (std::size_t i = 0; i < names.size(); ++i) {
    plan_result result = answers.take(i);
    any = any || !result.plans.empty();
    io::comparison_row row{.planner = names[i], .status = result.status, .elapsed = result.elapsed};
    if (result.binding) row.broken = result.binding->kind;
    if (!result.plans.empty()) row.best = std::move(result.plans.front());
    rows.push_back(std::move(row));
  }
  if (options.json) {
    std::cout << io::write_comparison(rows, model, devices);
  } else {
    print(rows, devices);
  }
  return any ? 0 : 1;
}

}  // namespace cli
