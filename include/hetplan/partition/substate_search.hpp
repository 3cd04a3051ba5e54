// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The recurrence behind two_substate_dp: one run over given boundaries.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/core/crew.hpp>
#include <hetplan/core/observer.hpp>
#include <hetplan/partition/extender.hpp>
#include <hetplan/partition/rebuild_plan.hpp>
#include <hetplan/partition/search_context.hpp>
#include <hetplan/partition/search_result.hpp>
#include <hetplan/plan/any_objective.hpp>

namespace HETPLAN_NAMESPACE::partition::detail {

/// Walks the boundaries from the end. At each it closes the cells there and puts one more stage before their partial
/// plans: on every group that the device space allows next, from every boundary that makes a stage. The recurrence itself, without
/// what makes it fast: plain_dp.
///
/// Source  Dora, section 4.1, eqs. 3-5. Deviations: see two_substate_dp.
template <cell_policy Policy>
class substate_search {
 public:
  substate_search(const search_tables& t, const device_space& space, const plan& blank, const any_objective& o, const Policy& policy,
                  const search_options& options, std::vector<std::size_t> boundaries, double known_score,
                  any_observer<cell_filled> watch = {})
      : c_(t, space, blank, o, policy, options, std::move(boundaries), known_score), objective_(o), watch_(watch) {}

  search_result run() {
    search_result r;
    if (c_.reach.last(0, 0) + 1 < c_.boundaries.size()) {
      r.status = {outcome::none_found, "no plan of the searched space fits into memory"};
      return r;
    }
    std::deque<extender<Policy>> extenders;
    const auto several = static_cast<std::size_t>(std::max(1, c_.options.threads));
    for (std::size_t i = 0; i < several; ++i) extenders.emplace_back(c_, i, several);
    std::size_t p = 0, first = 0, last = 0;
    crew all(several, [&](std::size_t i) { extenders[i].extend(p, first, last); });
    bool stopped = false;
    for (p = c_.boundaries.size() - 1; p > 0 && !stopped; --p) {
      c_.lower_starts();
      for (first = 0; first < c_.space.states() && !stopped; first = last) {
        stopped = r.counts.extended >= c_.options.most_extensions || make_ready(p, first, last, r.counts) == control::stop;
        if (stopped) break;
        c_.worth = c_.best.worth_keeping();
        all.call();
        r.counts.extended = 0;
        for (const auto& e : extenders) r.counts.extended += e.extended();
      }
    }
    for (const partial_node& whole : c_.best.all()) r.plans.push_back(rebuild(whole));
    const bool spent = r.counts.extended >= c_.options.most_extensions;
    if (stopped) r.status = {outcome::stopped, spent ? "stopped by the limit of extensions" : "stopped by an observer"};
    else if (c_.best.all().empty()) r.status = {outcome::none_found, "no plan of the searched space keeps the limits"};
    return r;
  }

 private:
  /// So many pairs of a move and a boundary make a round: what is found in one prunes from the next on.
  static constexpr std::size_t round = 100'000;

  /// Closes the cells of boundary p from state `first` on, for a round.
  control make_ready(std::size_t p, std::size_t first, std::size_t& last, search_counts& counts) {
    std::size_t work = 0;
    for (last = first; last < c_.space.states() && work < round; ++last) {
      auto& ranges = c_.ready[last];
      ranges.clear();
      if (p + 1 == c_.boundaries.size()) {
        if (last == 0) ranges.push_back({.begin = 0, .end = 1, .stages = 0});
      } else {
        for (int stages = 1; stages <= static_cast<int>(c_.levels); ++stages) {
          const std::size_t cell = c_.cell(p, last, stages);
          const auto& kept = c_.store.cell(cell);
          if (kept.empty()) continue;
          ++counts.cells;
          counts.kept += static_cast<long long>(kept.size());
          if (tell(p, last, stages, kept) == control::stop) return control::stop;
          const auto [begin, end] = c_.store.close(cell);
          ranges.push_back({.begin = begin, .end = end, .stages = stages});
        }
      }
      if (!ranges.empty()) work += c_.space.moves[last].size() * p;
    }
    return control::go;
  }
  control tell(std::size_t p, std::size_t state, int stages, const std::vector<partial_node>& cell) {
    if (!watch_) return control::go;
    std::vector<const partial_plan*> kept(cell.size());
    std::transform(cell.begin(), cell.end(), kept.begin(), [](const partial_node& n) { return &n; });
    return watch_(cell_filled{c_.boundaries[p], c_.tables.sequence.size(), state, stages, kept});
  }

  [[nodiscard]] found_plan rebuild(const partial_node& whole) const {
    const pipeline_tail tail{whole.finished.reach_s, whole.finished.rest_s};
    const double response_s = std::max(c_.law.visit([&](const auto& law) { return law.response_s(c_.job, tail); }), whole.stretch_s);
    found_plan f = rebuild_plan(whole, c_.store, c_.boundaries, c_.tables, c_.space, c_.costs, c_.blank, c_.options, response_s);
    if (!objective_.monotone()) {
      f.score = score(objective_, f.estimate);
      if (std::isnan(f.score)) refuse_score(f.estimate.response().value(), f.estimate.energy().value());
    }
    return f;
  }

  search_context<Policy> c_;
  const any_objective& objective_;
  any_observer<cell_filled> watch_;
};

}  // namespace HETPLAN_NAMESPACE::partition::detail
