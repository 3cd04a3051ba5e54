// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The uniform-progress controller: which plan an interruptible job runs now, so that it ends before its deadline with
/// little energy although rates vary.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>

#include <hetplan/adapt/mixing.hpp>
#include <hetplan/adapt/plan_rates.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/core/status.hpp>

namespace hetplan::adapt {

struct progress_options {
  /// The paper's Delta. Infinite: the whole rest of the job is one horizon, which switches least and took the least energy
  /// under noise (bench/mixing.cpp).
  double horizon_s = std::numeric_limits<double>::infinity();
  double period_s = 60;    ///< working time between decisions, shorter where a turn ends; also what the reserve looks ahead
  double pessimism = 0.2;  ///< rates may fall by this share; 0 <= pessimism < 1
  double shortfall_J = std::numeric_limits<double>::infinity();  ///< mixing_goal's
};

/// A job between two decisions. The last two fields are the rest of the horizon that was begun; 0 begins a new one.
struct job_state {
  double work_left = 0;    ///< W_rem
  double time_left_s = 0;  ///< D_rem, to the deadline
  std::optional<std::size_t> running = {};
  double horizon_left_s = 0;
  double progress_left = 0;
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
  adapt::mixture mixture = {};  ///< of what is left of the horizon
};

/// The job after it followed a decision for `seconds`, in which `work` was done.
[[nodiscard]] inline job_state after(const job_state& before, const decision& d, double seconds, double work) {
  return {.work_left = std::max(0.0, before.work_left - work),
          .time_left_s = before.time_left_s - seconds,
          .running = d.plan ? d.plan : before.running,
          .horizon_left_s = std::max(0.0, d.horizon_s - seconds),
          .progress_left = std::max(0.0, d.progress - work)};
}

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
/// Source  Dora, section 4.3, uniform progress. Deviations: the reserve; the faster plan first, where the paper harvests
///         the economical plan first; horizons that end early; Delta is infinite unless given.
struct uniform_progress {
  plan_rates rates = {};  ///< as known now; may be changed between decisions
  progress_options options = {};

  /// Status      ok, or infeasible where the deadline has passed with work left.
  /// Complexity  O(n^2) for n plans.
  /// Throws      invalid_input for bad rates (check_plan_rates), options or a state with NaN or negative work.
  [[nodiscard]] decision decide(const job_state& now) const {
    check(now);
    decision d;
    if (!(now.work_left > 0)) {
      d.seconds = std::max(0.0, now.time_left_s);
      return d;
    }
    if (!(now.time_left_s > 0)) {
      d.mixture = mix(rates, {.horizon_s = now.time_left_s, .progress = now.work_left, .running = now.running});
      d.status = d.mixture.status;
      run(d, now, first_to_end(now), options.period_s);
      return d;
    }
    begin_or_go_on(d, now);
    d.mixture = mix(rates, {.horizon_s = d.horizon_s,
                            .progress = d.progress,
                            .running = now.running,
                            .shortfall_J = options.shortfall_J,
                            .order = turn_order::faster_first});
    if (d.mixture.parts.empty()) {
      d.seconds = std::min({d.mixture.idle_s, options.period_s, now.time_left_s});
    } else {
      const mixture_part& part = d.mixture.parts.front();
      const bool last = d.mixture.parts.size() == 1;  // slower than expected it would end again and again just before the end
      run(d, now, part.plan, last ? options.period_s : std::clamp(part.seconds, shortest * options.period_s, options.period_s));
    }
    if (!stays_safe(d, now)) {
      const std::optional<std::size_t> most = most_work(now.time_left_s, now.running);
      if (most && d.plan != most) {
        d.reserve = true;
        run(d, now, most, options.period_s);
      }
    }
    return d;
  }

 private:
  static constexpr double shortest = 0.1;  // of a period, for a turn or the rest of a horizon

  void begin_or_go_on(decision& d, const job_state& now) const {
    d.horizon_s = std::min(now.horizon_left_s, now.time_left_s);
    d.progress = std::min(now.progress_left, now.work_left);
    if (d.horizon_s > shortest * options.period_s && d.progress > 1e-9 * now.work_left && std::isfinite(options.horizon_s)) return;
    d.horizon_s = std::min(options.horizon_s, now.time_left_s);
    d.progress = d.horizon_s / now.time_left_s * now.work_left;
  }
  void run(decision& d, const job_state& now, std::optional<std::size_t> plan, double seconds) const {
    d.plan = plan;
    d.pause_s = plan ? rates.cost(now.running, *plan).pause_s : 0;
    d.seconds = d.pause_s + seconds;
    if (now.time_left_s > 0) d.seconds = std::min(d.seconds, now.time_left_s);
  }
  /// Work until the deadline at rate r, for every plan of rate > 0 the most.
  [[nodiscard]] std::optional<std::size_t> most_work(double time_s, std::optional<std::size_t> running) const {
    std::optional<std::size_t> best;
    double most = 0;
    for (std::size_t p = 0; p < rates.plans.size(); ++p) {
      const double work = rates.plans[p].rate * (time_s - rates.cost(running, p).pause_s);
      if (work > most) {
        most = work;
        best = p;
      }
    }
    return best;
  }
  [[nodiscard]] std::optional<std::size_t> first_to_end(const job_state& now) const {
    std::optional<std::size_t> best;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t p = 0; p < rates.plans.size(); ++p) {
      if (!(rates.plans[p].rate > 0)) continue;
      const double time = rates.cost(now.running, p).pause_s + now.work_left / rates.plans[p].rate;
      if (time < least) {
        least = time;
        best = p;
      }
    }
    return best;
  }
  /// The state that the decision leads to at its worst is safe.
  [[nodiscard]] bool stays_safe(const decision& d, const job_state& now) const {
    const double worst = 1 - options.pessimism;
    const double work = d.plan ? worst * rates.plans[*d.plan].rate * (d.seconds - d.pause_s) : 0;
    const std::optional<std::size_t> from = d.plan ? d.plan : now.running;
    const double time = now.time_left_s - d.seconds;
    const std::optional<std::size_t> most = most_work(time, from);
    const double reach = most ? worst * rates.plans[*most].rate * (time - rates.cost(from, *most).pause_s) : 0;
    return now.work_left - work <= reach;
  }
  void check(const job_state& now) const {
    const auto fail = [](const std::string& what) { throw invalid_input("uniform_progress: " + what); };
    check_plan_rates(rates);
    check_running(rates, now.running);
    if (!(options.horizon_s > 0)) fail("horizon_s is " + to_text(options.horizon_s) + "; expected more than 0, or infinity");
    if (!(options.period_s > 0 && std::isfinite(options.period_s))) {
      fail("period_s is " + to_text(options.period_s) + "; expected a finite number > 0");
    }
    if (!(options.pessimism >= 0 && options.pessimism < 1)) fail("pessimism is " + to_text(options.pessimism) + "; expected [0, 1)");
    if (!(options.shortfall_J >= 0)) fail("shortfall_J is " + to_text(options.shortfall_J) + "; expected a number >= 0, or infinity");
    if (!(std::isfinite(now.work_left) && now.work_left >= 0))
      fail("work_left is " + to_text(now.work_left) + "; expected a finite number >= 0");
    if (!std::isfinite(now.time_left_s)) fail("time_left_s is " + to_text(now.time_left_s) + "; expected a finite number");
    if (!(now.horizon_left_s >= 0 && now.progress_left >= 0)) {
      fail("horizon_left_s is " + to_text(now.horizon_left_s) + ", progress_left " + to_text(now.progress_left) +
           "; expected numbers >= 0");
    }
  }
};

}  // namespace hetplan::adapt
