// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The uniform-progress controller: which plan an interruptible job runs now, so that it ends before its deadline with
/// little energy although rates vary.

#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/mix/mixing.hpp>
#include <hetplan/mix/mixing_controller.hpp>

namespace hetplan::mix {

struct progress_options {
  /// The paper's Delta. Infinite: the whole rest of the job is one horizon, which switches least and took the least energy
  /// under noise (bench/mixing.cpp).
  double horizon_s = std::numeric_limits<double>::infinity();
  double period_s = 60;    ///< working time between decisions, shorter where a turn ends; also what the reserve looks ahead
  double pessimism = 0.2;  ///< rates may fall by this share; 0 <= pessimism < 1
  double shortfall_J = std::numeric_limits<double>::infinity();  ///< mixing_goal's
};

/// A job between two decisions. The last three fields are the rest of the horizon that was begun; 0 begins a new one.
struct job_state {
  double work_left = 0;    ///< W_rem
  double time_left_s = 0;  ///< D_rem, to the deadline
  std::optional<std::size_t> running = {};
  double horizon_left_s = 0;
  double progress_left = 0;
  std::vector<mixture_part> turns_left = {};  ///< of a mixture in open loop; none: the controller is asked
};

/// What to do next.
struct decision {
  hetplan::status status = {};           ///< infeasible: the deadline has passed; the plan is the one that ends first
  std::optional<std::size_t> plan = {};  ///< none: idle
  double pause_s = 0;                    ///< of switching to it
  double seconds = 0;                    ///< decide again after so long, pause included, or when the work is done
  bool reserve = false;                  ///< the plan was chosen to keep the deadline in reach, against the mixture
  double horizon_s = 0;                  ///< what is left of the horizon, and its expected progress, when this begins
  double progress = 0;
  mix::mixture mixture = {};  ///< of what is left of the horizon
};

/// The job after it followed a decision for `seconds`, in which `work` was done.  Complexity: O(turns).
[[nodiscard]] job_state after(const job_state& before, const decision& d, double seconds, double work);

/// A horizon of min(Delta, D_rem) should bring its share of the work that is left, EP = horizon / D_rem * W_rem. The
/// mixture for that says what runs; a horizon that falls short leaves more to the next ones.
///
/// The reserve, ours: call a state safe if some plan, at its rate less the pessimism, ends in time after its pause. A
/// decision that may leave a safe state, when the plan it names works at its own pessimistic rate for one period, gives way
/// to the plan that gets most work done until the deadline. So, as long as no rate falls by more than the pessimism, a job
/// that once is safe stays safe and ends in time: from a safe state that plan keeps safety by definition, any other runs
/// only if it does. From an unsafe state it runs too, and no plan could do more, unless the order of rates changes.
///
/// The faster plan comes first (turn_order): with the slower one first, luck that is worse than expected pushes a job into
/// the reserve, whose plan is the fastest and mostly the dearest. Work comes before idling: where a mixture idles, it does
/// so at the end, and a horizon whose progress is made early ends early, so all idling gathers before the deadline, where
/// it still is a reserve.
///
/// The controller fills a horizon anew at every decision, as the paper re-evaluates what is left, or once, and its turns are carried
/// out in order: which of the two is said by the mixture (mixture_control). The reserve watches over either.
///
/// Source  Dora, section 4.3, uniform progress. Deviations: the reserve; the faster plan first, where the paper harvests
///         the economical plan first; horizons that end early; Delta is infinite unless given; turns in open loop, for
///         controllers that plan more than one ahead.
struct uniform_progress {
  plan_rates rates = {};  ///< as known now; may be changed between decisions
  progress_options options = {};
  any_mixing_controller mixing = exact_mixing{};  ///< fills each horizon

  /// Status      ok, or infeasible where the deadline has passed with work left.
  /// Complexity  O(n^2) for n plans, or that of `mixing`, if it is asked.
  /// Throws      invalid_input for bad rates (check_plan_rates), options or a state with NaN or negative work.
  [[nodiscard]] decision decide(const job_state& now) const;

 private:
  static constexpr double shortest = 0.1;  // of a period, for a turn or the rest of a horizon

  /// True: the same horizon goes on. An infinite one is begun once.
  [[nodiscard]] bool begin_or_go_on(decision& d, const job_state& now) const;
  /// The turns that are left, as far as the horizon goes, added up at present rates.
  [[nodiscard]] mixture rest_of(const job_state& now, double horizon_s, double progress) const;
  void run(decision& d, const job_state& now, std::optional<std::size_t> plan, double seconds) const;
  /// Work until the deadline at rate r, for every plan of rate > 0 the most.
  [[nodiscard]] std::optional<std::size_t> most_work(double time_s, std::optional<std::size_t> running) const;
  [[nodiscard]] std::optional<std::size_t> first_to_end(const job_state& now) const;
  /// The state that the decision leads to at its worst is safe.
  [[nodiscard]] bool stays_safe(const decision& d, const job_state& now) const;
  void check(const job_state& now) const;
};

}  // namespace hetplan::mix

#ifndef HETPLAN_SEPARATE
#include <hetplan/mix/progress.ipp>
#endif
