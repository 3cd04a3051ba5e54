// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Pipeline replay: a plan for those who are left that moves the running plan's partition points and nothing else.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/adapt/proportional_cut.hpp>
#include <hetplan/cost/stage_table.hpp>
#include <hetplan/graph/sequence_cuts.hpp>
#include <hetplan/partition/allocate.hpp>
#include <hetplan/plan/fit_warmup.hpp>
#include <hetplan/plan/validate.hpp>
#include <hetplan/simulate/ranking.hpp>

namespace hetplan::adapt {

struct replay_options {
  /// A cut in exact proportion may pass through the widest tensors of the model. So for each of these the simulator also tries
  /// the cut that is uneven by at most so much (relative to the best) and passes the fewest bytes. Empty: proportion alone.
  std::vector<double> unevenness = {0.1, 0.25, 0.5, 1};
};

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
    const sequence_cuts cuts(problem.model, sequence_);
    for (std::size_t i = 0; i <= sequence_.size(); ++i) {
      const auto [there, back] = i < sequence_.size() ? cuts.bytes_in(i, sequence_.size()) : std::pair(0.0, 0.0);
      boundary_.push_back(there + (training() ? back : 0));
    }
    for (const stage& s : left_) {
      capacity_.push_back(0);
      for (const assignment& a : s.devices) capacity_.back() += 1 / whole_model_s(a);
    }
  }

  [[nodiscard]] bool nobody_left() const { return left_.empty(); }

  /// The plans under a warm-up rule: the cut in proportion first; none if no cut keeps the memory.
  [[nodiscard]] std::vector<plan> make(warmup_rule rule, const std::vector<double>& unevenness) const {
    const auto fits = [&](std::size_t k, std::size_t first, std::size_t last) {
      int room = 0;
      for (const int most : caps(k, first, last, rule)) room = std::min(running_.microbatch_size, room + most);
      return room == running_.microbatch_size;
    };
    std::size_t least = 1;
    std::vector<proportional_cut> cuts{cut_in_proportion(work_, capacity_, least, fits)};
    if (!cuts.front().exists()) cuts.front() = cut_in_proportion(work_, capacity_, least = 0, fits);
    if (!cuts.front().exists()) return {};
    for (const double uneven : unevenness) {
      proportional_cut light = lightest_cut(work_, capacity_, least, cuts.front().largest_share * (1 + uneven), boundary_, fits);
      HETPLAN_ASSERT(light.exists());
      const bool known = std::any_of(cuts.begin(), cuts.end(), [&](const proportional_cut& c) { return c.first == light.first; });
      if (!known) cuts.push_back(std::move(light));
    }
    std::vector<plan> plans;
    for (const proportional_cut& cut : cuts) plans.push_back(to_plan(cut, rule));
    return plans;
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

  [[nodiscard]] plan to_plan(const proportional_cut& cut, warmup_rule rule) const {
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
  std::vector<double> boundary_;       ///< bytes per sample, there and back, before each layer of the sequence
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
/// sum. Cuts that are somewhat less even and pass fewer bytes compete (`unevenness`). The microbatch is shared out inside
/// each stage by partition::allocate, within memory. Warm-up 2 depth - 1; where no cut keeps the memory with that, depth,
/// then 1, raised again as far as the memory of the cut allows. Where not every stage can have a layer, stages are left
/// out. The simulator chooses: the shortest response among those that keep the problem's limits; ties: the more even.
///
/// Stages take the plan's microbatch size; transfer rules and a lost parameter server are given up.
///
/// @param problem  as it is now: the cluster still has all devices, ids unchanged; speeds are what its cost model says.
/// @param lost     devices of the cluster that the plan must not use; empty: balances what runs.
/// @return         one plan with its prediction (no bound: that takes longer than the plan), or infeasible: what memory or
///                 limit is missing, nobody left, several pipelines, explicit orders.
/// Complexity      O(layers x devices) questions to the cost model, O(S L^2) steps for S stages of L layers, and a
///                 simulation for each unevenness and one more, for each warm-up rule until one fits.
/// Throws          invalid_input (an unknown device, a running plan that is invalid, a negative unevenness).
/// Determinism     yes, but for `elapsed`.
/// Source          Asteroid, section 3.4, layer-wise lightweight pipeline re-planning. Deviations: the partition points are
///                 the exact optimum of its criterion, within memory (the paper speaks of "a minor adjustment"); uneven cuts
///                 compete, and the simulator chooses.
template <class Problem>
[[nodiscard]] plan_result lightweight_replay(const Problem& problem, const plan& running, std::span<const device_id> lost,
                                             const replay_options& options = {}) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<char> gone(problem.cluster.size(), 0);
  for (const device_id d : lost) {
    if (!d.valid() || d.index() >= gone.size()) {
      throw invalid_input("lightweight_replay: lost device " + std::to_string(d.value) + "; expected one of cluster \"" +
                          problem.cluster.name() + "\"");
    }
    gone[d.index()] = 1;
  }
  for (const double uneven : options.unevenness) {
    if (!std::isfinite(uneven) || uneven < 0) {
      throw invalid_input("lightweight_replay: unevenness " + to_text(uneven) + "; expected finite numbers >= 0");
    }
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
    for (plan& p : maker.make(rule, options.unevenness)) {
      if (p.parameter_server && gone[p.parameter_server->index()] != 0) p.parameter_server.reset();
      ++result.candidates;
      evaluation e = judge(p, problem.model, problem.cluster, problem.cost, problem.models).evaluation;
      if (const auto limit = find_broken_limit(e, problem.cluster)) {
        if (!result.binding || limit->overflow() < result.binding->overflow()) result.binding = limit;
        continue;
      }
      if (!result.plans.empty() && result.plans.front().predicted->response() <= e.response()) continue;
      p.predicted = std::move(e);
      result.plans.assign(1, std::move(p));
    }
    if (!result.plans.empty()) {
      result.binding.reset();
      break;
    }
  }
  if (result.binding) return answer({outcome::infeasible, to_string(*result.binding, problem.cluster)});
  return answer({outcome::infeasible, "memory: the devices that are left cannot hold the model in the running plan's order of stages"});
}

}  // namespace hetplan::adapt
