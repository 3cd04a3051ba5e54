// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/simulate/candidate_rounds.hpp>

#include <utility>

namespace hetplan {

HETPLAN_INLINE candidate_rounds::candidate_rounds(int parts, any_objective objective, const candidate_observer& observer)
    : parts_(parts), objective_(std::move(objective)), observer_(observer) {}

HETPLAN_INLINE candidate_observer candidate_rounds::part() {
  begun_ = std::min(begun_ + 1, parts_);
  return observer_ ? candidate_observer(*this) : candidate_observer{};
}

HETPLAN_INLINE control candidate_rounds::operator()(const candidate_judged& c) {
  if (c.best != nullptr) {
    const double score = hetplan::score(objective_, *c.best->predicted);
    if (!best_ || score < best_score_) {
      best_ = *c.best;
      best_score_ = score;
      estimated_ = c.estimated;
    }
  }
  // The share that is done, of all parts: (begun - 1 + judged / total) / parts.
  const double done = begun_ - 1 + static_cast<double>(c.judged) / static_cast<double>(c.total);
  count_.next(static_cast<long long>(static_cast<double>(count_.judged + 1) * parts_ / done));
  return observer_(candidate_judged{count_.judged, count_.total, best_ ? &*best_ : nullptr, estimated_});
}

}  // namespace hetplan
