// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/replay.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <range/v3/range/conversion.hpp>
#include <range/v3/view/transform.hpp>
#include <range/v3/view/zip.hpp>

#include <hetplan/adapt/replication.hpp>
#include <hetplan/cost/prefix_table.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/partition/hand_out.hpp>
#include <hetplan/plan/limits.hpp>
#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/plan/validate.hpp>
#include <hetplan/simulate/dispatch.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/simulate/network_policy.hpp>
#include <hetplan/simulate/ranking.hpp>

namespace hetplan::adapt {

namespace detail {

/// The stages that are left, and what each may hold.
class replay_maker {
 public:
  replay_maker(const planning_problem& problem, const plan& running, const std::vector<char>& lost)
      : problem_(problem), running_(running), graph_(make_stage_graph(running, problem.model)) {
    for (const stage_id s : graph_.topological) {
      auto layers = running[s].layers;
      std::sort(layers.begin(), layers.end());
      for (const layer_id l : layers) sequence_.blocks.push_back({l});
      stage left = running[s];
      std::erase_if(left.devices, [&](const assignment& a) { return lost[a.device.index()] != 0; });
      if (!left.devices.empty()) left_.push_back(std::move(left));
    }
    for (const stage& s : left_) {
      for (const assignment& a : s.devices) ++stages_on_[a.device];
    }
    table_.emplace(problem.model, sequence_, problem.cluster, problem.cost, problem.models.memory, running.workload, 1);
    measure_work();
    measure_boundaries();
  }

  [[nodiscard]] bool nobody_left() const { return left_.empty(); }
  /// Why no cut keeps the memory.
  [[nodiscard]] std::string why_none() const {
    const std::string why = "memory: the devices that are left cannot hold the model in the running plan's order of stages";
    if (!parted_) return why;
    const auto& [from, to] = *parted_;
    return why + " without a route from \"" + problem_.cluster[from].name + "\" to \"" + problem_.cluster[to].name +
           "\", which become neighbours";
  }

  /// A plan for each measure and weight under a warm-up rule, the same cut once; none if no cut keeps the memory.
  [[nodiscard]] std::vector<plan> make(warmup_rule rule, const replay_options& options) const {
    const auto fits = [&](std::size_t k, std::size_t first, std::size_t last) {
      int room = 0;
      for (const int most : caps(k, first, last, rule)) room = std::min(running_.microbatch_size, room + most);
      return room == running_.microbatch_size;
    };
    std::vector<proportional_cut> cuts;
    for (const work_measure measure : options.measures) {
      const auto share = [&](std::size_t k, std::size_t first, std::size_t last) {
        return measure == work_measure::flop ? (work_[last] - work_[first]) / capacity_[k] : seconds_[k][last] - seconds_[k][first];
      };
      for (const double weight : options.transfer_weights) {
        const auto boundary = [&](std::size_t k, std::size_t item) {
          if (k + 1 == left_.size() || !(boundary_bytes_[item] > 0)) return 0.0;
          return joined_[k] == 0 ? std::numeric_limits<double>::infinity() : weight * boundary_bytes_[item] * s_per_byte_[k];
        };
        proportional_cut cut = cut_in_proportion(sequence_.size(), left_.size(), 1, share, boundary, fits);
        if (!cut.exists()) cut = cut_in_proportion(sequence_.size(), left_.size(), 0, share, boundary, fits);
        const bool known = std::any_of(cuts.begin(), cuts.end(), [&](const proportional_cut& c) { return c.first == cut.first; });
        if (cut.exists() && !known) cuts.push_back(std::move(cut));
      }
    }
    return cuts | ranges::views::transform([&](const proportional_cut& cut) { return to_plan(cut, rule); }) | ranges::to<std::vector>();
  }

 private:
  /// Seconds of every layer on a microbatch for every stage, prefix sums; devices of a stage work side by side, each at its
  /// own speed. Capacities follow. Work is FLOP, or where a layer has none but was measured, its seconds in the first stage.
  void measure_work() {
    const std::size_t items = sequence_.size();
    for (const stage& s : left_) {
      std::vector<double> per_second(items, 0);
      capacity_.push_back(0);
      for (const assignment& a : s.devices) {
        const stage all{.layers = sequence_.layers_of(0, items)};
        const assignment whole{a.device, running_.microbatch_size, degree(all, a)};
        const int stages = stages_on_.at(a.device);
        double total = 0;
        for (std::size_t i = 0; i < items; ++i) {
          const double each = stages * seconds_of({.layers = sequence_.blocks[i]}, whole);
          total += each;
          per_second[i] += 1 / std::max(each, shortest_s);
        }
        capacity_.back() += 1 / std::max(total, shortest_s);
      }
      seconds_.emplace_back(1, 0);
      for (const double rate : per_second) seconds_.back().push_back(seconds_.back().back() + 1 / rate);
    }
    if (left_.empty()) return;
    const auto layers = problem_.model.layers();
    const bool counted = std::all_of(layers.begin(), layers.end(), [](const layer& l) { return l.has_flops; });
    work_.push_back(0);
    for (std::size_t i = 0; i < items; ++i) {
      const layer& l = problem_.model[sequence_.blocks[i].front()];
      const flops all = training() ? l.forward_flops + l.backward_input_flops + l.backward_weight_flops : l.forward_flops;
      work_.push_back(work_.back() + (counted ? all.value() : seconds_[0][i + 1] - seconds_[0][i]));
    }
    const double total = work_.back();
    for (double& w : work_) w /= total > 0 ? total : 1;
  }
  void measure_boundaries() {
    const sequence_cuts cuts(problem_.model, sequence_);
    for (std::size_t i = 0; i < sequence_.size(); ++i) {
      const auto [forward_bytes, gradient_bytes] = cuts.bytes_in(i, sequence_.size());
      boundary_bytes_.push_back((forward_bytes + (training() ? gradient_bytes : 0)) * running_.microbatch_size);
    }
    for (std::size_t k = 1; k < left_.size(); ++k) {
      s_per_byte_.push_back(0);
      joined_.push_back(1);
      for (const assignment& a : left_[k - 1].devices) {
        for (const assignment& b : left_[k].devices) {
          if (a.device == b.device) continue;
          const double rate = problem_.cluster.network().peak_bandwidth(a.device, b.device).value();
          if (rate > 0) s_per_byte_.back() = std::max(s_per_byte_.back(), 1 / rate);
          if (problem_.cluster.network().find(a.device, b.device) != nullptr) continue;
          joined_.back() = 0;
          if (!parted_) parted_.emplace(a.device, b.device);
        }
      }
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
  /// As it was; a profile knows one accelerator only.
  [[nodiscard]] int degree(const stage& s, const assignment& a) const {
    const std::string& kind = problem_.cluster[a.device].kind;
    const auto profiled = [&](layer_id l) { return problem_.model[l].profile_for(kind) != nullptr; };
    return std::any_of(s.layers.begin(), s.layers.end(), profiled) ? 1 : a.tensor_parallel;
  }

  /// Samples of a microbatch that each device of a stage has the memory for.
  [[nodiscard]] std::vector<int> caps(std::size_t k, std::size_t first, std::size_t last, warmup_rule rule) const {
    const int stages_left = static_cast<int>(left_.size() - k);
    const double each = microbatches_in_flight(running_, warmup_of(rule, stages_left)) * table_->activation_bytes(first, last) +
                        running_.microbatches * table_->cache_bytes(first, last);
    std::vector<int> most;
    for (const assignment& a : left_[k].devices) {
      const double limit = memory_limit_bytes(problem_.cluster[a.device]) / stages_on_.at(a.device);
      const double room = limit - table_->state_bytes(first, last);
      most.push_back(count_that_fits(room, each, running_.microbatch_size));
    }
    return most;
  }

  [[nodiscard]] plan to_plan(const proportional_cut& cut, warmup_rule rule) const {
    plan p = running_;
    p.planner = "replay";
    p.predicted.reset();
    p.stages.clear();
    p.sharing_policy = sharing::fair_share;
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
    for (const auto& [a, share] : ranges::views::zip(devices, *shares)) {
      if (share > 0) s.devices.push_back({a.device, share, degree(s, a)});
    }
    return s;
  }

  static constexpr double shortest_s = 1e-30;  ///< so that layers without work divide nothing by zero

  const planning_problem& problem_;
  const plan& running_;
  stage_graph graph_;
  layer_sequence sequence_;  ///< the running plan's stages one after the other
  std::vector<stage> left_;  ///< with the devices that are left
  std::map<device_id, int> stages_on_;
  std::optional<prefix_table> table_;
  std::vector<double> work_;                  ///< before each layer of the sequence and at its end, as a share of the whole model
  std::vector<std::vector<double>> seconds_;  ///< the same in seconds, by stage that is left
  std::vector<double> boundary_bytes_;        ///< of a microbatch, forward and gradient, before each layer of the sequence
  std::vector<double> capacity_;              ///< by stage that is left: whole models per second
  std::vector<double> s_per_byte_;            ///< behind each stage that is left but the last: its slowest pair of devices
  std::vector<char> joined_;                  ///< behind each: every pair has a route
  std::optional<std::pair<device_id, device_id>> parted_;  ///< the first pair that has none
};

/// Why a plan cannot be replayed, or nothing.
std::string reason_not_to_replay(const plan& p);
/// Does a device run gradients of weights as tasks of their own?
bool splits_backwards(const plan& p);

}  // namespace detail

}  // namespace hetplan::adapt

namespace hetplan::adapt::detail {

HETPLAN_INLINE std::string reason_not_to_replay(const plan& p) {
  if (p.pipelines.size() > 1) return "replay moves the cuts of one pipeline; the running plan has " + std::to_string(p.pipelines.size());
  if (p.schedule.kind == schedule_kind::explicit_orders && p.workload.mode == mode::generation)
    return "replay finds orders for training and inference; the running plan lists those of generation";
  for (const stage& s : p.stages) {
    if (s.recompute) return "replay counts on stages that keep their activations; stage \"" + s.name + "\" recomputes them";
    if (s.state_shards() > 1) {
      return "replay counts on devices that hold the whole optimizer's state; those of stage \"" + s.name + "\" share it out";
    }
    if (const std::string more = beyond_plain(s); !more.empty()) {
      return "replay counts on stages whose devices share microbatches by samples alone; stage \"" + s.name + "\" is " + more;
    }
  }
  return "";
}

HETPLAN_INLINE bool splits_backwards(const plan& p) {
  return std::ranges::any_of(p.schedule.orders, [](const std::vector<order_entry>& order) {
    return std::ranges::any_of(order, [](const order_entry& e) { return e.what == phase::backward_weight; });
  });
}

}  // namespace hetplan::adapt::detail

namespace hetplan::adapt {

HETPLAN_INLINE plan_result lightweight_replay(const planning_problem& problem, const plan& running, std::span<const device_id> lost,
                                              const replay_options& options) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<char> gone(problem.cluster.size(), 0);
  for (const device_id d : lost) {
    if (!d.valid() || d.index() >= gone.size()) {
      throw invalid_input("lightweight_replay: lost device " + std::to_string(d.value) + "; expected one of cluster \"" +
                          problem.cluster.name() + "\"");
    }
    gone[d.index()] = 1;
  }
  if (options.transfer_weights.empty() || options.measures.empty()) {
    throw invalid_input("lightweight_replay: no transfer weight or no measure; expected at least one of each");
  }
  for (const double weight : options.transfer_weights) {
    if (!std::isfinite(weight) || weight < 0) {
      throw invalid_input("lightweight_replay: transfer weight " + to_text(weight) + "; expected finite numbers >= 0");
    }
  }
  require_valid(running, problem.model, problem.cluster);
  plan_result result;
  std::string not_joined, without_order;
  const auto answer = [&](hetplan::status s) {
    if (result.plans.empty()) result.status = std::move(s);
    result.elapsed = seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    return std::move(result);
  };
  if (const std::string why = detail::reason_not_to_replay(running); !why.empty()) return answer({outcome::none_found, why});
  const detail::replay_maker maker(problem, running, gone);
  if (maker.nobody_left()) return answer({outcome::none_found, "no device of the running plan is left"});
  const bool lists_orders = running.schedule.kind == schedule_kind::explicit_orders;
  const bool warms_up = running.workload.mode == mode::training && running.schedule.kind != schedule_kind::gpipe;
  const dispatch_options as_before{.split_backward = detail::splits_backwards(running)};
  for (const warmup_rule rule : warmup_rules) {
    if (rule != warmup_rule::hide_communication && !warms_up) break;
    for (plan& p : maker.make(rule, options)) {
      if (p.parameter_server && gone[p.parameter_server->index()] != 0) p.parameter_server.reset();
      ++result.candidates;
      evaluation e;
      try {
        if (lists_orders) p = dispatch(std::move(p), problem, eager{}, as_before);
        e = judge(p, problem.model, problem.cluster, problem.cost, problem.models).evaluation;
      } catch (const missing_route& m) {  // who lost the relay between them
        not_joined = m.what();
        continue;
      } catch (const invalid_input& i) {  // no room for one microbatch of each stage of a device, or devices that wait for each other
        if (!lists_orders) throw;
        without_order = i.what();
        continue;
      }
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
  if (result.binding) return answer({outcome::none_found, to_string(*result.binding, problem.cluster)});
  for (const std::string& why : {not_joined, without_order}) {
    if (!why.empty()) return answer({outcome::none_found, why});
  }
  return answer({outcome::none_found, maker.why_none()});
}

}  // namespace hetplan::adapt
