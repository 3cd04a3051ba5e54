// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Comparison of several planners on one problem.

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/recipes/asteroid.hpp>
#include <hetplan/recipes/baselines.hpp>
#include <hetplan/recipes/deepcee.hpp>
#include <hetplan/recipes/dora.hpp>
#include <hetplan/recipes/moirai.hpp>
#include <hetplan/recipes/pipeline.hpp>
#include <hetplan/recipes/placers.hpp>

namespace hetplan::recipes {

/// A planner with a name for its row: a recipe, or any callable of problem and objective.
struct named_planner {
  using recipe = plan_result (*)(const planning_problem&, const any_objective&, int keep, const candidate_observer&);

  std::string name;
  std::function<plan_result(const planning_problem&, const any_objective&)> plan;

  named_planner(std::string n, recipe r) : name(std::move(n)) {
    if (r != nullptr) plan = [r](const planning_problem& p, const any_objective& o) { return r(p, o, 1, {}); };
  }
  template <class P>
  named_planner(std::string n, P p) : name(std::move(n)) {
    constexpr bool plans = std::is_invocable_r_v<plan_result, const P&, const planning_problem&, const any_objective&>;
    static_assert(plans,
                  "compare needs: hetplan::plan_result operator()(const hetplan::planning_problem&, const hetplan::any_objective&) const");
    if constexpr (plans) plan = std::move(p);
  }
};

/// Result of one planner, with its score.
struct comparison {
  std::string planner;
  plan_result result;
  double score = 0;  ///< score of the best plan; infinite without a plan
  double ratio = 0;  ///< score / least score of all; 1 for the best, NaN unless the least score is positive and finite
};

/// Returns every planner's result, in the given order.
///
///     const auto rows = recipes::compare(problem, minimize_latency{}, {{"pipeline", recipes::pipeline}, {"dora", recipes::dora}});
///     std::cout << recipes::to_table(rows);
///
/// Complexity   the sum of the planners'.
/// Throws       invalid_input (a planner is empty); invalid_model (a score is NaN); as the planners.
/// Determinism  as the planners, except for `elapsed`.
/// Source       our own.
[[nodiscard]] std::vector<comparison> compare(const planning_problem& problem, const any_objective& objective,
                                              const std::vector<named_planner>& compared);

/// Returns an aligned table with a line per planner: latency, energy, ratio, candidates, elapsed, or the reason for having no plan.
[[nodiscard]] std::string to_table(const std::vector<comparison>& rows);

// The planners that ship, by name.

struct known_planner {
  using placer = plan_result (*)(const planning_problem&, const any_objective&, const placement_view&, const candidate_observer&);

  std::string_view name;
  std::string_view about;
  named_planner::recipe plan;
  bool by_objective = false;  ///< true if the planner returns plans by the objective; false: one plan, of the least latency it knows
  bool own_orders = false;    ///< true if the planner itself gives plans the orders that a job names
  placer place = nullptr;     ///< only of a planner that places the operators of one inference: with a view
};

namespace detail {
template <known_planner::placer Place>
[[nodiscard]] plan_result place_by_default(const planning_problem& problem, const any_objective& objective, int /*keep*/,
                                           const candidate_observer& observer) {
  return Place(problem, objective, {}, observer);
}
template <known_planner::placer Place>
[[nodiscard]] constexpr known_planner placing(std::string_view name, std::string_view about) {
  return {.name = name, .about = about, .plan = place_by_default<Place>, .place = Place};
}
}  // namespace detail

/// The planners in the order of their introduction: baselines, planners that place operators, dora.
/// Source  see each recipe.
inline constexpr std::array<known_planner, 23> planners{{
    {"on-device", "the whole model on one device", on_device, true},
    {"data-parallel", "the whole model on every device, samples by speed within memory", data_parallel, true},
    {"ddp", "the whole model on every device, samples in equal shares", ddp, true},
    {"zero2", "as ddp, with sharded gradients and optimizer state; training only", zero2, true},
    {"fsdp", "as zero2, with sharded weights; training only", fsdp, true},
    {"pipeline", "balanced stages on single devices", pipeline, true},
    {"zero-bubble", "as pipeline, but weight gradients fill the bubbles", zero_bubble, true, true},
    {"gpipe", "stages of equal work on single devices, all forwards before all backwards", gpipe},
    {"pipedream", "hybrid pipelines on equal devices with the least largest step", pipedream},
    {"dapple", "hybrid pipelines on equal devices with the least dominant step", dapple},
    {"hetpipe", "virtual workers, each a pipeline, and a parameter server", hetpipe},
    {"edgeshard", "stages on single unequal devices in any order", edgeshard},
    {"alpa", "stages on groups of equal devices that may split tensors", alpa},
    {"metis", "stages on groups of unequal devices, samples by speed", metis},
    {"asteroid", "hybrid pipelines on unequal devices, those with most memory first", asteroid},
    {"deepcee", "pipelines over regions that a slow network joins", deepcee, true, true},
    {"dora-printed", "dora as its paper prints it", dora_as_printed},
    detail::placing<heft>("heft", "places operators by upward rank, each where it ends first; inference only"),
    detail::placing<m_etf>("m-etf", "places the operator that starts first; inference only"),
    detail::placing<m_sct>("m-sct", "as m-etf, but a favourite reader waits for its producer's device; inference only"),
    detail::placing<getf>("getf", "places operators within groups of devices that a relaxed program chooses; inference only"),
    detail::placing<moirai>("moirai", "places fused operators by branch and bound; inference only"),
    {"dora", "hybrid pipelines with scheduled transfers by search, with the others' plans among its starts", dora, true},
}};

/// Returns all planners that ship, for a comparison: `compare(problem, objective, recipes::all())`.
[[nodiscard]] inline std::vector<named_planner> all() {
  std::vector<named_planner> named;
  for (const known_planner& p : planners) named.emplace_back(std::string(p.name), p.plan);
  return named;
}

}  // namespace hetplan::recipes

#ifndef HETPLAN_SEPARATE
#include <hetplan/recipes/compare.ipp>
#endif
