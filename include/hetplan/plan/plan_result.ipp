// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/plan/plan_result.hpp>

#include <algorithm>
#include <cmath>

namespace hetplan {

HETPLAN_INLINE double memory_limit_bytes(const device& d) { return d.memory_for_layers().value() * (1 + limit_tolerance); }

HETPLAN_INLINE int count_that_fits(double room_bytes, double each_bytes, int most) {
  if (room_bytes < 0) return 0;
  return each_bytes > 0 ? static_cast<int>(std::min<double>(most, room_bytes / each_bytes)) : most;
}

HETPLAN_INLINE bool within_memory(const evaluation& e, const cluster& c) {
  for (const device& d : c.devices()) {
    const device_evaluation& x = e.devices[d.id.index()];
    if (x.used && !at_most(x.peak_memory, d.usable_memory())) return false;
  }
  return true;
}

namespace detail {

/// Visits the limits that a plan breaks: memory, energy, busy share; each by device.
template <class Visit>
void for_each_broken_limit(const evaluation& e, const cluster& c, Visit&& visit) {
  const auto check = [&](limit_kind kind, device_id d, double used, double allowed) {
    if (!at_most(used, allowed)) visit(broken_limit{kind, d, used, allowed});
  };
  for (const device& d : c.devices()) {
    const device_evaluation& x = e.devices[d.id.index()];
    if (x.used) check(limit_kind::memory, d.id, x.peak_memory.value(), d.usable_memory().value());
  }
  for (const device& d : c.devices()) {
    const device_evaluation& x = e.devices[d.id.index()];
    if (x.used && d.energy_budget) check(limit_kind::energy, d.id, x.energy.value(), d.energy_budget->value());
  }
  for (const device& d : c.devices()) {
    const device_evaluation& x = e.devices[d.id.index()];
    if (x.used && e.latency.value() > 0) check(limit_kind::busy_share, d.id, x.busy / e.latency, d.max_busy);
  }
}

}  // namespace detail

HETPLAN_INLINE std::optional<broken_limit> find_broken_limit(const evaluation& e, const cluster& c) {
  std::optional<broken_limit> worst;
  detail::for_each_broken_limit(e, c, [&](const broken_limit& b) {
    if (!worst || b.overflow() > worst->overflow()) worst = b;
  });
  return worst;
}

HETPLAN_INLINE std::vector<broken_limit> broken_limits(const evaluation& e, const cluster& c) {
  std::vector<broken_limit> all;
  detail::for_each_broken_limit(e, c, [&](const broken_limit& b) { all.push_back(b); });
  return all;
}

HETPLAN_INLINE double total_overflow(const evaluation& e, const cluster& c) {
  double total = 0;
  detail::for_each_broken_limit(e, c, [&](const broken_limit& b) { total += b.overflow(); });
  return total;
}

HETPLAN_INLINE std::string to_string(const broken_limit& b, const cluster& c) {
  const auto amount = [&](double v) {
    if (b.kind == limit_kind::memory) return v < 1e9 ? format_line("%.4g MB", v / 1e6) : format_line("%.4g GB", v / 1e9);
    return b.kind == limit_kind::energy ? format_line("%.4g J", v) : format_line("%.3g %%", 100 * v);
  };
  const char* what = b.kind == limit_kind::memory ? "memory" : b.kind == limit_kind::energy ? "energy" : "busy share";
  return std::string(what) + ": " + c[b.device].name + " needs " + amount(b.used) + " and may use " + amount(b.allowed) + ": " +
         amount(b.used - b.allowed) + " too much";
}

HETPLAN_INLINE seconds keep_qoe::excess(const run_times& t) const {
  seconds sum;
  const auto add = [&](seconds taken, const std::optional<seconds>& wanted) {
    if (wanted && !at_most(taken, *wanted)) sum += taken - *wanted;
  };
  add(t.response(), latency);
  add(t.makespan, makespan);
  add(t.ttft, ttft);
  add(t.between_tokens, time_between_tokens);
  return sum;
}

HETPLAN_INLINE objective_of_job::objective_of_job(const job& j) {
  const qoe_target& q = j.qoe;
  limits_ = {.makespan = q.makespan, .ttft = q.ttft, .time_between_tokens = q.time_between_tokens};
  limited_ = q.makespan || q.ttft || q.time_between_tokens;
  switch (j.effective_objective()) {
    case objective_kind::latency: chosen_ = minimize_latency{}; break;
    case objective_kind::throughput: chosen_ = maximize_throughput{static_cast<double>(j.batch)}; break;
    case objective_kind::ttft: chosen_ = minimize_ttft{}; break;
    case objective_kind::time_between_tokens: chosen_ = minimize_response{}; break;
    case objective_kind::energy: chosen_ = minimize_energy{}; break;
    case objective_kind::qoe:
      if (!q.has_times()) throw invalid_input("objective_of_job: objective qoe needs a time in qoe");
      chosen_ = keep_qoe{q.latency, q.lambda_J_per_s, q.makespan, q.ttft, q.time_between_tokens};
      limited_ = false;
      break;
  }
}

HETPLAN_INLINE double objective_of_job::score(const run_times& t, joules energy) const {
  constexpr double behind_all_that_keep_them = 1e30;
  const double own = std::visit(
      [&]<class O>(const O& o) {
        if constexpr (scores_times<O>) return o.score(t, energy);
        else return o.score(t.response(), energy);
      },
      chosen_);
  const double excess = limited_ ? limits_.excess(t).value() : 0;
  if (excess <= 0) return own;
  // Excesses that differ by rounding are equal: what the job wants otherwise decides.
  int exponent = 0;
  const double mantissa = std::frexp(1 + excess, &exponent);
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(mantissa, 33)), exponent - 33);
  return behind_all_that_keep_them * rounded * (1 + 1e-11 * own / (1 + std::abs(own)));
}

HETPLAN_INLINE std::vector<plan> plans_of(std::span<const ranked_plan> ranked) {
  std::vector<plan> plans;
  for (const ranked_plan& r : ranked) plans.push_back(r.plan);
  return plans;
}

}  // namespace hetplan
