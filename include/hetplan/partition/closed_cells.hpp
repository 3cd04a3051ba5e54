// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The partial plans that one more stage can be put before, seen through the link to that stage.

#include <algorithm>
#include <limits>
#include <vector>

#include <hetplan/partition/partial_store.hpp>
#include <hetplan/plan/step_law.hpp>

namespace HETPLAN_NAMESPACE::partition {

/// The closed cells of one boundary and state, a range each, and the best that any of their partial plans has of each
/// figure: what no extension can beat.
///
/// Source  own: Dora's recurrence (section 4.1, eqs. 3-5) pushed from finished cells, so that one look rules out many
///         extensions.
struct closed_cells {
  struct range {
    std::size_t begin, end;
    int stages;
    pipeline_tail best = {};  ///< behind the link to the group at hand
    partial_plan ideal = {};
  };
  std::vector<range> ranges;
  std::vector<pipeline_tail> suffixes;  ///< by member of the ranges, which follow one another
  pipeline_tail best;
  double best_energy_J = 0, best_idle_W = 0;

  /// Serial sequences: what each partial plan amounts to behind the link to a group. False if no link is possible.
  ///
  /// @param link_to  the link to the group at hand from the group of a partial plan.
  /// @param uniform  all links are alike.
  /// Complexity      O(partial plans of the ranges).
  template <step_law Law, class Store, class LinkTo>
  bool look_through_links(const Store& store, const Law& law, const pipelining& p, bool uniform, LinkTo&& link_to) {
    constexpr double inf = std::numeric_limits<double>::infinity();
    suffixes.clear();
    best = {inf, inf};
    best_energy_J = best_idle_W = inf;
    for (range& r : ranges) {
      r.best = {inf, inf};
      r.ideal = store[r.begin];
      link_times step;
      for (std::size_t n = r.begin; n < r.end; ++n) {
        const partial_node& old = store[n];
        if (r.stages > 0 && (n == r.begin || (!uniform && old.group != store[n - 1].group))) step = link_to(old.group);
        suffixes.push_back(r.stages > 0 ? law.extend(p, step, pipeline_tail{old.finished.reach_s, old.finished.rest_s}) : pipeline_tail{});
        r.best = {std::min(r.best.reach_s, suffixes.back().reach_s), std::min(r.best.rest_s, suffixes.back().rest_s)};
        r.ideal.energy_J = std::min(r.ideal.energy_J, old.energy_J);
        r.ideal.idle_W = std::min(r.ideal.idle_W, old.idle_W);
        r.ideal.limit_s = std::max(r.ideal.limit_s, old.limit_s);
        r.ideal.stretch_s = std::min(r.ideal.stretch_s, old.stretch_s);
        r.ideal.stages = std::min(r.ideal.stages, old.stages);
      }
      best = {std::min(best.reach_s, r.best.reach_s), std::min(best.rest_s, r.best.rest_s)};
      best_energy_J = std::min(best_energy_J, r.ideal.energy_J);
      best_idle_W = std::min(best_idle_W, r.ideal.idle_W);
    }
    return best.reach_s < inf;
  }
  [[nodiscard]] const pipeline_tail& suffix_of(std::size_t member) const { return suffixes[member - ranges.front().begin]; }
};

}  // namespace HETPLAN_NAMESPACE::partition
