// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/simulate/evaluate.hpp>

#include <algorithm>
#include <limits>
#include <vector>

#include <hetplan/estimate/bounds.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/simulate/simulator.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan {

HETPLAN_INLINE token_times token_times_of(const plan& p, const judgement& j) {
  const auto& tasks = j.graph.computes;
  int first_pass = std::numeric_limits<int>::max(), last_pass = 0;
  for (const tasks::compute_task& t : tasks) {
    if (!t.makes_token) continue;
    first_pass = std::min(first_pass, t.pass);
    last_pass = std::max(last_pass, t.pass);
  }
  std::vector<double> first(static_cast<std::size_t>(p.microbatches), 0), last(first);
  for (std::size_t n = 0; n < tasks.size(); ++n) {
    const tasks::compute_task& t = tasks[n];
    if (!t.makes_token || (t.pass != first_pass && t.pass != last_pass)) continue;
    auto& ends = t.pass == first_pass ? first : last;
    for (long long g = t.first_sample / p.microbatch_size; g * p.microbatch_size < t.last_sample; ++g) {
      ends[static_cast<std::size_t>(g)] = std::max(ends[static_cast<std::size_t>(g)], j.trace.computes[n].end_s);
    }
  }
  token_times times{seconds(*std::max_element(first.begin(), first.end()))};
  if (last_pass <= first_pass) return times;
  double worst = 0;
  for (std::size_t g = 0; g < first.size(); ++g) worst = std::max(worst, (last[g] - first[g]) / (last_pass - first_pass));
  times.between = seconds(worst);
  return times;
}

HETPLAN_INLINE trace simulate_plan(const plan& p, const tasks::task_graph& g, const network& net, const judge_models& models,
                                   const simulator_options& options) {
  detail::check_one_network(models);
  if (models.sharing) return simulate(g, net, models.sharing, options);
  if (models.network.as_planned()) return simulate(g, net, policy_of_plan{p.sharing_policy}, options);
  return simulate(g, net, models.network, options);
}

namespace detail {

HETPLAN_INLINE void check_one_network(const judge_models& models) {
  if (!models.sharing || models.network.as_planned()) return;
  throw invalid_input("judge_models: a network policy and a network sharing; expected one of them at most");
}

HETPLAN_INLINE void complete(judgement& j, const stage_costs& s, const any_energy_model& energy, const simulator_options& options) {
  const cluster& c = s.cluster;
  evaluation& e = j.evaluation;
  e = measure(j.graph, j.trace, c, energy);
  if (s.plan.workload.mode == mode::generation) {
    const token_times times = token_times_of(s.plan, j);
    e.ttft = times.first;
    e.time_between_tokens = times.between;
    const workload& w = s.plan.workload;
    const auto sequences = static_cast<double>(s.plan.batch());
    if (e.latency.value() > 0) e.tokens_per_second = sequences * w.tokens / e.latency.value();
    if (times.first.value() > 0)
      e.prompt_tokens_per_second = sequences * w.prompt_tokens(s.model.tokens_per_sample()) / times.first.value();
  }
  const tasks::path_times paths = tasks::longest_paths(j.graph, c.network(), false);
  const bool is_shared = j.trace.access != route_access::unlimited;
  e.schedule_bound = is_shared ? tasks::schedule_bound(j.graph, c.network(), paths) : tasks::uncontended_bound(j.graph, paths);
  const bool as_given = options.capacities.empty() && options.speeds.empty();
  if (as_given) e.contention_bound = is_shared ? tasks::contention_bound(j.graph, c.network(), paths) : e.schedule_bound;
  e.schedule_gap = gap_to(e.latency, e.schedule_bound);
}

}  // namespace detail

HETPLAN_INLINE judgement judge(const plan& p, const planning_graph& model, const cluster& c, const any_cost_model& cost,
                               const judge_models& models, const simulator_options& options) {
  return judge(stage_costs(p, model, c, cost, models.memory), models, options);
}

HETPLAN_INLINE judgement judge(const stage_costs& s, const judge_models& models, const simulator_options& options) {
  judgement j;
  j.graph = tasks::expand(s);
  j.trace = simulate_plan(s.plan, j.graph, s.cluster.network(), models, options);
  detail::complete(j, s, models.energy, options);
  return j;
}

HETPLAN_INLINE judgement evaluate(const plan& p, const planning_graph& model, const cluster& c, const any_cost_model& cost,
                                  const judge_models& models, const any_lp_solver& lp, const simulator_options& options) {
  judgement j = judge(p, model, c, cost, models, options);
  certify(j.evaluation, p, model, c, cost, models.memory, lp);
  return j;
}

HETPLAN_INLINE evaluation measure(const tasks::task_graph& g, const trace& t, const cluster& c, const any_energy_model& energy) {
  evaluation e{.latency = t.latency};
  e.devices.resize(c.size());
  constexpr double never = std::numeric_limits<double>::infinity();
  std::vector<interval> working(c.size(), {never, 0});  // by device: first start to last end
  for (std::size_t n = 0; n < g.computes.size(); ++n) {
    interval& mine = working[g.computes[n].device.index()];
    mine.start_s = std::min(mine.start_s, t.computes[n].start_s);
    mine.end_s = std::max(mine.end_s, t.computes[n].end_s);
  }
  for (const device& d : c.devices()) {
    const std::size_t i = d.id.index();
    if (!g.used[i]) continue;
    const device_usage usage{t.latency, seconds(t.busy_s[i]), bytes(t.sent_bytes[i]), bytes(t.received_bytes[i]),
                             seconds(t.memory_bound_s[i])};
    e.devices[i] = {true, checked_energy(energy, usage, d), bytes(t.peak_bytes[i]), seconds(t.busy_s[i]),
                    seconds(working[i].start_s < never ? working[i].end_s - working[i].start_s : 0)};
  }
  for (const double b : t.resource_bytes) e.resource_bytes.push_back(bytes(b));
  return e;
}

HETPLAN_INLINE void certify(evaluation& e, const plan& p, const planning_graph& model, const cluster& c, const any_cost_model& cost,
                            const any_memory_model& memory, const any_lp_solver& lp) {
  e.bound = plan_bound(p, model, c, cost, memory, lp, within_memory(e, c));
  e.gap = gap_to(e.latency, e.bound);
}

}  // namespace hetplan
