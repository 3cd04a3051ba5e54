// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/iteration.hpp>

#include <cmath>
#include <limits>
#include <utility>

#include <hetplan/core/error.hpp>

namespace hetplan::adapt {

HETPLAN_INLINE bool uses(const plan& p, device_id d) {
  return std::any_of(p.stages.begin(), p.stages.end(), [&](const stage& s) {
    return std::any_of(s.devices.begin(), s.devices.end(), [&](const assignment& a) { return a.device == d; });
  });
}

HETPLAN_INLINE double iteration::energy_J() const {
  double total = 0;
  for (const double e : device_J) total += e;
  return total;
}

HETPLAN_INLINE double whole_until(double at_s, double now_s, double each_s) {
  const double whole = std::floor((at_s - now_s) / each_s);
  return at_most(now_s + (whole + 1) * each_s, at_s) ? whole + 1 : whole;
}
HETPLAN_INLINE double whole_reaching(double at_s, double now_s, double each_s) {
  const double whole = std::ceil((at_s - now_s) / each_s);
  return at_most(at_s, now_s + (whole - 1) * each_s) ? whole - 1 : whole;
}

HETPLAN_INLINE std::vector<double> energy_of_bytes(const any_energy_model& energy, const cluster& c, const std::vector<double>& sent,
                                                   const std::vector<double>& received) {
  std::vector<double> spent;
  for (const device& d : c.devices()) {
    spent.push_back(checked_energy(energy, {.sent = bytes(sent[d.id.index()]), .received = bytes(received[d.id.index()])}, d).value());
  }
  return spent;
}

HETPLAN_INLINE void add_idle_energy(std::vector<double>& spent, const any_energy_model& energy, const cluster& c,
                                    std::span<const device_id> devices, const conditions& now, double for_s) {
  for (const device_id d : devices) {
    if (spent[d.index()] == 0 && now.present[d.index()] != 0)
      spent[d.index()] = checked_energy(energy, {.total = seconds(for_s)}, c[d]).value();
  }
}

HETPLAN_INLINE plan_runner::plan_runner(const planning_problem& problem, plan p) : problem_(&problem), plan_(std::move(p)) {
  judged_.graph = tasks::expand(stage_costs(problem, plan_));
  for (std::size_t d = 0; d < judged_.graph.used.size(); ++d) {
    if (judged_.graph.used[d] != 0) devices_.push_back(device_id(d));
  }
  std::vector<char> carries(problem.cluster.network().resources().size(), 0);
  for (const tasks::transfer& t : judged_.graph.transfers) {
    for (const resource_use& u : judged_.graph.routes[t.route].via) carries[u.resource.index()] |= t.volume_bytes > 0 ? 1 : 0;
  }
  for (std::size_t r = 0; r < carries.size(); ++r) {
    if (carries[r] != 0) resources_.push_back(resource_id(r));
  }
}

HETPLAN_INLINE bool plan_runner::can_run(const conditions& now) const {
  return std::all_of(devices_.begin(), devices_.end(), [&](device_id d) { return now.works(d); }) &&
         std::all_of(resources_.begin(), resources_.end(), [&](resource_id r) { return now.capacity[r.index()].value() > 0; });
}

HETPLAN_INLINE iteration plan_runner::run(const simulator_options& options) {
  const auto& models = problem_->models;
  judged_.trace = simulate_plan(plan_, judged_.graph, problem_->cluster.network(), models, options);
  const evaluation e = measure(judged_.graph, judged_.trace, problem_->cluster, models.energy);
  const double took_s = e.latency.value();
  iteration i{.ended = judged_.trace.status.ok(), .took_s = took_s, .response_s = took_s, .first_s = took_s};
  if (i.ended && plan_.workload.mode == mode::generation) {
    const token_times tokens = token_times_of(plan_, judged_);
    i.response_s = tokens.between.value_or(e.latency).value();
    i.first_s = tokens.first.value();
  }
  for (const device_evaluation& d : e.devices) i.device_J.push_back(d.energy.value());
  i.background_left = judged_.trace.background_left;
  return i;
}

HETPLAN_INLINE iteration plan_runner::rehearse(const conditions& now, std::span<const foreign_traffic> traffic) {
  constexpr seconds long_enough(1e9);
  simulator_options o = from_the_start(now, problem_->cluster);
  for (const foreign_traffic& f : traffic) o.background.push_back({f.from, f.to, f.left, {}, f.priority});
  o.until = long_enough;
  iteration i;
  if (can_run(now)) i = run(o);
  if (!i.ended) i.took_s = i.response_s = std::numeric_limits<double>::infinity();
  return i;
}

HETPLAN_INLINE bool serving::beats(const serving& other) const {
  if (!at_most(other.late_s, late_s)) return true;
  return at_most(late_s, other.late_s) && !at_most(other.score, score);
}

HETPLAN_INLINE goal::goal(job j, const qoe_target& wanted, seconds now, long long done)
    : now_s_(now.value()), latency_(wanted.latency), objective_((j.qoe = wanted, std::move(j))) {
  if (!wanted.deadline || !wanted.iterations) return;
  deadline_s_ = wanted.deadline->value();
  left_ = static_cast<double>(std::max(0LL, *wanted.iterations - done));
}

HETPLAN_INLINE serving goal::of(const iteration& i) const {
  constexpr double never = std::numeric_limits<double>::infinity();
  if (!i.ended) return {never, never};
  if (!deadline_s_) {
    return {0, objective_.score({seconds(i.took_s), seconds(i.first_s), seconds(i.response_s)}, joules(i.energy_J()))};
  }
  const double end_s = now_s_ + left_ * i.took_s;
  return {at_most(end_s, *deadline_s_) ? 0 : end_s - *deadline_s_, left_ * i.energy_J()};
}

HETPLAN_INLINE std::optional<bool> goal::keeps_latency(const iteration& i, double spare) const {
  if (!latency_) return std::nullopt;
  return i.ended && at_most(i.response_s, (1 - spare) * latency_->value());
}

}  // namespace hetplan::adapt
