// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/mix/progress.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace hetplan::mix {

HETPLAN_INLINE job_state after(const job_state& before, const decision& d, double seconds, double work) {
  const auto left = [](double of, double done) { return at_most(of, done) ? 0 : of - done; };
  const bool followed = !d.mixture.parts.empty() && d.plan == d.mixture.parts.front().plan && !d.reserve;
  std::vector<mixture_part> turns;
  if (followed && d.mixture.control == mixture_control::open_loop) {
    turns = d.mixture.parts;
    turns.front().seconds -= std::max(0.0, seconds - d.pause_s);
    if (!(turns.front().seconds > relative_tolerance * seconds)) turns.erase(turns.begin());  // finished up to rounding
  }
  return {.work_left = left(before.work_left, work),
          .time_left_s = before.time_left_s - seconds,
          .running = d.plan ? d.plan : before.running,
          .horizon_left_s = left(d.horizon_s, seconds),
          .progress_left = left(d.progress, work),
          .turns_left = std::move(turns)};
}

HETPLAN_INLINE decision uniform_progress::decide(const job_state& now) const {
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
  const auto runs = [&](const mixture_part& turn) { return rates.plans[turn.plan].rate > 0; };
  const bool goes_on = begin_or_go_on(d, now) && !now.turns_left.empty();
  if (goes_on && std::all_of(now.turns_left.begin(), now.turns_left.end(), runs)) {
    d.mixture = rest_of(now, d.horizon_s, d.progress);
  }
  if (d.mixture.parts.empty()) {
    d.mixture = mixing(rates, {.horizon_s = d.horizon_s,
                               .progress = d.progress,
                               .running = now.running,
                               .shortfall_J = options.shortfall_J,
                               .order = turn_order::faster_first});
  }
  if (d.mixture.parts.empty()) {
    d.seconds = std::min({d.mixture.idle_s, options.period_s, now.time_left_s});
  } else {
    const mixture_part& part = d.mixture.parts.front();
    const bool last = d.mixture.parts.size() == 1;  // a slow plan would otherwise stop ever closer to the end
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

HETPLAN_INLINE bool uniform_progress::begin_or_go_on(decision& d, const job_state& now) const {
  d.horizon_s = std::min(now.horizon_left_s, now.time_left_s);
  d.progress = std::min(now.progress_left, now.work_left);
  if (d.horizon_s > shortest * options.period_s && d.progress > relative_tolerance * now.work_left && std::isfinite(options.horizon_s))
    return true;
  d.horizon_s = std::min(options.horizon_s, now.time_left_s);
  d.progress = d.horizon_s / now.time_left_s * now.work_left;
  return std::isinf(options.horizon_s);
}

HETPLAN_INLINE mixture uniform_progress::rest_of(const job_state& now, double horizon_s, double progress) const {
  mixture m{.idle_s = horizon_s};
  std::optional<std::size_t> before = now.running;
  for (const mixture_part& turn : now.turns_left) {
    const switch_cost in = rates.cost(before, turn.plan);
    const double seconds = std::min(turn.seconds, m.idle_s - in.pause_s);  // earlier turns may have taken longer
    if (!(seconds > 0)) break;
    m.parts.push_back({turn.plan, in.pause_s, seconds});
    m.idle_s -= in.pause_s + seconds;
    m.progress += rates.plans[turn.plan].rate * seconds;
    m.energy_J += in.energy_J + in.pause_s * rates.idle_W + rates.plans[turn.plan].power_W * seconds;
    before = turn.plan;
  }
  m.energy_J += m.idle_s * rates.idle_W;
  m.shortfall = at_most(progress, m.progress) ? 0 : progress - m.progress;
  m.objective = detail::priced(m.energy_J, m.shortfall, options.shortfall_J);
  return m;
}

HETPLAN_INLINE void uniform_progress::run(decision& d, const job_state& now, std::optional<std::size_t> plan, double seconds) const {
  d.plan = plan;
  d.pause_s = plan ? rates.cost(now.running, *plan).pause_s : 0;
  d.seconds = d.pause_s + seconds;
  if (now.time_left_s > 0) d.seconds = std::min(d.seconds, now.time_left_s);
}

HETPLAN_INLINE std::optional<std::size_t> uniform_progress::most_work(double time_s, std::optional<std::size_t> running) const {
  std::optional<std::size_t> best;
  double most = 0;
  for (std::size_t p = 0; p < rates.plans.size(); ++p) {
    const double work = rates.plans[p].rate * (time_s - rates.cost(running, p).pause_s);
    if (!at_most(work, most)) {
      most = work;
      best = p;
    }
  }
  return best;
}

HETPLAN_INLINE std::optional<std::size_t> uniform_progress::first_to_end(const job_state& now) const {
  std::optional<std::size_t> best;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t p = 0; p < rates.plans.size(); ++p) {
    if (!(rates.plans[p].rate > 0)) continue;
    const double time = rates.cost(now.running, p).pause_s + now.work_left / rates.plans[p].rate;
    if (!at_most(least, time)) {
      least = time;
      best = p;
    }
  }
  return best;
}

HETPLAN_INLINE bool uniform_progress::stays_safe(const decision& d, const job_state& now) const {
  const double worst = 1 - options.pessimism;
  const double work = d.plan ? worst * rates.plans[*d.plan].rate * (d.seconds - d.pause_s) : 0;
  const std::optional<std::size_t> from = d.plan ? d.plan : now.running;
  const double time = now.time_left_s - d.seconds;
  const std::optional<std::size_t> most = most_work(time, from);
  const double reach = most ? worst * rates.plans[*most].rate * (time - rates.cost(from, *most).pause_s) : 0;
  return at_most(now.work_left, work + reach);
}

HETPLAN_INLINE void uniform_progress::check(const job_state& now) const {
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
  for (const mixture_part& turn : now.turns_left) {
    if (turn.plan < rates.plans.size() && turn.seconds >= 0) continue;
    fail("a turn of " + to_text(turn.seconds) + " s is left to plan " + std::to_string(turn.plan) + "; expected a number >= 0 and one of " +
         std::to_string(rates.plans.size()) + " plans");
  }
  if (!(now.horizon_left_s >= 0 && now.progress_left >= 0)) {
    fail("horizon_left_s is " + to_text(now.horizon_left_s) + ", progress_left " + to_text(now.progress_left) + "; expected numbers >= 0");
  }
}

}  // namespace hetplan::mix
