// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/simulate/dispatch.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <tuple>

#include <hetplan/core/error.hpp>
#include <hetplan/core/sorting.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/tasks/expand.hpp>

namespace hetplan {

namespace detail {

/// Returns the first ready task of least rank; `rank` is by phase.
HETPLAN_INLINE std::optional<std::size_t> first_of_class(const dispatch_view& v, const std::array<int, 3>& rank) {
  const auto best = std::ranges::min_element(v.ready, {}, [&](const ready_task& t) { return rank[static_cast<std::size_t>(t.what)]; });
  return static_cast<std::size_t>(best - v.ready.begin());
}

/// Work source that asks a dispatch policy, enforces memory limits, and records the orders.
class dispatcher final : public work_source {
 public:
  dispatcher(const stage_costs& s, const tasks::task_graph& g, const dispatch_rule& rule, std::vector<double> limits)
      : costs_(s), g_(g), rule_(rule), limits_(std::move(limits)), ready_(s.cluster.size()), done_(s.cluster.size()),
        has_begun_(s.plan.stages.size()), recomputes_(s.cluster.size(), 0), left_(s.cluster.size(), 0), stages_on_(s.cluster.size()) {
    for (const tasks::compute_task& t : g.computes) {
      left_[t.device.index()] += t.what == phase::optimizer_step ? 0 : 1;
      if (t.what == phase::backward_input) recomputes_[t.device.index()] = std::max(recomputes_[t.device.index()], t.takes_bytes);
    }
    for (std::size_t i = 0; i < s.plan.stages.size(); ++i) {
      const stage& st = s.plan.stages[i];
      has_begun_[i].assign(st.devices.size(), {});
      for (std::size_t k = 0; k < st.devices.size(); ++k) {
        const std::size_t d = st.devices[k].device.index();
        stages_on_[d].push_back({stage_id(i), k});
        has_begun_[i][k].assign(static_cast<std::size_t>(s.graph.nodes[i].passes(phase::forward)), 0);
      }
    }
    require_room();
  }

  void ready(tasks::node_id n) override { ready_[g_.computes[n].device.index()].push_back(n); }

  std::optional<tasks::node_id> next(std::size_t device, double now_s, double held_bytes) override {
    auto& waiting = ready_[device];
    std::sort(waiting.begin(), waiting.end(), [&](tasks::node_id a, tasks::node_id b) { return key(a) < key(b); });
    std::vector<ready_task> offered;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      const tasks::compute_task& t = g_.computes[waiting[i]];
      if (t.what == phase::optimizer_step || !has_room(t, device, held_bytes)) continue;
      offered.push_back({t.what, t.stage, t.microbatch, seconds(t.duration_s), bytes(t.takes_bytes), bytes(t.releases_bytes)});
      places.push_back(i);
    }
    if (left_[device] == 0 && !waiting.empty()) return take(device, 0);  // optimizer steps come last, in order of stages
    if (offered.empty()) return std::nullopt;
    const auto answer = ask({device_id(device), seconds(now_s), bytes(held_bytes), bytes(limits_[device]), offered});
    if (!answer) return std::nullopt;
    const tasks::node_id n = take(device, places[*answer]);
    const tasks::compute_task& t = g_.computes[n];
    --left_[device];
    if (t.what == phase::forward) has_begun_[t.stage.index()][position(t)][static_cast<std::size_t>(t.microbatch)] = 1;
    done_[device].push_back({t.what, t.stage, t.microbatch});
    return n;
  }

  [[noreturn]] void stuck() const override {
    for (std::size_t d = 0; d < ready_.size(); ++d) {
      if (ready_[d].empty()) continue;
      const tasks::compute_task& t = g_.computes[ready_[d].front()];
      throw invalid_input("dispatch: device \"" + costs_.cluster[device_id(d)].name + "\" waits for ever with " +
                          std::to_string(ready_[d].size()) + " tasks that could run, the first " + std::string(to_string(t.what)) +
                          " of stage \"" + costs_.plan[t.stage].name + "\", microbatch " + std::to_string(t.microbatch) +
                          "; expected a policy that takes one, and memory for it");
    }
    throw invalid_input("dispatch: a transfer waits for ever; a capacity stays 0");
  }

  [[nodiscard]] std::vector<std::vector<order_entry>> orders() && { return std::move(done_); }

 private:
  tasks::node_id take(std::size_t device, std::size_t place) {
    auto& waiting = ready_[device];
    const tasks::node_id n = waiting[place];
    waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(place));
    return n;
  }
  [[nodiscard]] std::tuple<int, stage_id, phase, tasks::node_id> key(tasks::node_id n) const {
    const tasks::compute_task& t = g_.computes[n];
    return {t.microbatch, t.stage, t.what, n};
  }
  [[nodiscard]] std::size_t position(const tasks::compute_task& t) const {
    const auto& devices = costs_.plan[t.stage].devices;
    return static_cast<std::size_t>(std::ranges::find(devices, t.device, &assignment::device) - devices.begin());
  }
  /// Returns the most memory that a forward of the stage takes on a device, over all sizes of passes.
  [[nodiscard]] double most(std::size_t stage, std::size_t position) const {
    double taken = costs_.stages[stage].devices[position].kept.forward;
    for (const auto& parts : costs_.stages[stage].passes.values()) taken = std::max(taken, parts[position].kept.forward);
    return taken;
  }

  void require_room() const {
    for (std::size_t d = 0; d < limits_.size(); ++d) {
      if (stages_on_[d].empty()) continue;
      double each = recomputes_[d];
      for (const auto& [s, k] : stages_on_[d]) each += most(s.index(), k);
      if (at_most(g_.static_bytes[d] + each, limits_[d])) continue;
      throw invalid_input("dispatch: device \"" + costs_.cluster[device_id(d)].name + "\" may hold " + to_text(limits_[d]) +
                          " B; expected at least " + to_text(g_.static_bytes[d] + each) + " B, " + to_text(g_.static_bytes[d]) +
                          " B of weights and what belongs to them and " + to_text(each) + " B for one microbatch of each of its stages");
    }
  }

  [[nodiscard]] bool has_room(const tasks::compute_task& t, std::size_t d, double held) const {
    double needed = held + t.takes_bytes;
    if (t.what == phase::forward) {
      needed += recomputes_[d];
      for (const auto& [s, k] : stages_on_[d]) {
        if (s == t.stage || costs_.plan[s].pipeline != costs_.plan[t.stage].pipeline) continue;
        if (!has_seen(s, k, t)) needed += most(s.index(), k);
      }
    }
    return at_most(needed, limits_[d]);
  }
  /// True if a forward of this stage with samples of the task has begun on the device.
  [[nodiscard]] bool has_seen(stage_id s, std::size_t k, const tasks::compute_task& t) const {
    const stage_graph::node& node = costs_.graph[s];
    const long long first = t.first_sample - node.first_sample;
    return has_begun_[s.index()][k][static_cast<std::size_t>(node.pass_of(phase::forward, first))] != 0;
  }

  [[nodiscard]] std::optional<std::size_t> ask(const dispatch_view& v) const {
    const auto answer = rule_(v);
    if (answer && *answer >= v.ready.size()) {
      throw invalid_model("dispatch policy: next(device \"" + costs_.cluster[v.device].name + "\", " + std::to_string(v.ready.size()) +
                          " ready tasks) = " + std::to_string(*answer) + "; expected the index of one of them, or nothing");
    }
    return answer;
  }

  const stage_costs& costs_;
  const tasks::task_graph& g_;
  const dispatch_rule& rule_;
  std::vector<double> limits_;
  std::vector<std::vector<tasks::node_id>> ready_;                        ///< by device
  std::vector<std::vector<order_entry>> done_;                            ///< by device
  std::vector<std::vector<std::vector<char>>> has_begun_;                 ///< by stage, position, pass: true if its forward has begun
  std::vector<double> recomputes_;                                        ///< by device: largest recomputation
  std::vector<std::size_t> left_;                                         ///< by device: tasks not begun, except optimizer steps
  std::vector<std::vector<std::pair<stage_id, std::size_t>>> stages_on_;  ///< by device: stages, and its position in each
};

/// Returns the orders of with_any_orders, by device.
HETPLAN_INLINE std::vector<std::vector<order_entry>> forwards_first(const plan& p, const planning_graph& model, std::size_t devices) {
  const stage_graph g = make_stage_graph(p, model);
  std::vector<std::tuple<long long, std::size_t, order_entry>> forwards, backwards;  // by last sample, then by the stage's place
  for (std::size_t at = 0; at < g.topological.size(); ++at) {
    const stage_id s = g.topological[at];
    for (const phase what : {phase::forward, phase::backward_input}) {
      if (what != phase::forward && p.workload.mode != mode::training) continue;
      auto& list = what == phase::forward ? forwards : backwards;
      const std::size_t place = what == phase::forward ? at : g.topological.size() - at;
      for (int m = 0; m < g[s].passes(what); ++m)
        list.emplace_back(g[s].first_sample + g[s].samples(what, m).second, place, order_entry{what, s, m});
    }
  }
  std::vector<std::vector<order_entry>> orders(devices);
  for (auto* list : {&forwards, &backwards}) {
    sort_stably(*list);
    for (const auto& [last, place, e] : *list) {
      for (const assignment& a : p[e.stage].devices) {
        if (a.device.valid() && a.device.index() < devices) orders[a.device.index()].push_back(e);
      }
    }
  }
  return orders;
}

HETPLAN_INLINE plan dispatch_by(plan p, const planning_problem& problem, const dispatch_rule& rule, const dispatch_options& options) {
  if (p.workload.mode == mode::generation)
    throw invalid_input("dispatch: a plan for generation, in which every step has one order; expected training or inference");
  const cluster& c = problem.cluster;
  if (!options.memory.empty() && options.memory.size() != c.size()) {
    throw invalid_input("dispatch: memory for " + std::to_string(options.memory.size()) + " devices; expected one entry for each of the " +
                        std::to_string(c.size()));
  }
  std::vector<double> limits;
  for (const device& d : c.devices()) {
    limits.push_back(options.memory.empty() ? d.usable_memory().value() : options.memory[d.id.index()].value());
    if (!(limits.back() >= 0))
      throw invalid_input("dispatch: device \"" + d.name + "\" may hold " + to_text(limits.back()) + " B; expected a number >= 0");
  }
  p = with_any_orders(std::move(p), problem);
  const stage_costs s(problem, p);
  const bool split = options.split_backward && s.training();
  const tasks::task_graph g = tasks::expand_unordered(s, split);
  dispatcher by(s, g, rule, std::move(limits));
  simulator_options how;
  how.source = &by;
  static_cast<void>(simulate_plan(p, g, c.network(), problem.models, how));
  p.schedule.orders = std::move(by).orders();
  return p;
}

}  // namespace detail

HETPLAN_INLINE plan with_any_orders(plan p, const planning_problem& problem) {
  p.schedule.kind = schedule_kind::explicit_orders;
  p.schedule.warmup.clear();
  p.schedule.orders.assign(problem.cluster.size(), {});
  // Invalid stages are left to `validate`, which says what is wrong.
  const auto known = [&](const stage& s) {
    return std::ranges::all_of(s.layers, [&](layer_id l) { return l.valid() && l.index() < problem.model.size(); }) && p.size_of(s) > 0 &&
           s.pipeline >= 0 && static_cast<std::size_t>(s.pipeline) < p.pipeline_count();
  };
  if (std::ranges::all_of(p.stages, known)) p.schedule.orders = detail::forwards_first(p, problem.model, problem.cluster.size());
  return p;
}

HETPLAN_INLINE std::optional<std::size_t> compact::next(const dispatch_view& v) const { return detail::first_of_class(v, {0, 1, 2}); }
HETPLAN_INLINE std::optional<std::size_t> eager::next(const dispatch_view& v) const { return detail::first_of_class(v, {1, 0, 2}); }

}  // namespace hetplan
