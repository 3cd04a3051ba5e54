// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/order_plan.hpp>

#include <algorithm>
#include <limits>
#include <optional>

#include <hetplan/cluster/network.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/core/keyed.hpp>
#include <hetplan/core/sorting.hpp>
#include <hetplan/cost/prefix_table.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/partition/apportion.hpp>
#include <hetplan/plan/validate.hpp>
#include <hetplan/schedule/automatic_orders.hpp>
#include <hetplan/schedule/order_rules.hpp>
#include <hetplan/search/ranking.hpp>
#include <hetplan/simulate/evaluate.hpp>

namespace hetplan::partition {

namespace detail {

/// Returns cuts of the model into one stage per entry of a device list, which may name devices repeatedly.
HETPLAN_INLINE std::vector<plan> cuts_for(const plan& p, const planning_problem& problem, const std::vector<device_id>& devices) {
  const planning_graph& model = problem.model;
  const layer_sequence sequence = sequence_of(model);
  const prefix_table table(model, sequence, problem.cluster, problem.cost, problem.models.memory, p.workload, p.microbatch_size);
  const sequence_cuts cuts(model, sequence);
  std::vector<double> cut_bytes;
  for (std::size_t l = 0; l < model.size(); ++l) {
    const auto [forward, gradient] = cuts.bytes_in(l, model.size());
    cut_bytes.push_back(forward + gradient);
  }
  const auto positions = cut_positions(cut_bytes);
  if (positions.size() < devices.size()) return {};
  // Two dynamic programs from the last stage to the first: the least longest stage or boundary behind a position; then, among cuts no
  // longer than that, the least sum of stage weights and the position where the next stage begins.
  constexpr double inf = std::numeric_limits<double>::infinity();
  const std::size_t count = positions.size(), stages = devices.size();
  std::vector<std::vector<double>> longest(stages, std::vector<double>(count, inf));
  std::vector<std::vector<std::size_t>> next(stages, std::vector<std::size_t>(count, count));
  const auto stage_s = [&](std::size_t first, std::size_t last, std::size_t k) {
    return table.total_s(positions[first], last < count ? positions[last] : model.size(), devices[k], p.microbatch_size);
  };
  std::vector<double> s_per_byte(stages, 0);
  for (std::size_t k = 0; k + 1 < stages; ++k) {
    if (devices[k] != devices[k + 1]) s_per_byte[k] = peak_transfer(problem.cluster.network(), devices[k], devices[k + 1]).s_per_byte;
  }
  const auto sent_s = [&](std::size_t last, std::size_t k) {
    const double sent = p.microbatch_size * cut_bytes[positions[last]] * s_per_byte[k];
    return sent > 0 ? sent : 0.0;
  };
  const auto from_the_last = [&](auto&& stage_alone, auto&& try_end) {
    for (std::size_t k = stages; k-- > 0;) {
      for (std::size_t first = k; first + (stages - k) <= count; ++first) {
        if (k + 1 == stages) {
          stage_alone(k, first, stage_s(first, count, k));
          continue;
        }
        for (std::size_t last = first + 1; last < count; ++last) {
          if (!try_end(k, first, last, stage_s(first, last, k))) break;
        }
      }
    }
  };
  from_the_last([&](std::size_t k, std::size_t first, double mine) { longest[k][first] = mine; },
                [&](std::size_t k, std::size_t first, std::size_t last, double mine) {
                  longest[k][first] = std::min(longest[k][first], std::max({mine, longest[k + 1][last], sent_s(last, k)}));
                  return mine < longest[k][first];
                });
  if (!(longest[0][0] < inf)) return {};
  const double most = longest[0][0] * (1 + 1e-9);
  std::vector<plan> all;
  for (const int power : {0, 1, 2}) {  // small first stages; shortest path of a microbatch; even stages
    std::vector<std::vector<double>> sum(stages, std::vector<double>(count, inf));
    const auto weight = [&](double stage) { return power == 0 ? 1 : power == 1 ? stage : stage * stage; };
    from_the_last(
        [&](std::size_t k, std::size_t first, double mine) {
          if (mine <= most) sum[k][first] = weight(mine);
        },
        [&](std::size_t k, std::size_t first, std::size_t last, double mine) {
          if (mine > most) return false;
          const double whole = weight(mine) + sum[k + 1][last];
          if (sent_s(last, k) <= most && whole < sum[k][first]) sum[k][first] = whole, next[k][first] = last;
          return true;
        });
    plan cut_anew = p;
    cut_anew.stages.clear();
    cut_anew.schedule.warmup.clear();
    cut_anew.schedule.transfers.clear();
    for (std::size_t k = 0, first = 0; k < stages; first = next[k][first], ++k) {
      const std::size_t last = k + 1 < stages ? positions[next[k][first]] : model.size();
      cut_anew.stages.push_back({.name = "s" + std::to_string(k),
                                 .layers = sequence.layers_of(positions[first], last),
                                 .devices = {{devices[k], p.microbatch_size}}});
    }
    if (std::ranges::find(all, cut_anew) == all.end()) all.push_back(std::move(cut_anew));
  }
  return all;
}

HETPLAN_INLINE std::vector<device_id> devices_in_line(const plan& p) {
  std::vector<device_id> devices;
  for (const stage& s : p.stages) {
    const bool plain = s.devices.size() == 1 && s.is_plain() && p.size_of(s) == p.microbatch_size;
    if (!plain || p.pipeline_count() > 1 || std::ranges::find(devices, s.devices.front().device) != devices.end()) return {};
    devices.push_back(s.devices.front().device);
  }
  return devices;
}

}  // namespace detail

HETPLAN_INLINE std::vector<plan> in_a_v(const plan& p, const planning_problem& problem) {
  std::vector<device_id> devices = detail::devices_in_line(p);
  if (devices.size() < 2) return {};
  for (std::size_t i = devices.size(); i-- > 0;) devices.push_back(devices[i]);
  return detail::cuts_for(p, problem, devices);
}

HETPLAN_INLINE std::vector<plan> in_turns(const plan& p, const planning_problem& problem, std::size_t chunks) {
  const std::vector<device_id> once = detail::devices_in_line(p);
  if (once.size() < 2 || chunks < 1) return {};
  std::vector<device_id> devices;
  for (std::size_t c = 0; c < chunks; ++c) devices.insert(devices.end(), once.begin(), once.end());
  return detail::cuts_for(p, problem, devices);
}

}  // namespace hetplan::partition

namespace hetplan::schedule {

namespace detail {

/// Throws invalid_input if a device cannot hold one microbatch of each of its stages.
HETPLAN_INLINE void require_room(const stage_costs& s, const std::vector<device_id>& devices, const std::vector<bytes>& memory) {
  for (const device_id d : devices) {
    double passes = 0, recomputed = 0;
    for (std::size_t i = 0; i < s.plan.stages.size(); ++i) {
      for (std::size_t k = 0; k < s.plan.stages[i].devices.size(); ++k) {
        if (s.plan.stages[i].devices[k].device != d) continue;
        passes += s.stages[i].devices[k].kept.forward;
        recomputed = std::max(recomputed, s.stages[i].devices[k].kept.taken_by(true));
      }
    }
    const double held = s.static_bytes[d.index()], most = memory.empty() ? s.cluster[d].usable_memory().value() : memory[d.index()].value();
    if (at_most(held + passes + recomputed, most)) continue;
    throw invalid_input("schedule: device \"" + s.cluster[d].name + "\" may hold " + to_text(most) + " B; expected at least " +
                        to_text(held + passes + recomputed) + " B, " + to_text(held) + " B of weights and what belongs to them and " +
                        to_text(passes + recomputed) + " B for one microbatch of each of its stages");
  }
}

}  // namespace detail

HETPLAN_INLINE plan_table table_of(const stage_costs& s, const std::vector<bytes>& memory) {
  const plan& p = s.plan;
  const auto refuse = [](const std::string& expected) { throw invalid_input("schedule: expected " + expected); };
  if (!s.training()) refuse("a plan for training, got mode \"" + std::string(to_string(p.workload.mode)) + "\"");
  if (p.pipeline_count() > 1) refuse("one pipeline, got " + std::to_string(p.pipeline_count()));
  if (!memory.empty() && memory.size() != s.cluster.size())
    refuse("memory for each of the " + std::to_string(s.cluster.size()) + " devices, got " + std::to_string(memory.size()) + " entries");
  plan_table t;
  t.times.microbatches = p.microbatches;
  keyed<std::size_t> owner;  // index of the table's device
  std::vector<std::size_t> of_table(p.stages.size());
  for (std::size_t i = 0; i < p.stages.size(); ++i) {
    const stage& st = p.stages[i];
    if (!st.cuts.empty() || p.size_of(st) != p.microbatch_size)
      refuse("one microbatch size, got " + (st.cuts.empty() ? std::to_string(p.size_of(st)) : "cuts") + " in stage \"" + st.name + "\"");
    std::vector<device_id> members;
    for (const assignment& a : st.devices) members.push_back(a.device);
    sort_stably(members);
    if (owner.insert({members.front()}, t.devices.size())) t.devices.push_back(members);
    const std::size_t mine = of_table[i] = *owner.find({members.front()});
    for (const device_id d : members) {
      owner.insert({d}, mine);
      if (*owner.find({d}) != mine || t.devices[mine] != members)
        refuse("stages on the same devices or on none in common, got device \"" + s.cluster[d].name + "\" in stages of different ones");
    }
  }
  // Memory in bytes if one device works alone, else in parts of each device's room.
  std::vector<std::vector<double>> room(t.devices.size());
  for (std::size_t d = 0; d < t.devices.size(); ++d) {
    for (const device_id m : t.devices[d]) {
      const double most = memory.empty() ? s.cluster[m].usable_memory().value() : memory[m.index()].value();
      room[d].push_back(most - s.static_bytes[m.index()]);
    }
    t.times.memory.push_back(room[d].size() == 1 ? std::max(room[d].front(), 0.0) : 1);
    detail::require_room(s, t.devices[d], memory);
  }
  for (const stage_id id : s.graph.topological) {
    const stage& st = p[id];
    const std::size_t d = of_table[id.index()];
    phase_times x{.device = d, .forward = 0, .activation = 0, .kept_for_weights = 0};
    for (std::size_t k = 0; k < st.devices.size(); ++k) {
      const stage_costs::part& part = s[id].devices[k];
      const auto member = static_cast<std::size_t>(std::ranges::find(t.devices[d], st.devices[k].device) - t.devices[d].begin());
      const double unit = room[d].size() == 1 ? 1 : std::max(room[d][member], 1e-300);
      x.forward = std::max(x.forward, part.forward_step_s());
      x.backward_input = std::max(x.backward_input, part.backward_input_s + part.overhead_s + part.backward_wait_s);
      x.backward_weight = std::max(x.backward_weight, part.backward_weight_s + part.overhead_s);
      x.activation = std::max(x.activation, part.kept.forward / unit);
      x.kept_for_weights = std::max(x.kept_for_weights, part.kept.for_weights / unit);
      x.recomputed = std::max(x.recomputed, part.kept.taken_by(true) / unit);  // an order may split any backward
    }
    t.times.stages.push_back(x);
  }
  // Stages of the table are in topological order. Entries of orders use its indices, which order_plan translates.
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
        throw missing_route("schedule: stages \"" + p[e.from].name + "\" and \"" + p[e.to].name +
                            "\" exchange data, but their devices have no "
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
  const stage_costs s(problem, p);
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
  if (const auto fault = validate(p, problem.model, problem.cluster)) throw invalid_model("schedule: " + fault->where + ": " + fault->what);
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

namespace detail {

/// Marks the plans to cut anew: the first one of each line of devices and microbatch size, those with the cheapest orders first, until
/// `most` is spent. The cost is about stages^2 x microbatches. Short lines also send least.
HETPLAN_INLINE std::vector<char> lines_to_cut(const std::vector<plan>& plans, long long most) {
  key_index seen;
  std::vector<std::pair<long long, std::size_t>> by_work;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    key_parts line{plans[i].microbatch_size};
    for (const device_id d : partition::detail::devices_in_line(plans[i])) line.emplace_back(d);
    const auto stages = static_cast<long long>(line.size() - 1);
    if (stages > 1 && seen.insert(line)) by_work.emplace_back(stages * stages * plans[i].microbatches, i);
  }
  sort_stably(by_work);
  std::vector<char> chosen(plans.size(), 0);
  for (const auto& [work, i] : by_work) {
    if (i != by_work.front().second && work > most) break;
    most -= work;
    chosen[i] = 1;
  }
  return chosen;
}

}  // namespace detail

HETPLAN_INLINE named_schedule::named_schedule(order_rule rule)
    : name(to_string(rule)), order([rule](plan p, const planning_problem& problem) { return order_plan(std::move(p), problem, rule); }),
      shape(rule == order_rule::zb_v || rule == order_rule::v_half || rule == order_rule::v_min ? stage_shape::v
            : rule == order_rule::interleaved                                                   ? stage_shape::turns
                                                                                                : stage_shape::as_they_are) {}

HETPLAN_INLINE plan_result choose_orders(const planning_problem& problem, const any_objective& objective, plan_result found, int keep,
                                         const candidate_observer& observer, const std::vector<named_schedule>& own) {
  const job& j = problem.job;
  if (j.workload.mode != mode::training || found.plans.empty()) return found;
  if (j.orders.empty() && own.empty()) {
    if (j.only_orders) throw invalid_input("job: only_orders = true, and orders are empty; expected at least one");
    return found;
  }
  const std::vector<plan> placed = plans_of(found.plans);
  if (j.only_orders) found.plans.clear();
  return detail::order_all(problem, objective, placed, std::move(found), keep, observer, own);
}

HETPLAN_INLINE plan_result detail::order_all(const planning_problem& problem, const any_objective& objective,
                                             const std::vector<plan>& plans, plan_result found, int keep,
                                             const candidate_observer& observer, const std::vector<named_schedule>& own) {
  const job& j = problem.job;
  step_budget budget(problem.steps);
  budget.spend(found.steps);
  ranking best(problem, objective, keep, budget);
  for (ranked_plan& p : found.plans) best.know(std::move(p));
  std::vector<named_schedule> schedules = own;
  for (const order_rule rule : j.orders) {
    if (rule != order_rule::automatic) schedules.emplace_back(rule);
  }
  const bool searches = std::ranges::find(j.orders, order_rule::automatic) != j.orders.end();
  constexpr std::size_t most_searched = 6;
  constexpr long long most_cut = 5'000;  // in stages^2 x microbatches: about 0.2 s
  constexpr double inf = std::numeric_limits<double>::infinity();
  const auto total = static_cast<long long>(plans.size() * schedules.size() + (searches ? most_searched : 0));
  std::string why;
  bool stop = false;
  struct record {  // results of a user schedule
    bool ordered = false;
    std::string refused, broken;
  };
  keyed<record> mine;  // by name
  for (const named_schedule& s : own) mine[parts_of(s.name)];
  struct ordered_plan {
    double latency_s;
    plan placed;  ///< the plan before ordering
  };
  std::vector<ordered_plan> promising;
  const auto judge_with = [&](const plan& p, const named_schedule& s) {
    if (stop) return inf;
    try {
      plan ordered = s.order(p, problem);
      if (record* r = mine.find(parts_of(s.name))) r->ordered = true;
      ordered.planner += ", " + s.name;
      judgement judged = judge(ordered, problem.model, problem.cluster, problem.cost, problem.models);
      const double latency = find_broken_limit(judged.evaluation, problem.cluster) ? inf : judged.evaluation.latency.value();
      best.budget().spend(2 * static_cast<long long>(judged.graph.size()));  // one pass to order, one to judge
      stop = best.consider(std::move(ordered), std::move(judged.evaluation), total, observer) == control::stop || best.out_of_steps();
      return latency;
    } catch (const missing_route&) {
      return inf;
    } catch (const invalid_input& e) {  // stages not placed for this schedule, or no room
      const std::string what = s.name + ": " + e.what();
      if (why.empty()) why = what;
      if (record* r = mine.find(parts_of(s.name)); r != nullptr && r->refused.empty()) r->refused = what;
      return inf;
    } catch (const invalid_model& e) {  // orders that no run can follow
      record* r = mine.find(parts_of(s.name));
      if (r == nullptr) throw;
      if (r->broken.empty()) r->broken = s.name + ": " + e.what();
      return inf;
    }
  };
  const std::vector<char> to_cut = lines_to_cut(plans, most_cut);
  for (std::size_t place = 0; place < plans.size(); ++place) {
    const plan& p = plans[place];
    const bool placed_already = partition::detail::devices_in_line(p).empty();  // stages may already form a V or turns
    const auto judge_all = [&](const plan& placed, const auto& wanted) {
      double least = inf;
      for (const named_schedule& s : schedules) {
        if (wanted(s)) least = std::min(least, judge_with(placed, s));
      }
      promising.push_back({least, placed});
    };
    judge_all(p, [&](const named_schedule& s) { return s.shape == stage_shape::as_they_are || placed_already; });
    if (to_cut[place] == 0) continue;
    key_index done;
    const auto shape_of = [](const named_schedule& s) { return std::pair(s.shape, s.shape == stage_shape::turns ? s.chunks : 0); };
    for (const named_schedule& wants : schedules) {
      if (wants.shape == stage_shape::as_they_are || !done.insert({wants.shape, shape_of(wants).second})) continue;
      // Schedules without a shape of their own apply to every cut.
      for (const plan& cut : wants.shape == stage_shape::v ? partition::in_a_v(p, problem) : partition::in_turns(p, problem, wants.chunks))
        judge_all(cut, [&](const named_schedule& s) { return s.shape == stage_shape::as_they_are || shape_of(s) == shape_of(wants); });
    }
  }
  // The search for orders takes longest, so it only runs on the plans that are best under the other schedules.
  sort_by(promising, &ordered_plan::latency_s);
  for (std::size_t i = 0; searches && i < std::min(promising.size(), std::max(most_searched, static_cast<std::size_t>(keep))); ++i)
    static_cast<void>(judge_with(promising[i].placed, named_schedule(order_rule::automatic)));
  const std::vector<std::size_t> by_name = mine.keys().in_order();
  for (const std::size_t i : by_name) {
    const record& r = mine.values()[i];
    if (!r.ordered && !r.broken.empty()) throw invalid_model("schedule " + r.broken);
  }
  plan_result chosen = std::move(best).result();
  chosen.candidates += found.candidates;
  chosen.elapsed += found.elapsed;
  chosen.steps = std::max(chosen.steps, found.steps);
  if (chosen.plans.empty() && chosen.status.result == outcome::none_found && !why.empty()) chosen.status.reason += " (" + why + ")";
  if (chosen.status.ok() && !found.status.ok()) {
    chosen.status = found.status;
    chosen.out_of_steps = found.out_of_steps;
  }
  for (const std::size_t i : by_name) {
    const record& r = mine.values()[i];
    if (!r.ordered && !r.refused.empty() && chosen.status.ok() && chosen.status.reason.empty())
      chosen.status.reason = "schedule " + r.refused;
  }
  return chosen;
}

}  // namespace hetplan::schedule
