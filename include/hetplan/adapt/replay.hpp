// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Pipeline replay: a plan for those who are left that moves the running plan's partition points and nothing else.

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/cost/stage_table.hpp>
#include <hetplan/partition/allocate.hpp>
#include <hetplan/plan/fit_warmup.hpp>
#include <hetplan/plan/validate.hpp>
#include <hetplan/simulate/ranking.hpp>

namespace hetplan::adapt {

/// Where consecutive stages begin: stage k is [first[k], first[k+1]) of the work, the last ends with it.
struct proportional_cut {
  double largest_share = std::numeric_limits<double>::infinity();  ///< work / capacity of the slowest stage
  std::vector<std::size_t> first = {};
  [[nodiscard]] bool exists() const { return !first.empty(); }
};

/// Cuts a sequence of work into one piece per stage, in order, so that the largest work / capacity is smallest.
///
/// @param work      of each item, >= 0.
/// @param capacity  of each stage, > 0.
/// @param least     items that every stage gets at least: 1, or 0 where stages may be left out.
/// @param fits      (stage, first, last) -> may the stage hold these items? If it may not, it may not hold more either.
/// @return          the exact optimum, or none if nothing fits.
/// Complexity       O(stages x items^2) at worst; pieces beyond the best share known are not tried.
/// Determinism      ties: the earliest cut.
template <std::invocable<std::size_t, std::size_t, std::size_t> Fits>
[[nodiscard]] proportional_cut cut_in_proportion(const std::vector<double>& work, const std::vector<double>& capacity, std::size_t least,
                                                 Fits&& fits) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const std::size_t items = work.size(), stages = capacity.size();
  std::vector<double> sum(items + 1, 0);
  for (std::size_t i = 0; i < items; ++i) sum[i + 1] = sum[i] + work[i];
  struct choice {
    double share = std::numeric_limits<double>::infinity();
    std::size_t end = 0;
  };
  std::vector<choice> cells((stages + 1) * (items + 1));  // (stage, first item): the best for this stage and those behind it
  const auto cell = [&](std::size_t k, std::size_t i) -> choice& { return cells[k * (items + 1) + i]; };
  cell(stages, items).share = 0;
  for (std::size_t k = stages; k-- > 0;) {
    for (std::size_t i = 0; i <= items; ++i) {
      choice& best = cell(k, i);
      for (std::size_t end = i + least; end <= items; ++end) {
        const double mine = (sum[end] - sum[i]) / capacity[k];
        if (mine >= best.share) break;
        const double all = std::max(mine, cell(k + 1, end).share);
        if (all >= best.share) continue;
        if (end > i && !fits(k, i, end)) break;
        best = {all, end};
      }
    }
  }
  proportional_cut cut;
  cut.largest_share = cell(0, 0).share;
  if (cut.largest_share == inf) return cut;
  for (std::size_t k = 0, i = 0; k < stages; i = cell(k, i).end, ++k) cut.first.push_back(i);
  return cut;
}

namespace detail {

/// The stages that are left, and what each may hold.
template <class Problem>
class replay_maker {
 public:
  replay_maker(const Problem& problem, const plan& running, const std::vector<char>& lost)
      : problem_(problem), running_(running), graph_(make_stage_graph(running, problem.model)) {
    for (const stage_id s : graph_.topological) {
      auto layers = running[s].layers;
      std::sort(layers.begin(), layers.end());
      for (const layer_id l : layers) sequence_.blocks.push_back({l});
      stage left = running[s];
      std::erase_if(left.devices, [&](const assignment& a) { return lost[a.device.index()] != 0; });
      if (!left.devices.empty()) left_.push_back(std::move(left));
    }
    table_.emplace(problem.model, sequence_, problem.cluster, problem.cost, problem.models.memory, running.workload, 1);
    measure_work();
    for (const stage& s : left_) {
      capacity_.push_back(0);
      for (const assignment& a : s.devices) capacity_.back() += 1 / whole_model_s(a);
    }
  }

  [[nodiscard]] bool nobody_left() const { return left_.empty(); }

  /// The plan under a warm-up rule, or nothing if no cut keeps the memory.
  [[nodiscard]] std::optional<plan> make(warmup_rule rule) const {
    const auto fits = [&](std::size_t k, std::size_t first, std::size_t last) {
      int room = 0;
      for (const int most : caps(k, first, last, rule)) room = std::min(running_.microbatch_size, room + most);
      return room == running_.microbatch_size;
    };
    proportional_cut cut = cut_in_proportion(work_, capacity_, 1, fits);
    if (!cut.exists()) cut = cut_in_proportion(work_, capacity_, 0, fits);
    if (!cut.exists()) return std::nullopt;
    plan p = running_;
    p.planner = "replay";
    p.predicted.reset();
    p.stages.clear();
    p.network = sharing::fair_share;
    p.schedule.transfers.clear();
    p.schedule.warmup.clear();
    for (std::size_t k = 0; k < left_.size(); ++k) {
      const std::size_t first = cut.first[k], last = k + 1 < left_.size() ? cut.first[k + 1] : sequence_.size();
      if (first < last) p.stages.push_back(share_out(k, first, last, caps(k, first, last, rule)));
    }
    if (rule != warmup_rule::hide_communication) fit_warmup(p, problem_.model, problem_.cluster, problem_.models.memory);
    return p;
  }

 private:
  /// FLOP, or where a layer has none but was measured, the seconds of a sample on the first device that is left.
  void measure_work() {
    const auto layers = problem_.model.layers();
    const bool counted = std::all_of(layers.begin(), layers.end(), [](const layer& l) { return l.has_flops; });
    const device_id yardstick = left_.empty() ? device_id(0) : left_.front().devices.front().device;
    for (std::size_t i = 0; i < sequence_.size(); ++i) {
      const layer& l = problem_.model[sequence_.blocks[i].front()];
      const flops all = training() ? l.forward_flops + l.backward_input_flops + l.backward_weight_flops : l.forward_flops;
      work_.push_back(counted ? all.value() : table_->time(i, i + 1, yardstick, 1).total_s);
    }
  }
  [[nodiscard]] bool training() const { return running_.workload.mode == mode::training; }
  [[nodiscard]] double seconds_of(const stage& s, const assignment& a) const {
    double total = 0;
    for (const phase what : {phase::forward, phase::backward_input, phase::backward_weight}) {
      if (what != phase::forward && !training()) continue;
      total += stage_time_s(problem_.cost, problem_.model, s, a, problem_.cluster[a.device], what, running_.workload.context);
    }
    return total;
  }
  /// 1 / capacity: the whole model on a microbatch.
  [[nodiscard]] double whole_model_s(const assignment& a) const {
    const stage all{.layers = sequence_.layers_of(0, sequence_.size())};
    return std::max(seconds_of(all, {a.device, running_.microbatch_size, degree(all, a)}), std::numeric_limits<double>::min());
  }
  /// As it was; a profile knows one accelerator only.
  [[nodiscard]] int degree(const stage& s, const assignment& a) const {
    const std::string& kind = problem_.cluster[a.device].kind;
    const auto profiled = [&](layer_id l) { return problem_.model[l].profile_for(kind) != nullptr; };
    return std::any_of(s.layers.begin(), s.layers.end(), profiled) ? 1 : a.tensor_parallel;
  }

  /// Samples of a microbatch that each device of a stage has the memory for.
  [[nodiscard]] std::vector<int> caps(std::size_t k, std::size_t first, std::size_t last, warmup_rule rule) const {
    const int behind = static_cast<int>(left_.size() - k);
    const double each = microbatches_in_flight(running_, warmup_of(rule, behind)) * table_->activation_bytes(first, last) +
                        running_.microbatches * table_->cache_bytes(first, last);
    std::vector<int> most;
    for (const assignment& a : left_[k].devices) {
      const double room = problem_.cluster[a.device].usable_memory().value() * (1 + limit_tolerance) - table_->state_bytes(first, last);
      const double samples = room < 0 ? 0 : each > 0 ? room / each : running_.microbatch_size;
      most.push_back(static_cast<int>(std::min<double>(samples, running_.microbatch_size)));
    }
    return most;
  }

  [[nodiscard]] stage share_out(std::size_t k, std::size_t first, std::size_t last, const std::vector<int>& most) const {
    stage s{.name = left_[k].name, .layers = sequence_.layers_of(first, last)};
    const auto& devices = left_[k].devices;
    const auto shares = partition::allocate(running_.microbatch_size, most, [&](std::size_t d, int samples) {
      return seconds_of(s, {devices[d].device, samples, degree(s, devices[d])});
    });
    HETPLAN_ASSERT(shares);
    for (std::size_t d = 0; d < devices.size(); ++d) {
      if ((*shares)[d] > 0) s.devices.push_back({devices[d].device, (*shares)[d], degree(s, devices[d])});
    }
    return s;
  }

  const Problem& problem_;
  const plan& running_;
  stage_graph graph_;
  layer_sequence sequence_;            ///< the running plan's stages one after the other
  std::vector<stage> left_;            ///< with the devices that are left
  std::optional<stage_table> table_;
  std::vector<double> work_;           ///< by layer of the sequence
  std::vector<double> capacity_;       ///< by stage that is left
};

/// Why a plan cannot be replayed, or nothing.
inline std::string reason_not_to_replay(const plan& p) {
  if (p.pipelines.size() > 1) return "replay moves the cuts of one pipeline; the running plan has " + std::to_string(p.pipelines.size());
  if (p.schedule.kind == schedule_kind::explicit_orders) return "replay knows pipeline schedules; the running plan lists explicit orders";
  return "";
}

}  // namespace detail

/// A plan for the devices that are left: the running plan's stages in their order, each with the devices of it that are
/// left, and other partition points. A stage without devices vanishes; its layers go to its neighbours.
///
/// All layers, in the order of the running plan's stages (a graph of stages: in its topological order, in which every cut
/// is sound), are shared out in proportion to the capacity of the stages: the largest FLOP / capacity is smallest among
/// all cuts that keep the memory. Capacity of a device: 1 / seconds of the whole model on one microbatch, of a stage the
/// sum. Then the microbatch is shared out inside each stage by partition::allocate, within memory. Warm-up 2 depth - 1; where
/// no cut keeps the memory with that, the cut that does with depth, then 1, with as much warm-up as the memory takes.
/// Where every stage cannot have a layer, stages are left out. The simulator judges the result under the problem's limits.
///
/// Shares of other sizes than the plan's microbatch, transfer rules and a lost parameter server are given up.
///
/// @param problem  as it is now: the cluster still has all devices, ids unchanged; speeds are what its cost model says.
/// @param lost     devices of the cluster that the plan must not use; empty: balances what runs.
/// @return         one plan with its prediction (no bound: that takes longer than the plan), or infeasible: what memory or
///                 limit is missing, nobody left, several pipelines, explicit orders.
/// Complexity      O(layers x devices) questions to the cost model, O(S L^2) steps for S stages of L layers, and up to
///                 three simulations.
/// Throws          invalid_input (an unknown device, a running plan that is invalid).
/// Determinism     yes, but for `elapsed`.
/// Source          Asteroid, section 3.4, layer-wise lightweight pipeline re-planning. Deviations: the partition points are
///                 the exact optimum of its criterion, within memory; the paper speaks of "a minor adjustment".
template <class Problem>
[[nodiscard]] plan_result lightweight_replay(const Problem& problem, const plan& running, std::span<const device_id> lost) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<char> gone(problem.cluster.size(), 0);
  for (const device_id d : lost) {
    if (!d.valid() || d.index() >= gone.size()) {
      throw invalid_input("lightweight_replay: lost device " + std::to_string(d.value) + "; expected one of cluster \"" +
                          problem.cluster.name() + "\"");
    }
    gone[d.index()] = 1;
  }
  require_valid(running, problem.model, problem.cluster);
  plan_result result;
  const auto answer = [&](hetplan::status s) {
    if (result.plans.empty()) result.status = std::move(s);
    result.elapsed = seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    return std::move(result);
  };
  if (const std::string why = detail::reason_not_to_replay(running); !why.empty()) return answer({outcome::infeasible, why});
  const detail::replay_maker<Problem> maker(problem, running, gone);
  if (maker.nobody_left()) return answer({outcome::infeasible, "no device of the running plan is left"});
  const bool warms_up = running.workload.mode == mode::training && running.schedule.kind == schedule_kind::one_f_one_b;
  for (const warmup_rule rule : warmup_rules) {
    if (rule != warmup_rule::hide_communication && !warms_up) break;
    std::optional<plan> p = maker.make(rule);
    if (!p) continue;
    if (p->parameter_server && gone[p->parameter_server->index()] != 0) p->parameter_server.reset();
    ++result.candidates;
    evaluation e = judge(*p, problem.model, problem.cluster, problem.cost, problem.models).evaluation;
    if (const auto limit = find_broken_limit(e, problem.cluster)) {
      if (!result.binding || limit->overflow() < result.binding->overflow()) result.binding = limit;
      continue;
    }
    p->predicted = std::move(e);
    result.plans.push_back(std::move(*p));
    break;
  }
  if (result.binding) return answer({outcome::infeasible, to_string(*result.binding, problem.cluster)});
  return answer({outcome::infeasible, "memory: the devices that are left cannot hold the model in the running plan's order of stages"});
}

}  // namespace hetplan::adapt
