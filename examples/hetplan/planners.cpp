// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <utility>

#include <hetplan/io/json_document.hpp>
#include <hetplan/recipes/compare.hpp>

#include "commands.hpp"
#include "named_models.hpp"

namespace cli {

using namespace hetplan;

namespace {

const recipes::known_planner& planner_named(const std::string& name) {
  const auto* known = std::ranges::find(recipes::planners, name, &recipes::known_planner::name);
  HETPLAN_ASSERT(known != recipes::planners.end());  // see require_planner
  return *known;
}

recipes::placement_view view_of(const common_options& options) {
  recipes::placement_view view;
  for (const place::contention c : place::all_contentions) {
    if (options.contention == to_string(c)) view.network.contention = c;
  }
  if (options.copies == to_string(transfer_copies::per_edge)) view.network.copies = transfer_copies::per_edge;
  if (!options.fuse.empty()) view.fusion = coarsen::no_fusion();  // the model is already fused
  return view;
}

bool searches(const std::string& planner) { return planner == "dora"; }

/// Throws for a named model of Dora's search that none of these planners uses.
void require_search_options(const common_options& options, std::span<const std::string> planners, dora_phase phase) {
  require_each_once("--rows", options.rows);
  const bool any = std::any_of(planners.begin(), planners.end(), searches);
  const auto require = [&](const char* option, bool given, const std::string& what, dora_phase without) {
    if (!given || (any && phase != without)) return;
    const std::string who = any                    ? "phase " + std::to_string(static_cast<int>(phase)) + " of dora chooses"
                            : planners.size() == 1 ? "planner " + io::in_quotes(planners.front()) + " chooses"
                                                   : "planners " + io::joined(planners) + " choose";
    throw invalid_input(option + (": " + who) + " no " + what + (any ? "" : "; dora does"));
  };
  require("--rows", !options.rows.empty(), "rows", dora_phase::scheduler);
  require("--law", !options.law.empty(), "law", dora_phase::scheduler);
  require("--orders", !options.orders.empty(), "orders of devices", dora_phase::scheduler);
  require("--transfers", !options.transfers.empty(), "transfer scheduler", dora_phase::partitioner);
}

/// Runs Dora's scheduler alone on an even split.
plan_result schedule_even_split(const problem& p, const any_objective& objective, int keep, const schedule::refine_options& how,
                                const candidate_observer& observer) {
  candidate_rounds rounds(2, objective, observer);
  const plan_result even = recipes::even_split(p, objective, std::max(keep, 10), rounds.part());
  if (!even.status.ok()) return even;
  plan_result scheduled = schedule::refine(p, objective, plans_of(even.plans), keep, how, rounds.part());
  scheduled.candidates += even.candidates;
  scheduled.elapsed += even.elapsed;
  return scheduled;
}

}  // namespace

const std::vector<std::string>& planner_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& p : recipes::planners) all.emplace_back(p.name);
    return all;
  }();
  return names;
}

bool places_operators(const std::string& planner) { return planner_named(planner).place != nullptr; }

void require_planner(const char* option, const std::string& name) {
  if (name == "dora-with-baselines") throw invalid_input(option + std::string(": dora has the baselines' plans among its own; use dora"));
  const std::string fault = fault_in_name(name, planner_names());
  if (!fault.empty()) throw invalid_input(std::string(option) + ": " + fault);
}

std::vector<std::string> unused_options(const common_options& options, std::span<const std::string> planners, bool inference,
                                        dora_phase phase) {
  require_search_options(options, planners, phase);
  const bool search = std::any_of(planners.begin(), planners.end(), searches);
  std::vector<std::string> lines;
  const bool any_places = std::any_of(planners.begin(), planners.end(), places_operators);
  if (!any_places || !inference) {
    const std::string why = any_places ? "operators are placed in inference alone" : "only planners that place operators take it";
    if (!options.contention.empty()) lines.push_back("--contention: " + why + "; not used");
    if (!options.copies.empty()) lines.push_back("--copies: " + why + "; not used");
  }
  if (options.threads && !search) lines.emplace_back("--threads: only dora's searches take it; not used");
  if (!options.seed) return lines;
  if (!search || phase == dora_phase::partitioner) {
    lines.emplace_back("--seed: only dora's search for schedules of transfers takes it; not used");
  } else if (!options.transfers.empty() && options.transfers != known_transfers().front().name) {
    lines.push_back("--seed: --transfers " + options.transfers + " draws nothing; not used");
  }
  return lines;
}

std::vector<std::string> unused_wishes(const job& wanted, std::span<const std::string> planners, bool top) {
  const bool one = planners.size() == 1;
  const std::string who = (one ? "planner " + io::in_quotes(planners.front()) + " " : "planners " + io::joined(planners) + " ");
  std::vector<std::string> lines;
  if (wanted.split_tensors && std::none_of(planners.begin(), planners.end(), searches))
    lines.push_back("split_tensors: " + who +
                    (one && planners.front() == "deepcee" ? "makes grids in any case"
                     : one                                ? "makes no grids"
                                                          : "make no grids by it") +
                    "; not used");
  if (wanted.memory_savers != memory_savers{} && std::none_of(planners.begin(), planners.end(), searches))
    lines.push_back("memory_savers: " + who + (one ? "uses" : "use") + " none; not used");
  if (wanted.workload.mode == mode::training && wanted.schedule == schedule_kind::gpipe && wanted.orders.empty() &&
      std::ranges::all_of(planners, &recipes::known_planner::own_orders, planner_named))
    lines.push_back("schedule \"gpipe\": " + who + (one ? "gives" : "give") + " plans other orders; not used");
  if (std::ranges::any_of(planners, &recipes::known_planner::by_objective, planner_named)) return lines;
  const objective_kind objective = wanted.effective_objective();
  if (objective == objective_kind::energy || objective == objective_kind::qoe)
    lines.push_back("objective " + io::in_quotes(to_string(objective)) + ": " + who + (one ? "looks" : "look") +
                    " for the least latency; not used");
  if (wanted.workload.mode == mode::training && wanted.schedule == schedule_kind::gpipe &&
      std::find(planners.begin(), planners.end(), "gpipe") == planners.end())
    lines.push_back("schedule " + io::in_quotes(to_string(wanted.schedule)) + ": " + who + (one ? "has one of its own" : "have their own") +
                    "; not used");
  if (top) lines.push_back("--top: " + who + "makes one plan; not used");
  return lines;
}

std::string chosen_models(const common_options& options, const std::string& planner) {
  std::string text;
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) text += option + value + " ";
  };
  if (searches(planner)) {
    add("--rows ", io::joined(options.rows));
    add("--law ", options.law);
    add("--orders ", options.orders);
    add("--transfers ", options.transfers);
  }
  if (places_operators(planner)) {
    add("--contention ", options.contention);
    add("--copies ", options.copies);
  }
  return text;
}

recipes::dora_options dora_options(const common_options& options, int keep) {
  const auto seed = static_cast<std::uint64_t>(options.seed.value_or(standard_seed));
  const auto named = [seed](const auto& known, const std::string& name) {
    const auto it = std::find_if(known.begin(), known.end(), [&](const auto& m) { return name == m.name; });
    return (it == known.end() ? known.front() : *it).make(seed);
  };
  recipes::dora_options how{.partitioner = {.law = named(known_laws(), options.law),
                                            .orders = named(known_orders(), options.orders),
                                            .k = std::max(keep, recipes::partitioner_options{}.k),
                                            .threads = options.threads.value_or(1)},
                            .network = {.threads = options.threads.value_or(1), .scheduler = named(known_transfers(), options.transfers)},
                            .drafts = {.threads = options.threads.value_or(1)}};
  for (const std::string& row : options.rows) how.partitioner.rows.push_back(named(known_rows(), row));
  return how;
}

plan_result run_planner(const common_options& options, const std::string& name, const problem& p, int keep,
                        const candidate_observer& observer, dora_phase phase) {
  return run_planner(options, name, p, objective_of_job(p.job), keep, observer, phase);
}

plan_result run_planner(const common_options& options, const std::string& name, const problem& p, const any_objective& objective, int keep,
                        const candidate_observer& observer, dora_phase phase) {
  const recipes::dora_options how = dora_options(options, keep);
  if (name == "dora" && phase == dora_phase::both) return recipes::dora(p, objective, keep, how, observer);
  if (name == "dora" && phase == dora_phase::partitioner) return recipes::dora_partitioner(p, objective, keep, how.partitioner, observer);
  if (name == "dora") return schedule_even_split(p, objective, keep, how.network, observer);

  const recipes::known_planner& known = planner_named(name);
  if (known.place != nullptr) return known.place(p, objective, view_of(options), observer);
  if (p.job.orders.empty() || known.own_orders) return known.plan(p, objective, keep, observer);
  candidate_rounds rounds(2, objective, observer);
  plan_result found = known.plan(p, objective, keep, rounds.part());
  return schedule::choose_orders(p, objective, std::move(found), keep, rounds.part());
}

}  // namespace cli
