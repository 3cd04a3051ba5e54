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

/// An objective that says it is monotone is asked on a grid whether it is. Throws invalid_model with the two points.
void probe(const any_objective& o);

/// Ever finer runs that keep few partial plans per cell find plans to prune with; then the run over all boundaries.
template <cell_policy Policy>
[[nodiscard]] search_result ever_finer_runs(const search_tables& tables, const device_space& space, const plan& blank,
                                            const any_objective& objective, const Policy& policy, search_options options,
                                            const any_observer<cell_filled>& watch) {
  const auto require = [](bool ok, const char* what, double given, const char* expected) {
    if (!ok) throw invalid_input(std::string("two_substate_dp: ") + what + " = " + to_text(given) + "; expected " + expected);
  };
  require(options.plans >= 1, "plans", options.plans, "an integer >= 1");
  require(options.max_stages >= 1, "max_stages", options.max_stages, "an integer >= 1");
  require(policy.capacity() >= 1, "the cell policy's capacity", 0, "an integer >= 1");
  require(blank.microbatch_size >= 1, "microbatch_size", blank.microbatch_size, "an integer >= 1");
  require(blank.microbatches >= 1, "microbatches", blank.microbatches, "an integer >= 1");
  if (blank.schedule.kind == schedule_kind::explicit_orders)
    throw invalid_input("two_substate_dp: explicit orders; expected 1f1b or gpipe");
  if (!objective.monotone() && !std::same_as<Policy, exhaustive>)
    throw invalid_input("two_substate_dp: the objective is not monotone; expected one that is, or the cell policy exhaustive");
  probe(objective);
  options.prune = options.prune && objective.monotone();

  std::vector<std::size_t> all(tables.sequence.size() + 1);
  std::iota(all.begin(), all.end(), std::size_t{0});
  search_result coarse;
  double known = std::numeric_limits<double>::infinity();
  search_options left = options;  // what one run weighs is not there for the next
  long long weighed = 0;
  for (std::size_t wanted = options.coarse_boundaries; options.prune && wanted > 0 && wanted < all.size(); wanted *= 3) {
    auto few = even_boundaries(tables, wanted);
    if (few.size() * 5 > all.size() * 4) break;
    const top_k few_each{3};
    search_result next = substate_search(tables, space, blank, objective, few_each, left, std::move(few), known).run();
    weighed += next.counts.extended;
    left.most_extensions = std::max(0LL, options.most_extensions - weighed);
    if (next.plans.empty()) break;
    coarse = std::move(next);
    if (coarse.plans.size() == static_cast<std::size_t>(options.plans)) known = std::min(known, coarse.plans.back().score);
  }
  search_result r = substate_search(tables, space, blank, objective, policy, left, std::move(all), known, watch).run();
  r.counts.extended += weighed;
  // What the coarse run knows and a cell of limited capacity lost is not lost.
  for (found_plan& f : coarse.plans) {
    const auto same = [&](const found_plan& x) { return x.plan.stages == f.plan.stages; };
    if (std::none_of(r.plans.begin(), r.plans.end(), same)) r.plans.push_back(std::move(f));
  }
  std::stable_sort(r.plans.begin(), r.plans.end(), [](const found_plan& a, const found_plan& b) {
    return std::pair(a.score, a.plan.stages.size()) < std::pair(b.score, b.plan.stages.size());
  });
  if (r.plans.size() > static_cast<std::size_t>(options.plans)) r.plans.resize(static_cast<std::size_t>(options.plans));
  if (!r.plans.empty() && r.status.result == outcome::infeasible) r.status = {};
  return r;
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
/// @param policy   what cells keep. `exhaustive` and `dominance` are exact under the estimate; top_k{K} keeps K per cell.
/// @return         options.plans plans, best first by (score, stages), with their estimates.
/// Complexity      O(cells' plans x boundaries x moves) extensions, cells = boundaries x states x levels, before pruning
///                 (measured in docs/performance.md). Memory: kept partial plans.
/// Throws          invalid_input (options, a policy of capacity 0); invalid_model (a model or the objective misbehaves).
/// Determinism     yes: ties by fewer stages, then first found.
/// Source          Dora, section 4.1, eqs. 3-5, from the sinks (memory depends on how many stages follow), with the
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
