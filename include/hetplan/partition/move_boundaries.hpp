// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Local search around a plan: moves boundaries between stages and swaps the stages' devices while a judge's score improves.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::partition {

namespace detail {

/// A plan whose stages are consecutive runs of a sequence, with the moves of the local search.
class movable_plan {
 public:
  /// Returns nothing if the stages are no consecutive runs that cover the sequence, or if a run is no stage of it (is_stage).
  static std::optional<movable_plan> of(plan p, const layer_sequence& s);
  [[nodiscard]] const plan& get() const { return plan_; }
  [[nodiscard]] std::size_t stages() const { return plan_.stages.size(); }
  /// Returns the index in the sequence of stage s's first block.
  [[nodiscard]] std::size_t first(std::size_t s) const { return first_[s]; }

  /// Returns the plan with the boundary before stage i at `to`; nothing if either side would be no stage of the sequence.
  [[nodiscard]] std::optional<movable_plan> moved(std::size_t i, std::size_t to) const;
  [[nodiscard]] movable_plan swapped(std::size_t i, std::size_t j) const;

 private:
  movable_plan(plan p, const layer_sequence& s) : plan_(std::move(p)), sequence_(&s) {}

  plan plan_;
  const layer_sequence* sequence_;
  std::vector<std::size_t> first_;  ///< by stage; then the end of the sequence
  bool by_id_ = true;               ///< true if every stage lists its layers by id, as moved stages then do; else they follow the sequence
};

}  // namespace detail

/// Hill climbing from a plan. Each boundary in turn moves by 8, 4, 2, then 1 of the given positions, in both directions, as long as the
/// score improves; then every pair of stages swaps devices. Repeats until nothing improves.
///
/// @param start      one pipeline whose stages are runs of the sequence, in its order, and satisfy layer_sequence::is_stage, as all moved
///                   ones do. Any other plan is returned unchanged.
/// @param positions  allowed targets of boundaries, ascending. Boundaries of the start may stay elsewhere.
/// @param judge      (plan&) -> score, smaller is better, infinite for an unacceptable plan; may complete the plan, e.g. set a warm-up.
/// @param most       maximum number of calls of the judge.
/// @return           the plan with the best score; never worse than the start.
/// Complexity        at most `most` calls.   Determinism  first improvement, in the order above.
/// Source            own; it corrects what the search before it relaxes, above all contention.
template <std::invocable<plan&> Judge>
[[nodiscard]] plan move_boundaries(plan start, const layer_sequence& sequence, const std::vector<std::size_t>& positions, Judge&& judge,
                                   int most = 200) {
  auto at = detail::movable_plan::of(start, sequence);
  if (!at) return start;
  plan best = start;
  double score = judge(best);
  int judged = 1;
  const auto accept = [&](detail::movable_plan candidate) {
    plan completed = candidate.get();
    ++judged;
    const double s = judge(completed);
    if (!(s < score)) return false;
    score = s;
    best = std::move(completed);
    at = std::move(candidate);
    return true;
  };
  const auto move = [&](std::size_t i, std::size_t step, bool up) {
    const std::size_t now = at->first(i);
    const auto above = std::upper_bound(positions.begin(), positions.end(), now);
    const auto below = std::lower_bound(positions.begin(), positions.end(), now);
    const auto room = static_cast<std::size_t>(up ? positions.end() - above : below - positions.begin());
    if (room < step) return false;
    const std::size_t to = up ? *(above + static_cast<std::ptrdiff_t>(step - 1)) : *(below - static_cast<std::ptrdiff_t>(step));
    auto candidate = at->moved(i, to);
    return candidate && accept(*std::move(candidate));
  };
  for (bool helped = true; helped && judged < most;) {
    helped = false;
    for (const std::size_t step : {8U, 4U, 2U, 1U}) {
      for (std::size_t i = 1; i < at->stages(); ++i) {
        for (const bool up : {true, false}) {
          while (judged < most && move(i, step, up)) helped = true;
        }
      }
    }
    for (std::size_t i = 0; i < at->stages(); ++i) {
      for (std::size_t j = i + 1; j < at->stages() && judged < most; ++j) helped = accept(at->swapped(i, j)) || helped;
    }
  }
  return best;
}

}  // namespace hetplan::partition

#ifndef HETPLAN_SEPARATE
#include <hetplan/partition/move_boundaries.ipp>
#endif
