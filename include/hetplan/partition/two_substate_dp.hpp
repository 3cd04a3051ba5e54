// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Dora's two-substate dynamic program: cuts a layer sequence into stages on groups of devices, from the sinks.

#include <algorithm>
#include <concepts>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/partition/substate_search.hpp>
#include <hetplan/plan/any_objective.hpp>

namespace HETPLAN_NAMESPACE::partition {
namespace detail {

/// Ends of chains, and of the boundaries inside chains about `wanted` that split the work evenly.
[[nodiscard]] std::vector<std::size_t> even_boundaries(const search_tables& t, std::size_t wanted);

/// Throws invalid_input for what no search can be asked; invalid_model where a step law, or an objective that says so, is not
/// monotone on a grid of points. Returns the options with prune where the objective allows it.
[[nodiscard]] search_options checked_options(search_options options, const plan& blank, const any_objective& objective,
                                             std::size_t capacity, bool drops);

/// What runs over few boundaries, ever more of them, tell the run over all: plans to prune with.
struct coarse_runs {
  search_result found = {};  ///< by the last of them
  double known_score = std::numeric_limits<double>::infinity();
  search_options left = {};  ///< what one run weighs is not there for the next
};
[[nodiscard]] coarse_runs run_coarse(const search_tables& tables, const device_space& space, const plan& blank,
                                     const any_objective& objective, const search_options& options);

/// The answer: what coarse runs know and a cell of limited capacity lost is not lost.
[[nodiscard]] search_result merge_runs(search_result last, coarse_runs coarse, const search_options& options);

template <cell_policy Policy>
[[nodiscard]] search_result ever_finer_runs(const search_tables& tables, const device_space& space, const plan& blank,
                                            const any_objective& objective, const Policy& policy, search_options options,
                                            const any_observer<cell_filled>& watch) {
  require_device_space(space, tables.cluster, "two_substate_dp");
  options = checked_options(options, blank, objective, policy.capacity(), !std::same_as<Policy, exhaustive>);
  coarse_runs coarse = run_coarse(tables, space, blank, objective, options);
  std::vector<std::size_t> all(tables.sequence.size() + 1);
  std::iota(all.begin(), all.end(), std::size_t{0});
  search_result last =
      substate_search(tables, space, blank, objective, policy, coarse.left, std::move(all), coarse.known_score, watch).run();
  return merge_runs(std::move(last), std::move(coarse), options);
}

#ifdef HETPLAN_COMPILED
extern template search_result ever_finer_runs(const search_tables&, const device_space&, const plan&, const any_objective&, const top_k&,
                                              search_options, const any_observer<cell_filled>&);
extern template search_result ever_finer_runs(const search_tables&, const device_space&, const plan&, const any_objective&,
                                              const dominance&, search_options, const any_observer<cell_filled>&);
extern template search_result ever_finer_runs(const search_tables&, const device_space&, const plan&, const any_objective&,
                                              const exhaustive&, search_options, const any_observer<cell_filled>&);
#endif

}  // namespace detail

/// Searches every cut of the sequence into stages (pieces of one chain or runs of whole chains) on every choice of
/// groups that the device space allows, for one microbatch size; shares by candidate_costs, none larger than the tables cover.
///
/// @param blank    the job's plan with nothing decided: workload, microbatch size and count, schedule.
/// @param objective copied (any_objective): its own type, not a base of it.
/// @param policy   what cells keep. `exhaustive` and `dominance` are exact under the estimate; top_k{K} keeps K per cell.
/// @return         options.plans plans, best first by (score, stages), with their estimates.
/// Complexity      O(cells' plans x boundaries x moves) extensions, cells = boundaries x states x levels, before pruning
///                 (measured in docs/performance.md). Memory: kept partial plans.
/// Throws          invalid_input (options, a policy of capacity 0, a device space that is none); invalid_model (a model, the objective or
/// the step law misbehaves). Determinism     yes: ties by fewer stages, then first found. Source          Dora, section 4.1, eqs. 3-5, from
/// the sinks (memory depends on how many stages follow), with the
///                 exact state (D, R, X, C) per port of the boundary instead of one latency. Deviation: stages may
///                 leave devices out, and on a graph of stages sums run along the longest way.
template <objective Objective, cell_policy Policy = top_k, observer<cell_filled>... Observers>
[[nodiscard]] search_result two_substate_dp(const search_tables& tables, const device_space& space, const plan& blank,
                                            const Objective& objective, const Policy& policy = {}, search_options options = {},
                                            Observers&&... observers) {
  static_assert(monotone_objective<Objective> || std::same_as<Policy, exhaustive>,
                "dropping partial plans needs a monotone objective: double score(seconds response, joules energy) const; "
                "any other objective can be searched with the cell policy exhaustive");
  const auto watch = all_of(observers...);
  return detail::ever_finer_runs(tables, space, blank, any_objective(objective), policy, options,
                                 sizeof...(Observers) > 0 ? any_observer<cell_filled>(watch) : any_observer<cell_filled>());
}

}  // namespace HETPLAN_NAMESPACE::partition

#ifndef HETPLAN_COMPILED
#include <hetplan/partition/two_substate_dp.ipp>
#endif
