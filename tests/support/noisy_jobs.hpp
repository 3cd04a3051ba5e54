// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Interruptible jobs with plans that deviate from their expected rates, and their runs under the uniform-progress controller.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <hetplan/mix/mixing_controller.hpp>
#include <hetplan/mix/progress.hpp>

#include "support/random_source.hpp"

namespace hetplan::test {

/// Kind of noise: `common` slows or speeds all plans alike (a busy room), `own` draws each plan separately.
enum class noise_kind { common, own };

struct noisy_job {
  mix::plan_rates expected;  ///< rates that the controller knows
  double work = 0;
  std::vector<mix::rate_period> periods;  ///< actual rates up to the deadline
  [[nodiscard]] double deadline_s() const {
    double sum = 0;
    for (const auto& p : periods) sum += p.seconds;
    return sum;
  }
};

struct noise_options {
  noise_kind kind = noise_kind::common;
  double size = 0.2;       ///< factors lie in [1 - size, 1 + size]
  double pause_s = 30;     ///< longest pause of a switch, the shortest is a third; a job takes about 100 minutes
  double least_slack = 1;  ///< least deadline / expected time of the fastest plan; drawn up to 3
};

/// Returns Pareto-optimal plans: faster plans need more energy per unit of work.
inline mix::plan_rates random_plan_rates(random_source& random, int plans, double pause_s) {
  mix::plan_rates r{.plans = {}, .switches = {}, .idle_W = random.between(5, 30)};
  double rate = random.between(0.2, 0.5), price = random.between(100, 200);
  for (int p = 0; p < plans; ++p) {
    r.plans.push_back({rate, r.idle_W + price * rate});
    rate *= random.between(1.05, 1.5);
    price *= random.between(1.03, 1.4);
  }
  random.shuffle(r.plans);
  if (pause_s > 0) {
    // Costs are proportional to distances of points on a line, so detours save nothing.
    std::vector<double> place;
    for (int p = 0; p <= plans; ++p) place.push_back(random.unit());
    const auto cost = [&](std::size_t from, std::size_t to) {
      const double part = 1.0 / 3 + 2.0 / 3 * (place[from] > place[to] ? place[from] - place[to] : place[to] - place[from]);
      return mix::switch_cost{pause_s * part, pause_s * part * 20};
    };
    const auto n = static_cast<std::size_t>(plans);
    for (std::size_t from = 0; from < n; ++from) {
      for (std::size_t to = 0; to < n; ++to) r.switches.between.push_back(from == to ? mix::switch_cost{} : cost(from, to));
    }
    for (std::size_t to = 0; to < n; ++to) r.switches.start.push_back(cost(n, to));
  }
  return r;
}

/// Returns a job of one-minute periods, about 100 minutes of work for the fastest plan.
inline noisy_job random_noisy_job(std::uint64_t seed, const noise_options& o = {}) {
  random_source random(seed * 0x2545f4914f6cdd1dU);
  noisy_job j{.expected = random_plan_rates(random, random.integer(2, 8), o.pause_s), .work = 0, .periods = {}};
  double fastest = 0;
  for (const auto& p : j.expected.plans) fastest = std::max(fastest, p.rate);
  const double need_s = random.between(60, 140) * 60;
  j.work = need_s * fastest;
  for (double left = need_s * random.between(o.least_slack, 3); left > 0; left -= 60) {
    mix::rate_period period{.seconds = std::min(60.0, left), .rates = j.expected};
    period.rates.switches = {};
    const double all = random.between(1 - o.size, 1 + o.size);
    for (auto& p : period.rates.plans) p.rate *= o.kind == noise_kind::common ? all : random.between(1 - o.size, 1 + o.size);
    j.periods.push_back(std::move(period));
  }
  return j;
}

struct noisy_run {
  bool met = false;
  double energy_J = 0;  ///< until the deadline, idle time included
  double work = 0;
  double end_s = 0;   ///< end of the work, or the deadline
  double busy_s = 0;  ///< without pauses
  double pause_s = 0;
  int switches = 0;  ///< including the first start
  int decisions = 0;
  int reserve = 0;  ///< decisions by the reserve
};

/// Returns the run of the controller at the actual rates of each period.
inline noisy_run run(const noisy_job& job, const mix::uniform_progress& controller) {
  noisy_run r;
  mix::job_state state{.work_left = job.work, .time_left_s = job.deadline_s()};
  const double deadline_s = state.time_left_s;
  double now = 0;  // since the start
  std::size_t period = 0;
  double period_end = job.periods.front().seconds;
  // Spends up to `seconds` at the power and rate of a plan (none: idle power, no work). Returns the work done.
  const auto spend = [&](double seconds, std::optional<std::size_t> plan, double work_left) {
    const double end = std::min(now + seconds, deadline_s);
    double work = 0;
    while (now < end && work < work_left) {
      while (period + 1 < job.periods.size() && period_end <= now) period_end += job.periods[++period].seconds;
      const auto& rates = job.periods[period].rates;
      const double stop = period + 1 < job.periods.size() ? std::min(end, period_end) : end;
      double step = stop - now;
      bool finishes = false;
      if (plan) {
        const double rate = rates.plans[*plan].rate;
        finishes = rate * step >= work_left - work;
        if (finishes) step = (work_left - work) / rate;
        work = finishes ? work_left : work + rate * step;
        r.busy_s += step;
      }
      r.energy_J += (plan ? rates.plans[*plan].power_W : rates.idle_W) * step;
      now = finishes ? now + step : stop;
    }
    return work;
  };
  while (state.work_left > 0 && now < deadline_s) {
    const mix::decision d = controller.decide(state);
    ++r.decisions;
    r.reserve += d.reserve ? 1 : 0;
    const double begin = now;
    double work = 0;
    if (d.plan) {
      if (d.plan != state.running) {
        ++r.switches;
        r.energy_J += controller.rates.cost(state.running, *d.plan).energy_J;
        spend(d.pause_s, std::nullopt, 1);
        r.pause_s += now - begin;
      }
      work = spend(d.seconds - d.pause_s, d.plan, state.work_left);
    } else {
      spend(d.seconds, std::nullopt, 1);
    }
    r.work += work;
    state = mix::after(state, d, now - begin, work);
    state.time_left_s = deadline_s - now;
  }
  r.met = !(state.work_left > 0);
  r.end_s = now;
  spend(deadline_s - now, std::nullopt, 1);
  return r;
}

}  // namespace hetplan::test
