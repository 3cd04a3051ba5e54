// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What is wanted of the rest of a job, as an order of plans.

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include <hetplan/adapt/adaptation_policy.hpp>
#include <hetplan/adapt/iteration.hpp>
#include <hetplan/plan/objective.hpp>

namespace hetplan::adapt {

/// How well a plan serves; smaller is better, lateness first.
struct serving {
  double late_s = 0;  ///< the job would end so long after its deadline
  double score = 0;   ///< of the job's objective; with a deadline: joules until the end
  friend auto operator<=>(const serving&, const serving&) = default;
};

/// Orders plans by what they do now, as if they did it until the end.
///
/// With a deadline and a number of iterations: in time before late, then least energy. Else the job's objective.
class wish {
 public:
  wish(const job& j, const situation& s) : now_s_(s.now.value()), latency_(s.wanted.latency) {
    if (s.wanted.deadline && s.wanted.iterations) {
      deadline_s_ = s.wanted.deadline->value();
      left_ = static_cast<double>(std::max(0LL, *s.wanted.iterations - s.done));
    }
    job wanted = j;
    wanted.qoe = s.wanted;
    objective_.emplace(wanted);
  }

  [[nodiscard]] bool has_deadline() const { return deadline_s_.has_value(); }

  [[nodiscard]] serving of(const iteration& i) const {
    constexpr double never = std::numeric_limits<double>::infinity();
    if (!i.ended) return {never, never};
    if (!deadline_s_) return {0, objective_->score(seconds(i.response_s), joules(i.energy_J()))};
    return {std::max(0.0, now_s_ + left_ * i.took_s - *deadline_s_), left_ * i.energy_J()};
  }
  /// Is the latency that is wanted kept? Nothing, if none is wanted.
  [[nodiscard]] std::optional<bool> keeps_latency(const iteration& i) const {
    if (!latency_) return std::nullopt;
    return i.ended && i.response_s <= latency_->value() * (1 + limit_tolerance);
  }

 private:
  double now_s_;
  std::optional<seconds> latency_;
  std::optional<double> deadline_s_;
  double left_ = 0;
  std::optional<objective_of_job> objective_;
};

}  // namespace hetplan::adapt
