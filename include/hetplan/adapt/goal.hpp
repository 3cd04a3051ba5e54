// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What is wanted of the rest of a job, as an order of plans.

#include <optional>

#include <hetplan/adapt/adaptation_policy.hpp>
#include <hetplan/adapt/iteration.hpp>
#include <hetplan/plan/objective.hpp>

namespace hetplan::adapt {

/// How well a plan serves; smaller is better, lateness first.
struct serving {
  double late_s = 0;  ///< the job would end so long after its deadline
  double score = 0;   ///< of the job's objective; with a deadline: joules until the end

  /// But for rounding: is it less late than another one, or no later and with a smaller score?
  [[nodiscard]] bool beats(const serving& other) const;
};

/// Orders plans by what they do now, as if they did it until the end.
///
/// With a deadline and a number of iterations: in time before late, then least energy. Else the job's objective.
///
/// Source  Dora, section 4.3: long-term and continuous quality of experience.
class goal {
 public:
  /// @param j  says what counts; `wanted` stands for its quality of experience.
  goal(job j, const qoe_target& wanted, seconds now, long long done);
  goal(const job& j, const situation& s) : goal(j, s.wanted, s.now, s.done) {}

  [[nodiscard]] serving of(const iteration& i) const;
  /// Is the latency that is wanted kept, with a share of it to spare? Nothing, if none is wanted.
  [[nodiscard]] std::optional<bool> keeps_latency(const iteration& i, double spare = 0) const;

 private:
  [[nodiscard]] static job with(job j, const qoe_target& wanted);

  double now_s_;
  std::optional<seconds> latency_;
  std::optional<double> deadline_s_;
  double left_ = 0;
  objective_of_job objective_;
};

}  // namespace hetplan::adapt

#ifndef HETPLAN_COMPILED
#include <hetplan/adapt/goal.ipp>
#endif
