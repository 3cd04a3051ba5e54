// SPDX-License-Identifier: BSL-1.0
#pragma once
/// How much a search may do, counted in steps: unlike a time limit, it gives the same answer on every machine.

#include <algorithm>
#include <string>

#include <hetplan/core/linkage.hpp>

namespace hetplan {

// Seconds on the wall clock since something began, for limits on time and for reports.

/// Runs from its construction on.
class stopwatch {
 public:
  stopwatch();
  [[nodiscard]] double elapsed_s() const;

 private:
  long long begin_ns_;
};

/// Steps that planning takes at most unless told otherwise: some seconds.
inline constexpr long long standard_steps = 10'000'000;

/// So many extensions of a search's partial plans count as a step.
inline constexpr long long extensions_per_step = 8;

/// Counts work against a limit. A step is the work of simulating one task or transfer of a candidate, about a microsecond.
///
/// Work that has begun is finished, so a little more than the limit may be spent.
class step_budget {
 public:
  explicit step_budget(long long limit = standard_steps) : limit_(limit) {}

  void spend(long long steps) { used_ += steps; }
  [[nodiscard]] long long used() const { return used_; }
  [[nodiscard]] long long left() const { return std::max(0LL, limit_ - used_); }
  /// What is left, in extensions.
  [[nodiscard]] long long extensions_left() const { return std::min(left(), (1LL << 60) / extensions_per_step) * extensions_per_step; }
  void spend_extensions(long long extensions) { spend(extensions / extensions_per_step); }
  [[nodiscard]] bool spent() const { return used_ >= limit_; }

 private:
  long long limit_;
  long long used_ = 0;
};

/// The reason in the status of what a budget ended.
[[nodiscard]] inline std::string out_of_steps(long long budget, long long candidates, bool found = true) {
  return "the budget of " + std::to_string(budget) + (budget == 1 ? " step" : " steps") + " ended the search after " +
         std::to_string(candidates) + (candidates == 1 ? " candidate" : " candidates") +
         (found ? "; the best so far" : "; none of them keeps the limits");
}

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/core/step_budget.ipp>
#endif
