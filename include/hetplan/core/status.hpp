// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What became of a search or a run: part of the result, never an exception.

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/core/linkage.hpp>

namespace hetplan {

// How much a search may do, counted in steps: unlike a time limit, it gives the same answer on every machine.

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

/// `infeasible` is proven: nothing that the problem allows is a solution. `none_found` says less: what was tried holds no solution.
enum class outcome { feasible, infeasible, none_found, stopped };

[[nodiscard]] constexpr std::string_view to_string(outcome o) {
  switch (o) {
    case outcome::feasible: return "feasible";
    case outcome::infeasible: return "infeasible";
    case outcome::none_found: return "none found";
    case outcome::stopped: return "stopped";
  }
  return "?";
}

/// Why there is no solution, in numbers that can be checked without this library: rows of a relaxation that nothing satisfies together,
/// or how many steps a search took that left nothing of the whole space out.
struct infeasibility_proof {
  struct row {
    std::string what;      ///< a sentence: which amounts are added up, in which unit
    double needed = 0;     ///< at least, by every solution
    double available = 0;  ///< at most; one row proves alone where needed > available

    friend bool operator==(const row&, const row&) = default;
  };

  std::string of;              ///< the problem that has no solution: "placements of single operators in 1.1 GB", ...
  std::vector<row> rows = {};  ///< of the relaxation
  long long searched = 0;      ///< steps that excluded the whole space; 0: the rows prove it

  friend bool operator==(const infeasibility_proof&, const infeasibility_proof&) = default;
};

/// An outcome and, unless feasible, the sentence that explains it: which limit, where, by how much; or what was tried.
struct status {
  outcome result = outcome::feasible;
  std::string reason;
  std::optional<infeasibility_proof> proof = {};  ///< infeasible: set by every planner and search

  [[nodiscard]] bool ok() const { return result == outcome::feasible; }
  friend bool operator==(const status&, const status&) = default;
};

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/core/status.ipp>
#endif
