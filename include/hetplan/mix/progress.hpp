// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The uniform-progress controller: the plans of an interruptible job that meet its deadline at low energy under varying rates.

#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/mix/mixing.hpp>
#include <hetplan/mix/mixing_controller.hpp>

namespace hetplan::mix {

struct progress_options {
  /// The paper's Delta. Infinite: the rest of the job, which gave the fewest switches and least energy in bench/mixing.cpp (noise).
  double horizon_s = std::numeric_limits<double>::infinity();
  double period_s = 60;    ///< working time between decisions, shorter where a turn ends; also the lookahead of the reserve
  double pessimism = 0.2;  ///< share by which rates may fall; 0 <= pessimism < 1
  double shortfall_J = std::numeric_limits<double>::infinity();  ///< as in `mixing_goal`
};

/// The state of a job between two decisions. The last three fields are the rest of the current horizon; 0 begins a new one.
struct job_state {
  double work_left = 0;    ///< W_rem
  double time_left_s = 0;  ///< D_rem, until the deadline
  std::optional<std::size_t> running = {};
  double horizon_left_s = 0;
  double progress_left = 0;
  std::vector<mixture_part> turns_left = {};  ///< rest of an open-loop mixture; empty: the controller is called
};

/// What to run until the next decision.
struct decision {
  hetplan::status status = {};           ///< infeasible: the deadline has passed; `plan` is the one that ends first
  std::optional<std::size_t> plan = {};  ///< empty: idle
  double pause_s = 0;                    ///< switching pause before the plan works
  double seconds = 0;                    ///< time until the next decision, pause included; ends early when the work is done
  bool reserve = false;                  ///< true if the plan overrides the mixture to keep the deadline reachable
  double horizon_s = 0;                  ///< rest of the horizon when the decision begins, and its expected progress
  double progress = 0;
  mix::mixture mixture = {};  ///< mixture of the rest of the horizon
};

/// Returns the state of a job that followed a decision for `seconds` and did `work`. Complexity: O(turns).
[[nodiscard]] job_state after(const job_state& before, const decision& d, double seconds, double work);

/// The uniform-progress controller. A horizon of min(Delta, D_rem) should bring its share of the remaining work, EP = horizon /
/// D_rem * W_rem. The mixture for that goal selects the plans; a horizon that falls short leaves more work to the next ones.
///
/// The reserve is ours. A state is safe if some plan, at its rate less the pessimism, ends in time after its pause. A decision is
/// unsafe if one period of its plan at the pessimistic rate may end in an unsafe state. The plan that does the most work until the
/// deadline then replaces it. So, while no rate falls by more than the pessimism, a safe job stays safe and ends in time: the
/// replacement keeps the state safe by definition, and another plan runs only if it does too. In an unsafe state the replacement
/// also runs; no plan could do more unless the order of rates changes.
///
/// The faster plan comes first (turn_order). With the slower one first, low rates push a job into the reserve, whose plan is the
/// fastest and usually the most expensive. Idle time comes at the end of a mixture, and a horizon that makes its progress early ends
/// early. So all idle time gathers before the deadline, where it still is a reserve.
///
/// The controller is called at every decision, as in the paper, or once per horizon with its turns executed in order; the mixture
/// decides (mixture_control). The reserve applies to both.
///
/// Source  Dora, section 4.3, uniform progress. Deviations: the reserve; the faster plan first, where the paper runs the economical
///         plan first; horizons that end early; an infinite Delta by default; open-loop turns.
struct uniform_progress {
  plan_rates rates = {};  ///< current rates; may change between decisions
  progress_options options = {};
  any_mixing_controller mixing = exact_mixing{};  ///< controller of each horizon

  /// Status      ok, or infeasible if the deadline has passed with work left.
  /// Complexity  O(n^2) for n plans, or that of `mixing` if it is called.
  /// Throws      invalid_input for bad rates (check_plan_rates), bad options, or a state with NaN or negative work.
  [[nodiscard]] decision decide(const job_state& now) const;

 private:
  static constexpr double shortest = 0.1;  // least length of a turn or of the rest of a horizon, in periods

  /// Sets the horizon of a decision. True if the current horizon continues; an infinite one always does.
  [[nodiscard]] bool begin_or_go_on(decision& d, const job_state& now) const;
  /// Returns the remaining turns that fit into the horizon, summed at current rates.
  [[nodiscard]] mixture rest_of(const job_state& now, double horizon_s, double progress) const;
  void run(decision& d, const job_state& now, std::optional<std::size_t> plan, double seconds) const;
  /// Returns the plan that does the most work in `time_s`, its pause deducted.
  [[nodiscard]] std::optional<std::size_t> most_work(double time_s, std::optional<std::size_t> running) const;
  [[nodiscard]] std::optional<std::size_t> first_to_end(const job_state& now) const;
  /// True if the worst outcome of the decision is a safe state.
  [[nodiscard]] bool stays_safe(const decision& d, const job_state& now) const;
  void check(const job_state& now) const;
};

}  // namespace hetplan::mix

#ifndef HETPLAN_SEPARATE
#include <hetplan/mix/progress.ipp>
#endif
