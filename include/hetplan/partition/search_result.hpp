// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a search is asked for, what it answers, and what it tells while it runs.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include <hetplan/core/status.hpp>
#include <hetplan/partition/cell_policy.hpp>
#include <hetplan/plan/any_objective.hpp>
#include <hetplan/plan/any_step_law.hpp>
#include <hetplan/plan/orders.hpp>

namespace hetplan::partition {

namespace detail {

[[noreturn]] inline void refuse_score(double response_s, double energy_J) {
  throw invalid_model("objective: score(" + to_text(response_s) + " s, " + to_text(energy_J) + " J) = nan; expected a number");
}
[[nodiscard]] inline double checked_score(const any_objective& o, double response_s, double energy_J) {
  const double score = o.score(seconds(response_s), joules(energy_J));
  if (std::isnan(score)) refuse_score(response_s, energy_J);
  return score;
}

}  // namespace detail

struct search_options {
  int plans = 10;  ///< how many to return
  int max_stages = 16;
  int threads = 1;  ///< that search together; no answer depends on them
  warmup_rule warmup = warmup_rule::hide_communication;
  std::optional<any_step_law> law = {};                               ///< whose latency is minimised; none: the dominant step's
  bool keep_budgets = true;                                           ///< energy and busy share; memory is always kept
  bool prune = true;                                                  ///< by the best plans known and what completions cost at least
  long long most_extensions = std::numeric_limits<long long>::max();  ///< weighed by all runs, about; then it stops with the best so far
  std::size_t coarse_boundaries = 40;                                 ///< of the first run that finds plans to prune with; 0: none
};

/// How many microbatches a stage holds, by its depth.
///
/// Source  Asteroid, section 3.2 (K_p); the other rules: plan/orders.hpp.
class warmup_levels {
 public:
  /// @param blank  must outlive this.
  warmup_levels(const plan& blank, const search_options& o) : blank_(blank), max_stages_(o.max_stages), rule_(o.warmup) {}

  [[nodiscard]] int in_flight(int depth) const { return microbatches_in_flight(blank_, warmup_of(rule_, depth)); }
  /// The depth from which in_flight no longer grows, at most max_stages.
  [[nodiscard]] std::size_t levels() const {
    int saturated = 1;
    while (saturated < max_stages_ && in_flight(saturated + 1) > in_flight(saturated)) ++saturated;
    return static_cast<std::size_t>(saturated);
  }

 private:
  const plan& blank_;
  int max_stages_;
  warmup_rule rule_;
};

/// How a search believes that the microbatches of a job pass: in turn where warm-up lets in one at a time.
[[nodiscard]] inline pipelining pipelining_of(const plan& blank, warmup_rule r) {
  const bool in_turn = r == warmup_rule::one && blank.schedule.kind != schedule_kind::gpipe;
  return {blank.microbatches, in_turn ? blank.microbatches : 1};
}

/// A plan as the search sees it: its own estimate, which bounds nothing.
struct found_plan {
  hetplan::plan plan;
  evaluation estimate = {};  ///< no bounds, no bytes by resource
  double score = 0;
};

struct search_counts {
  long long cells = 0;     ///< that kept anything
  long long kept = 0;      ///< partial plans
  long long extended = 0;  ///< extensions weighed, those of coarse runs too
};

/// Plans best first. None found: nothing in the space keeps the limits by the search's estimate. Stopped: the best so far.
struct search_result {
  hetplan::status status;
  std::vector<found_plan> plans;
  search_counts counts;
};

/// A cell is final; for progress, for stopping and for looking at the table.
struct cell_filled {
  std::size_t first_block;  ///< the cell's plans hold the blocks from here on
  std::size_t blocks;       ///< of the sequence
  std::size_t state;        ///< of the device space
  int stages;
  std::span<const partial_plan* const> kept;  ///< by rank
};

}  // namespace hetplan::partition
