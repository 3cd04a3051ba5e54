// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <utility>

#include <hetplan/io/text.hpp>
#include <hetplan/recipes/alpa.hpp>
#include <hetplan/recipes/asteroid.hpp>
#include <hetplan/recipes/dapple.hpp>
#include <hetplan/recipes/data_parallel.hpp>
#include <hetplan/recipes/dora_with_baselines.hpp>
#include <hetplan/recipes/edgeshard.hpp>
#include <hetplan/recipes/even_split.hpp>
#include <hetplan/recipes/gpipe.hpp>
#include <hetplan/recipes/hetpipe.hpp>
#include <hetplan/recipes/metis.hpp>
#include <hetplan/recipes/on_device.hpp>
#include <hetplan/recipes/pipedream.hpp>
#include <hetplan/recipes/pipeline.hpp>

#include "commands.hpp"

namespace cli {

using namespace hetplan;

namespace {

struct named_planner {
  const char* name;
  plan_result (*plan)(const planning_problem&, const any_objective&, int keep, const candidate_observer&);
};

/// Every planner without options of its own, in the order of the comparison.
constexpr named_planner plain_planners[] = {{"on-device", recipes::on_device}, {"data-parallel", recipes::data_parallel},
                                            {"pipeline", recipes::pipeline},   {"gpipe", recipes::gpipe},
                                            {"pipedream", recipes::pipedream}, {"dapple", recipes::dapple},
                                            {"hetpipe", recipes::hetpipe},     {"edgeshard", recipes::edgeshard},
                                            {"alpa", recipes::alpa},           {"metis", recipes::metis},
                                            {"asteroid", recipes::asteroid}};

/// Dora's scheduler alone, on an even split.
plan_result schedule_even_split(const problem& p, const objective_of_job& objective, int keep, const schedule::refine_options& how,
                                progress& observer) {
  candidate_rounds rounds(2, objective, observer);
  const plan_result even = recipes::even_split(p, objective, std::max(keep, 10), rounds.part());
  if (!even.status.ok()) return even;
  plan_result scheduled = schedule::refine(p, objective, even.plans, keep, how, rounds.part());
  scheduled.candidates += even.candidates;
  scheduled.elapsed += even.elapsed;
  return scheduled;
}

}  // namespace

const std::vector<std::string>& planner_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const named_planner& p : plain_planners) all.emplace_back(p.name);
    all.insert(all.end(), {"dora", "dora-with-baselines"});
    return all;
  }();
  return names;
}

void require_planner(const char* option, const std::string& name) {
  const std::vector<std::string>& known = planner_names();
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  throw invalid_input(std::string(option) + ": expected one of " + io::joined(known) + ", got " + io::in_quotes(name) +
                      io::suggestion(name, known));
}

std::vector<std::string> unused_options(const common_options& options, std::span<const std::string> planners, dora_phase phase) {
  std::vector<std::string> lines;
  const auto schedules = [&](const std::string& name) { return name.starts_with("dora") && phase != dora_phase::partitioner; };
  if (std::any_of(planners.begin(), planners.end(), schedules)) return lines;
  const std::string why = ": only dora's search for schedules of transfers takes it; not used";
  if (options.seed) lines.push_back("--seed" + why);
  if (options.threads) lines.push_back("--threads" + why);
  return lines;
}

plan_result run_planner(const common_options& options, const std::string& name, const problem& p, int keep, progress& observer,
                        dora_phase phase) {
  const objective_of_job objective(p.job);
  const auto seed = static_cast<std::uint64_t>(options.seed.value_or(standard_seed));
  const schedule::searched_transfers scheduler{.search = {.seed = seed}, .orders = {.seed = seed}};
  const recipes::dora_options how{.partitioner = {.k = std::max(keep, recipes::partitioner_options{}.k)},
                                  .network = {.threads = options.threads.value_or(1), .scheduler = scheduler}};
  if (name == "dora" && phase == dora_phase::both) return recipes::dora(p, objective, keep, how, observer);
  if (name == "dora" && phase == dora_phase::partitioner) return recipes::dora_partitioner(p, objective, keep, how.partitioner, observer);
  if (name == "dora") return schedule_even_split(p, objective, keep, how.network, observer);
  if (name == "dora-with-baselines") return recipes::dora_with_baselines(p, objective, keep, how, observer);

  const auto known =
      std::find_if(std::begin(plain_planners), std::end(plain_planners), [&](const named_planner& each) { return name == each.name; });
  HETPLAN_ASSERT(known != std::end(plain_planners));  // require_planner
  return known->plan(p, objective, keep, observer);
}

}  // namespace cli
