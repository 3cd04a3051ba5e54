// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Local search around a plan: boundaries between stages move, and stages exchange their devices, while the caller's judge
/// likes it better.

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

/// A plan whose stages are runs of a sequence, one after the other, and what becomes of it when a boundary moves.
class movable_plan {
 public:
  /// Nothing if the stages are no such runs, or one of them is no stage of the sequence.
  static std::optional<movable_plan> of(plan p, const layer_sequence& s);
  [[nodiscard]] const plan& get() const { return plan_; }
  [[nodiscard]] std::size_t stages() const { return plan_.stages.size(); }
  /// Where stage s begins.
  [[nodiscard]] std::size_t first(std::size_t s) const { return first_[s]; }

  /// Boundary i, before stage i, stands at `to` instead; nothing if one side would be no stage of the sequence.
  [[nodiscard]] std::optional<movable_plan> moved(std::size_t i, std::size_t to) const;
  [[nodiscard]] movable_plan swapped(std::size_t i, std::size_t j) const;

 private:
  movable_plan(plan p, const layer_sequence& s) : plan_(std::move(p)), sequence_(&s) {}

  plan plan_;
  const layer_sequence* sequence_;
  std::vector<std::size_t> first_;  ///< by stage, and the end
  bool by_id_ = true;               ///< every stage lists its layers by id: so do moved ones; else in the order of the row
};

}  // namespace detail

/// Hill climbing: every boundary in turn moves by 8, 4, 2, then 1 of the given positions, either way and as often as it helps;
/// then every two stages try each other's devices; from the start again while anything helped.
///
/// @param start      one pipeline whose stages are runs of the sequence, in its order, and stages of it (layer_sequence::is_stage),
///                   which they stay; any other comes back as it is.
/// @param positions  ascending: where boundaries may go; those of the start may stay elsewhere.
/// @param judge      (plan&) -> score, smaller is better, infinite where the plan will not do; may complete the plan, say with
///                   the warm-up that fits.
/// @param most       calls of the judge.
/// @return           the best plan seen; never worse than the start by the judge.
/// Complexity        at most `most` calls.   Determinism  first improvement, in the order above.
/// Source            own; the search of plans that it follows relaxes what the judge knows, contention first of all.
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
  /// By `step` positions up or down.
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
