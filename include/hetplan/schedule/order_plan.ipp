// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/order_plan.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include <hetplan/cluster/exchange.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/schedule/automatic_orders.hpp>
#include <hetplan/schedule/dispatch_rules.hpp>
#include <hetplan/schedule/interleaved_orders.hpp>
#include <hetplan/schedule/zero_bubble_orders.hpp>
#include <hetplan/plan/limits.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/simulate/ranking.hpp>

namespace HETPLAN_NAMESPACE::schedule {

HETPLAN_INLINE plan_table table_of(const staged& s, const std::vector<bytes>& memory) {
  const plan& p = s.plan;
  const auto refuse = [](const std::string& expected) { throw invalid_input("schedule: expected " + expected); };
  if (!s.training()) refuse("a plan for training, got mode \"" + std::string(to_string(p.workload.mode)) + "\"");
  if (p.pipeline_count() > 1) refuse("one pipeline, got " + std::to_string(p.pipeline_count()));
  if (!memory.empty() && memory.size() != s.cluster.size())
    refuse("memory for each of the " + std::to_string(s.cluster.size()) + " devices, got " + std::to_string(memory.size()) + " entries");
  plan_table t;
  t.times.microbatches = p.microbatches;
  std::map<device_id, std::size_t> owner;  // device -> of the table
  std::vector<std::size_t> of_table(p.stages.size());
  for (std::size_t i = 0; i < p.stages.size(); ++i) {
    const stage& st = p.stages[i];
    if (!st.cuts.empty() || p.size_of(st) != p.microbatch_size)
      refuse("one microbatch size, got " + (st.cuts.empty() ? std::to_string(p.size_of(st)) : "cuts") + " in stage \"" + st.name + "\"");
    std::vector<device_id> members;
    for (const assignment& a : st.devices) members.push_back(a.device);
    std::ranges::sort(members);
    const auto [it, fresh] = owner.try_emplace(members.front(), t.devices.size());
    of_table[i] = it->second;
    if (fresh) t.devices.push_back(members);
    for (const device_id d : members) {
      const auto [mine, is_new] = owner.try_emplace(d, it->second);
      if (mine->second != it->second || t.devices[it->second] != members)
        refuse("stages on the same devices or on none in common, got device \"" + s.cluster[d].name + "\" in stages of different ones");
    }
  }
  // Memory in bytes where one device works alone, else in parts of what each of the devices has.
  std::vector<std::vector<double>> room(t.devices.size());
  for (std::size_t d = 0; d < t.devices.size(); ++d) {
    for (const device_id m : t.devices[d]) {
      const double most = memory.empty() ? s.cluster[m].usable_memory().value() : memory[m.index()].value();
      room[d].push_back(most - s.static_bytes[m.index()]);
    }
    t.times.memory.push_back(room[d].size() == 1 ? std::max(room[d].front(), 0.0) : 1);
  }
  for (const stage_id id : s.graph.topological) {
    const stage& st = p[id];
    const std::size_t d = of_table[id.index()];
    stage_times x{.device = d, .forward = 0, .activation = 0, .kept_for_weights = 0};
    for (std::size_t k = 0; k < st.devices.size(); ++k) {
      const staged::part& part = s[id].devices[k];
      const auto member = static_cast<std::size_t>(std::ranges::find(t.devices[d], st.devices[k].device) - t.devices[d].begin());
      const double unit = room[d].size() == 1 ? 1 : std::max(room[d][member], 1e-300);
      x.forward = std::max(x.forward, part.forward_s);
      x.backward_input = std::max(x.backward_input, part.backward_input_s);
      x.backward_weight = std::max(x.backward_weight, part.backward_weight_s);
      x.activation = std::max(x.activation, part.kept.forward / unit);
      x.kept_for_weights = std::max(x.kept_for_weights, part.kept.for_weights / unit);
      x.recomputed = std::max(x.recomputed, part.kept.backward / unit);
    }
    t.times.stages.push_back(x);
  }
  // Stages of the table are in topological order; entries name them by that, and order_plan translates.
  std::vector<std::size_t> place(p.stages.size());
  for (std::size_t i = 0; i < s.graph.topological.size(); ++i) place[s.graph.topological[i].index()] = i;
  for (const stage_edge& e : s.graph.edges) {
    stage_delay x{place[e.from.index()], place[e.to.index()], 0, 0};
    if (of_table[e.from.index()] != of_table[e.to.index()]) {
      const double forward = p.microbatch_size * e.forward_cut.value(), backward = p.microbatch_size * e.backward_cut.value();
      const exchange_cost cost = peak_exchange(s.cluster.network(), t.devices[of_table[e.from.index()]], t.devices[of_table[e.to.index()]]);
      x.forward = cost.forward.time_s(forward);
      x.backward = e.backward_cut.value() > 0 ? cost.backward.time_s(backward) : 0;
      if (!(x.forward < std::numeric_limits<double>::infinity() && x.backward < std::numeric_limits<double>::infinity()))
        throw missing_route("schedule: stages \"" + p[e.from].name + "\" and \"" + p[e.to].name + "\" exchange data, but their devices have no "
                            "route both ways");
    }
    t.times.edges.push_back(x);
  }
  check(t.times);
  return t;
}

namespace detail {

HETPLAN_INLINE plan order_plan_by(plan p, const planning_problem& problem, const orders_of_table& make, const std::vector<bytes>& memory) {
  p = with_any_orders(std::move(p), problem);
  const staged s(problem, p);
  const plan_table t = table_of(s, memory);
  const orders_by_device orders = make(t.times);
  if (orders.size() != t.devices.size())
    throw invalid_model("schedule: orders for " + std::to_string(orders.size()) + " devices; expected one for each of the " +
                        std::to_string(t.devices.size()));
  for (auto& order : p.schedule.orders) order.clear();
  for (std::size_t d = 0; d < orders.size(); ++d) {
    std::vector<order_entry> order = orders[d];
    for (order_entry& e : order) {
      if (!e.stage.valid() || e.stage.index() >= t.times.stages.size())
        throw invalid_model("schedule: an order with stage " + std::to_string(e.stage.value) + "; expected one of the " +
                            std::to_string(t.times.stages.size()) + " of the table");
      e.stage = s.graph.topological[e.stage.index()];
    }
    for (const device_id member : t.devices[d]) p.schedule.orders[member.index()] = order;
  }
  return p;
}

}  // namespace detail

HETPLAN_INLINE plan order_plan(plan p, const planning_problem& problem, order_rule rule, const dispatch_options& options, long long steps) {
  const auto by = [&](auto make) { return detail::order_plan_by(std::move(p), problem, make, options.memory); };
  switch (rule) {
    case order_rule::compact: return dispatch(std::move(p), problem, compact{}, options);
    case order_rule::eager: return dispatch(std::move(p), problem, eager{}, options);
    case order_rule::original: return by([](const pipeline_times& t) { return zero_bubble_orders(t, order_goal::makespan); });
    case order_rule::automatic:
      return by([&](const pipeline_times& t) { return automatic_orders(t, {.goal = order_goal::makespan, .steps = steps}).orders; });
    case order_rule::interleaved: return by([](const pipeline_times& t) { return interleaved_orders(t); });
    case order_rule::zb_v: return by([](const pipeline_times& t) { return v_orders(t, v_schedule::zero_bubble, order_goal::makespan); });
    case order_rule::v_half: return by([](const pipeline_times& t) { return v_orders(t, v_schedule::half, order_goal::makespan); });
    case order_rule::v_min: break;
  }
  return by([](const pipeline_times& t) { return v_orders(t, v_schedule::least, order_goal::makespan); });
}

HETPLAN_INLINE plan_result choose_orders(const planning_problem& problem, const any_objective& objective, plan_result found, int keep,
                                         const candidate_observer& observer) {
  const job& j = problem.job;
  if (j.orders.empty() || j.workload.mode != mode::training || found.plans.empty()) return found;
  step_budget budget(problem.steps);
  budget.spend(found.steps);
  ranking best(problem, objective, keep, budget);
  if (!j.only_orders) {
    for (const plan& p : found.plans) best.know(p);
  }
  std::string why;
  const auto total = static_cast<long long>(found.plans.size() * j.orders.size());
  bool stop = false;
  /// Seconds with these orders; infinite where they are none or break a limit.
  const auto judge_with = [&](const plan& p, order_rule rule) {
    constexpr double inf = std::numeric_limits<double>::infinity();
    if (stop) return inf;
    try {
      plan ordered = order_plan(p, problem, rule);
      ordered.planner = p.planner + ", " + std::string(to_string(rule));
      judgement judged = judge(ordered, problem.model, problem.cluster, problem.cost, problem.models);
      const double latency = find_broken_limit(judged.evaluation, problem.cluster) ? inf : judged.evaluation.latency.value();
      best.budget().spend(2 * static_cast<long long>(judged.graph.size()));  // dispatched, and judged
      stop = best.consider(std::move(ordered), std::move(judged.evaluation), total, observer) == control::stop || best.out_of_steps();
      return latency;
    } catch (const missing_route&) {
      return inf;
    } catch (const invalid_input& e) {  // not placed for the rule, or no room for it
      if (why.empty()) why = std::string(to_string(rule)) + ": " + e.what();
      return inf;
    }
  };
  // The search for orders takes longest: it is for the plans that are best with the other rules.
  std::vector<std::pair<double, const plan*>> promising;
  const bool searches = std::ranges::find(j.orders, order_rule::automatic) != j.orders.end();
  for (const plan& p : found.plans) {
    double least = std::numeric_limits<double>::infinity();
    for (const order_rule rule : j.orders) {
      if (rule != order_rule::automatic) least = std::min(least, judge_with(p, rule));
    }
    promising.emplace_back(least, &p);
  }
  constexpr std::size_t most_searched = 4;
  std::ranges::stable_sort(promising, {}, [](const auto& x) { return x.first; });
  for (std::size_t i = 0; searches && i < std::min(promising.size(), std::max(most_searched, static_cast<std::size_t>(keep))); ++i)
    static_cast<void>(judge_with(*promising[i].second, order_rule::automatic));
  plan_result chosen = std::move(best).result();
  chosen.candidates += found.candidates;
  chosen.elapsed += found.elapsed;
  chosen.steps = std::max(chosen.steps, found.steps);
  if (chosen.plans.empty() && chosen.status.result == outcome::none_found && !why.empty()) chosen.status.reason += " (" + why + ")";
  if (chosen.status.ok() && !found.status.ok()) {
    chosen.status = found.status;
    chosen.out_of_steps = found.out_of_steps;
  }
  return chosen;
}

}  // namespace HETPLAN_NAMESPACE::schedule
