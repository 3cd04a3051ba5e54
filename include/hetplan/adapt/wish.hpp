// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What is wanted of the rest of a job, as an order of plans.

#include <algorithm>
#include <compare>
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
///
/// Source  Dora, section 4.3: long-term and continuous quality of experience.
class wish {
 public:
  /// @param j  says what counts; `wanted` stands for its quality of experience.
  wish(job j, const qoe_target& wanted, seconds now, long long done)
      : now_s_(now.value()), latency_(wanted.latency), objective_(with(std::move(j), wanted)) {
    if (!wanted.deadline || !wanted.iterations) return;
    deadline_s_ = wanted.deadline->value();
    left_ = static_cast<double>(std::max(0LL, *wanted.iterations - done));
  }
  wish(const job& j, const situation& s) : wish(j, s.wanted, s.now, s.done) {}

  [[nodiscard]] serving of(const iteration& i) const {
    constexpr double never = std::numeric_limits<double>::infinity();
    if (!i.ended) return {never, never};
    if (!deadline_s_) {
      return {0, objective_.score(evaluation{.latency = seconds(i.took_s),
                                             .time_between_tokens = seconds(i.response_s),
                                             .devices = {{.energy = joules(i.energy_J())}}})};
    }
    return {std::max(0.0, now_s_ + left_ * i.took_s - *deadline_s_), left_ * i.energy_J()};
  }
  /// Is the latency that is wanted kept, with a share of it to spare? Nothing, if none is wanted.
  [[nodiscard]] std::optional<bool> keeps_latency(const iteration& i, double spare = 0) const {
    if (!latency_) return std::nullopt;
    return i.ended && i.response_s <= (1 - spare) * latency_->value() * (1 + limit_tolerance);
  }

 private:
  [[nodiscard]] static job with(job j, const qoe_target& wanted) {
    j.qoe = wanted;
    return j;
  }

  double now_s_;
  std::optional<seconds> latency_;
  std::optional<double> deadline_s_;
  double left_ = 0;
  objective_of_job objective_;
};

}  // namespace hetplan::adapt
