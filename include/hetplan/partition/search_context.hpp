// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What one run of the search works on, whoever works.

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <hetplan/partition/closed_cells.hpp>
#include <hetplan/partition/completion_bounds.hpp>
#include <hetplan/partition/group_links.hpp>
#include <hetplan/partition/incumbents.hpp>
#include <hetplan/partition/memory_reach.hpp>
#include <hetplan/partition/partial_store.hpp>
#include <hetplan/partition/search_result.hpp>
#include <hetplan/partition/stage_memo.hpp>
#include <hetplan/plan/any_step_law.hpp>

namespace HETPLAN_NAMESPACE::partition::detail {

/// The tables of a run. Extenders write to cells and stages that begin at boundaries of their own, the one with boundary 0 to the
/// incumbents; all else changes between their rounds alone.
///
/// Source  the tables of Dora, section 4.1 (DP by boundary, devices and substate). Deviations: see two_substate_dp.
template <cell_policy Policy>
struct search_context {
  const search_tables& tables;
  const device_space& space;
  const plan& blank;
  const search_options& options;
  std::vector<std::size_t> boundaries;
  bool serial;
  warmup_levels warmup;
  std::size_t levels;
  incumbents best;
  bool energy_matters;
  any_step_law law;
  pipelining job;
  candidate_costs costs;
  completion_bounds bounds;
  group_links links;
  std::vector<stage_memo::entry> stages;  ///< by group, then begin
  partial_store<Policy> store;
  memory_reach reach;
  std::vector<std::size_t> start;                       ///< by state: stages that lead to it begin here or before
  std::vector<link_times> least_links;                  ///< by boundary
  std::vector<std::vector<closed_cells::range>> ready;  ///< by state: of the boundary at hand
  double worth;                                         ///< best.worth_keeping() when the round began

  search_context(const search_tables& t, const device_space& s, const plan& b, const any_objective& objective, const Policy& policy,
                 const search_options& o, std::vector<std::size_t> where, double known_score)
      : tables(t), space(s), blank(b), options(o), boundaries(std::move(where)), serial(t.cuts.serial()), warmup(blank, options),
        levels(warmup.levels()), best(objective, options, known_score), energy_matters(asks_for_energy()),
        law(options.law.value_or(any_step_law(blank.workload.mode))), job(pipelining_of(blank, options.warmup)),
        costs(t.table, space, t.cluster, t.slopes, blank, options.keep_budgets), bounds(t, space, boundaries, blank, serial),
        links(space, t.cluster.network(), blank), stages(space.groups.size() * boundaries.size()),
        store(policy, boundaries.size() * space.states() * levels),
        reach(costs, space, boundaries, options.max_stages, [&](int depth) { return in_flight(serial ? depth : 1); }),
        start(space.states()), ready(space.states()), worth(best.worth_keeping()) {
    for (std::size_t state = 0; state < start.size(); ++state) start[state] = reach.last(state, 1);
    for (const std::size_t block : boundaries) least_links.push_back(block == 0 ? link_times{} : serial_link(links.best(), block));
  }
  search_context(const search_context&) = delete;
  search_context& operator=(const search_context&) = delete;

  [[nodiscard]] int in_flight(int depth) const { return warmup.in_flight(depth); }
  [[nodiscard]] std::size_t cell(std::size_t boundary, std::size_t state, int stages_of) const {
    return (state * boundaries.size() + boundary) * levels + std::min(static_cast<std::size_t>(stages_of), levels) - 1;
  }
  /// A link that everything crosses which crosses the boundary before a block.
  [[nodiscard]] link_times serial_link(const exchange_cost& x, std::size_t block) const {
    double forward = 0, gradient = 0;
    for (const crossing& c : tables.crossings.crossings(block)) {
      forward += c.forward_bytes;
      gradient += c.gradient_bytes;
    }
    return links.time(x, forward, gradient);
  }

  /// T at least, when these are to come before a tail: see tells_bound.
  template <step_law Law>
  [[nodiscard]] double bound_s(const Law& l, const pipeline_tail& x, const link_times& least, double path_s, double busiest_s) const {
    if constexpr (tells_bound<Law>) return l.bound_s(job, x, least, path_s, busiest_s);
    else return l.response_s(job, x);
  }
  /// Beyond its start, what is left for a state costs too much whatever lies behind.
  void lower_starts() {
    if (!options.prune) return;
    law.visit([&](const auto& l) {
      for (std::size_t state = 0; state < start.size(); ++state) {
        std::size_t& a = start[state];
        while (a > 0 && best.score(bound_s(l, {}, {}, 0, bounds.busiest_s(state, a)), bounds.energy_J(a)) > best.worth_keeping()) --a;
      }
    });
  }

 private:
  /// Without an objective that reads energy, budgets or busy caps, energy is worked out for the plans found only.
  [[nodiscard]] bool asks_for_energy() const {
    for (const device& d : tables.cluster.devices()) {
      if (options.keep_budgets && (d.energy_budget || d.max_busy < 1)) return true;
    }
    for (const double t : {0.0, 1e-3, 1.0, 1e3, 1e6, 1e9}) {
      if (best.score(t, 0) != best.score(t, 1e30)) return true;
    }
    return false;
  }
};

}  // namespace HETPLAN_NAMESPACE::partition::detail
