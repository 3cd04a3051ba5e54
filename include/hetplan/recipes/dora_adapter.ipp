// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/recipes/dora_adapter.hpp>

#include <algorithm>
#include <numeric>

#include <hetplan/adapt/replication.hpp>
#include <hetplan/adapt/timeline.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/search/ranking.hpp>

namespace hetplan::adapt {

HETPLAN_INLINE mixing_policy::mixing_policy(const planning_problem& problem, any_planner planner, mixing_options options)
    : problem_(&problem), options_(options), known_(problem), plan_(problem, std::move(planner), options.common.memory),
      changes_(checked_options(options.common, "mixing_policy")) {
  controller_.options = options.progress;
  controller_.mixing = std::move(options.mixing);
}

HETPLAN_INLINE reaction mixing_policy::react(const situation& s) {
  if (!s.wanted.deadline || !s.wanted.iterations) {
    throw invalid_input("mixing_policy: nothing says when the job should end; expected qoe.deadline and qoe.iterations");
  }
  const change_size changed = changes_.classify(s);
  const bool large = changed == change_size::large;
  for (const ranked_plan& r : menu_) known_.add(r.plan);
  const auto drop_turns = [&] {
    if (begun_) begun_->answer.mixture.parts.clear();
  };
  bool look = large;
  if (known_.forget(options_.common.most_plans)) {
    look = true;
    drop_turns();  // indices of plans have changed
  }
  if (s.running == nullptr) {
    const plan_result& found = plan_(known_, s, s.wanted);
    take(found);
    if (known_.size() == 0) return {.reason = found.status.reason};
  }
  std::optional<std::size_t> running;
  if (s.running != nullptr) running = known_.add(*s.running);
  if (large) begun_.reset();  // new rates need a new horizon
  look = look || running != running_ || controller_.rates.plans.size() != known_.size();
  if (look) look_up(s, running);
  running_ = running;
  mix::decision d = decide(s, running);
  rung reached = rung::known_plan;
  seconds thinking = options_.common.thinking.choose;
  if ((large || (plan_.ask_again() && at_most(*plan_.ask_again(), s.now))) && is_late(d) && s.running != nullptr) {
    const bool search = plan_.may_pay(s, s.wanted);
    const std::size_t before = known_.size();
    const std::vector<mix::plan_rate> rates = controller_.rates.plans;
    double fastest = 0;
    for (const mix::plan_rate& r : rates) fastest = std::max(fastest, r.rate);
    int scheduled = 0;
    for (std::size_t i = 0; i < before; ++i) {
      if (d.plan != i && !(search && rates[i].rate >= 0.9 * fastest)) continue;
      static_cast<void>(known_.reschedule(i, s.noticed, s.traffic, s.wanted, options_.common.network));
      ++scheduled;
    }
    thinking = options_.common.thinking.reschedule * scheduled;
    const auto again = [&](std::size_t known) {
      if (known_.size() == known) return;
      drop_turns();  // they were decided without the new plans
      look_up(s, running);
      d = decide(s, running);
    };
    again(before);
    if (is_late(d)) {
      const std::size_t known = known_.size();
      take(plan_(known_, s, s.wanted));
      again(known);
      if (search) {
        reached = rung::replanned;
        thinking = options_.common.thinking.replan;
      }
    }
  }
  begun_ = question{s.now.value(), s.done, d};
  const auto& plans = controller_.rates.plans;
  const bool any = std::any_of(plans.begin(), plans.end(), [](const mix::plan_rate& r) { return r.rate > 0; });
  reaction r{.reached = reached,
             .ask_again = s.now + std::min(seconds(std::max(d.seconds, shortest_s)), longest_timeline),
             .rest = !d.plan && any,
             .reason = any ? d.status.reason : "no plan can run now"};
  r.cancel = s.coming != nullptr;  // false below if a switch is chosen
  if (changed == change_size::small && d.plan && d.plan == running && s.can_run && s.coming == nullptr) {
    if (auto other_order = reorder_transfers(*problem_, known_, s, options_.common)) {
      other_order->ask_again = r.ask_again;
      return *other_order;
    }
  }
  if (!d.plan || d.plan == running) return r;
  if (s.running != nullptr && same_placement(known_[*d.plan], *s.running)) r.reached = rung::network;
  r.next = known_[*d.plan];
  r.cancel = false;
  r.how = switching::background;
  r.thinking = s.running == nullptr ? seconds{} : thinking;
  if (r.reason.empty()) r.reason = d.reserve ? "the reserve before the deadline" : "its turn in the mixture";
  return r;
}

HETPLAN_INLINE mix::decision mixing_policy::decide(const situation& s, std::optional<std::size_t> running) const {
  mix::job_state job{.work_left = static_cast<double>(*s.wanted.iterations - s.done),
                     .time_left_s = (*s.wanted.deadline - s.now).value(),
                     .running = running};
  if (at_most(*s.wanted.deadline, s.now)) job.time_left_s = std::min(0.0, job.time_left_s);
  if (begun_) {  // continue the horizon
    const mix::job_state rest = mix::after({}, begun_->answer, s.now.value() - begun_->now_s, static_cast<double>(s.done - begun_->done));
    job.horizon_left_s = rest.horizon_left_s;
    job.progress_left = rest.progress_left;
    job.turns_left = rest.turns_left;
  }
  mix::decision d = controller_.decide(job);
  double longest = 0;
  for (const mix::mixture_part& part : d.mixture.parts) longest = std::max(longest, 1 / controller_.rates.plans[part.plan].rate);
  if (d.mixture.parts.size() < 2 && d.mixture.idle_s > longest) return d;
  job.time_left_s -= longest;
  return job.time_left_s > 0 ? controller_.decide(job) : d;
}

HETPLAN_INLINE void mixing_policy::take(const plan_result& r) {
  for (const ranked_plan& x : r.plans) known_.add(x.plan);
  if (!r.plans.empty()) menu_ = r.plans;
}

HETPLAN_INLINE void mixing_policy::look_up(const situation& s, std::optional<std::size_t> running) {
  const std::size_t n = known_.size();
  mix::plan_rates& rates = controller_.rates;
  rates.plans.assign(n, {});
  rates.switches.between.assign(n * n, {});
  for (std::size_t i = 0; i < n; ++i) {
    const iteration each = known_.try_out(i, s.noticed, s.traffic);
    if (each.ended && each.took_s > 0) rates.plans[i] = {1 / each.took_s, each.energy_J() / each.took_s};
  }
  for (std::size_t i = 0; i < n; ++i) {
    const holdings held = i == running ? s.held : holdings_of(known_[i], problem_->model, problem_->cluster.size());
    for (std::size_t j = 0; j < n; ++j) {
      if (i == j || rates.plans[j].rate <= 0 || (rates.plans[i].rate <= 0 && i != running)) continue;
      rates.switches.between[i * n + j] =
          estimate_switch(*problem_, held, known_[j], s.noticed).value_or(mix::switch_cost{out_of_reach_s, 0});
    }
  }
  std::vector<double> idle_W(problem_->cluster.size(), 0);  // idle power of the running plan's devices
  if (running) add_idle_energy(idle_W, problem_->models.energy, problem_->cluster, known_.devices(*running), s.noticed, 1);
  rates.idle_W = std::accumulate(idle_W.begin(), idle_W.end(), 0.0);
}

}  // namespace hetplan::adapt

namespace hetplan::recipes {

HETPLAN_INLINE plan_result dora_planner::operator()(const planning_problem& problem, std::span<const plan> known) const {
  constexpr int narrow = 3;
  const any_objective objective = objective_of_job(problem.job);
  planning_problem part = problem;
  part.with_bounds = false;
  ranking best(part, objective, std::max<int>(1, static_cast<int>(known.size())));
  for (plan p : known) {
    p.sharing_policy = sharing::fair_share;
    p.schedule.transfers.clear();  // they are specific to the other network
    best.consider(std::move(p), static_cast<long long>(known.size()));
  }
  dora_options how = options;
  how.incumbents.clear();
  how.partitioner.k = std::min(how.partitioner.k, narrow);
  how.partitioner.polish.plans = std::min(how.partitioner.polish.plans, 1);
  how.partitioner.known = std::move(best).result().plans;
  if (how.partitioner.known.empty()) return (*this)(problem);
  return dora(problem, objective, keep, how);
}

}  // namespace hetplan::recipes
