// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/ladder.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include <range/v3/range/conversion.hpp>
#include <range/v3/view/transform.hpp>
#include <range/v3/view/zip.hpp>

#include <hetplan/adapt/known_plans.hpp>
#include <hetplan/adapt/migration.hpp>
#include <hetplan/adapt/replication.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/cost/prefix_table.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/partition/apportion.hpp>
#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/plan/validate.hpp>
#include <hetplan/search/ranking.hpp>
#include <hetplan/simulate/dispatch.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/simulate/simulation.hpp>

namespace hetplan::adapt {

namespace detail {

/// The remaining stages with their capacities and memory limits.
class replay_maker {
 public:
  replay_maker(const planning_problem& problem, const plan& running, const std::vector<char>& lost)
      : problem_(problem), running_(running), passes_(running.workload, problem.model), graph_(make_stage_graph(running, problem.model)) {
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
  /// Returns the reason why no cut fits the memory.
  [[nodiscard]] std::string why_none() const {
    const std::string why = "memory: the devices that are left cannot hold the model in the running plan's order of stages";
    if (!parted_) return why;
    const auto& [from, to] = *parted_;
    return why + " without a route from \"" + problem_.cluster[from].name + "\" to \"" + problem_.cluster[to].name +
           "\", which become neighbours";
  }

  /// Returns a plan per measure and weight under a warm-up rule, without equal cuts; none if no cut fits the memory.
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
  /// Sets the prefix sums of each layer's seconds per microbatch and stage, for devices that work in parallel at their own speeds,
  /// and the capacities. Work is FLOP, or for measured layers without FLOP the seconds in the first stage.
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
    const sequence_cuts cuts(problem_.model, sequence_, mean_edge_shares(problem_.model, passes_));
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
      total += stage_time_s(problem_.cost, problem_.model, s, a, problem_.cluster[a.device], what, passes_);
    }
    return total;
  }
  /// Returns the unchanged tensor-parallel degree, but 1 for profiled layers: a profile covers one accelerator only.
  [[nodiscard]] int degree(const stage& s, const assignment& a) const {
    const std::string& kind = problem_.cluster[a.device].kind;
    const auto profiled = [&](layer_id l) { return problem_.model[l].profile_for(kind) != nullptr; };
    return std::any_of(s.layers.begin(), s.layers.end(), profiled) ? 1 : a.tensor_parallel;
  }

  /// Returns the samples of a microbatch that fit the memory of each device of a stage.
  [[nodiscard]] std::vector<int> caps(std::size_t k, std::size_t first, std::size_t last, warmup_rule rule) const {
    const int stages_left = static_cast<int>(left_.size() - k);
    const double each = microbatches_in_flight(running_, warmup_of(rule, stages_left)) * table_->activation_bytes(first, last) +
                        running_.microbatches * table_->cache_bytes(first, last);
    std::vector<int> most;
    for (const assignment& a : left_[k].devices) {
      const double limit = memory_limit_bytes(problem_.cluster[a.device]) / stages_on_.at(a.device);
      const double room = limit - table_->state_bytes(first, last);
      int fits = count_that_fits(room, each, running_.microbatch_size);
      table_->workspace().for_largest(first, last, [&](const temporary_bytes& t) {
        fits = std::min(fits, count_that_fits(room - t.fixed, each + t.each, running_.microbatch_size));
      });
      most.push_back(fits);
    }
    return most;
  }

  [[nodiscard]] plan to_plan(const proportional_cut& cut, warmup_rule rule) const {
    plan p = running_;
    p.planner = "replay";
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

  static constexpr double shortest_s = 1e-30;  ///< avoids a division by zero for layers without work

  const planning_problem& problem_;
  const plan& running_;
  token_passes passes_;
  stage_graph graph_;
  layer_sequence sequence_;  ///< the stages of the running plan one after the other
  std::vector<stage> left_;  ///< with the remaining devices
  std::map<device_id, int> stages_on_;
  std::optional<prefix_table> table_;
  std::vector<double> work_;                               ///< prefix sums over the sequence, as a share of the whole model
  std::vector<std::vector<double>> seconds_;               ///< the same in seconds, by remaining stage
  std::vector<double> boundary_bytes_;                     ///< of a microbatch, forward and gradient, before each layer of the sequence
  std::vector<double> capacity_;                           ///< by remaining stage: whole models per second
  std::vector<double> s_per_byte_;                         ///< behind each remaining stage but the last: its slowest pair of devices
  std::vector<char> joined_;                               ///< behind each stage: true if every pair has a route
  std::optional<std::pair<device_id, device_id>> parted_;  ///< the first pair without a route
};

/// Returns the reason why a plan cannot be replayed, or "".
HETPLAN_INLINE std::string reason_not_to_replay(const plan& p) {
  if (p.pipelines.size() > 1) return "replay moves the cuts of one pipeline; the running plan has " + std::to_string(p.pipelines.size());
  if (p.schedule.kind == schedule_kind::explicit_orders && p.workload.mode == mode::generation)
    return "replay finds orders for training and inference; the running plan lists those of generation";
  for (const stage& s : p.stages) {
    if (s.recomputes()) return "replay counts on stages that keep their activations; stage \"" + s.name + "\" recomputes them";
    if (s.state_shards() > 1) {
      return "replay counts on devices that hold the whole optimizer's state; those of stage \"" + s.name + "\" share it out";
    }
    if (!s.offload.empty()) return "replay counts on weights in memory; stage \"" + s.name + "\" has some in tiers";
    if (const std::string more = beyond_plain(s, s.devices.size() == 1); !more.empty()) {
      return "replay counts on stages whose devices share microbatches by samples alone; stage \"" + s.name + "\" is " + more;
    }
  }
  return "";
}

/// Returns the plan with equal microbatches in place of cuts: of the job's sizes, the one nearest to the mean of the passes.
HETPLAN_INLINE plan without_cuts(plan p, const job& j) {
  std::size_t passes = 0;
  for (const stage& s : p.stages) passes = std::max(passes, s.cuts.forward.size());
  if (passes == 0) return p;
  const double mean = static_cast<double>(p.batch()) / static_cast<double>(passes - 1);
  double nearest = std::numeric_limits<double>::infinity();
  for (const int size : j.candidate_microbatch_sizes()) {
    if (std::abs(size - mean) >= nearest) continue;
    nearest = std::abs(size - mean);
    p.microbatch_size = size;
  }
  p.microbatches = j.batch / p.microbatch_size;
  for (stage& s : p.stages) {
    s.cuts = {};
    s.devices.front().samples = p.microbatch_size;
  }
  return p;
}

/// True if a device runs weight gradients as separate tasks.
HETPLAN_INLINE bool splits_backwards(const plan& p) {
  return std::ranges::any_of(p.schedule.orders, [](const std::vector<order_entry>& order) {
    return std::ranges::any_of(order, [](const order_entry& e) { return e.what == phase::backward_weight; });
  });
}

}  // namespace detail

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
  const plan equal = detail::without_cuts(running, problem.job);
  const detail::replay_maker maker(problem, equal, gone);
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
      } catch (const missing_route& m) {  // a lost relay
        not_joined = m.what();
        continue;
      } catch (const invalid_input& i) {  // no memory for one microbatch per stage of a device, or a deadlock
        if (!lists_orders) throw;
        without_order = i.what();
        continue;
      }
      if (const auto limit = find_broken_limit(e, problem.cluster)) {
        if (!result.binding || limit->overflow() < result.binding->overflow()) result.binding = limit;
        continue;
      }
      if (!result.plans.empty() && result.plans.front().evaluation.response() <= e.response()) continue;
      result.plans.assign(1, {std::move(p), std::move(e)});
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

HETPLAN_INLINE std::vector<device_id> lost_devices(const cluster& c, const conditions& now) {
  std::vector<device_id> lost;
  for (const device& d : c.devices()) {
    if (!now.works(d.id)) lost.push_back(d.id);
  }
  return lost;
}

HETPLAN_INLINE const plan_result& remembered_replay::operator()(const planning_problem& problem, const plan& running,
                                                                std::vector<device_id> lost) {
  if (!running_ || lost_ != lost || *running_ != running) {
    result_ = lightweight_replay(problem, running, lost);
    running_ = running;
    lost_ = std::move(lost);
  }
  return result_;
}

HETPLAN_INLINE replay_policy::replay_policy(const planning_problem& problem, plan first, thinking_times thinking)
    : problem_(&problem), first_(std::move(first)), thinking_(thinking) {}

HETPLAN_INLINE reaction replay_policy::react(const situation& s) {
  if (s.running == nullptr) return {.next = first_};
  if (s.can_run) return {};
  const plan_result& r = replay_(*problem_, *s.running, lost_devices(problem_->cluster, s.noticed));
  if (r.plans.empty()) return {.reason = r.status.reason};
  const auto& [next, evaluation] = r.plans.front();
  return {
      .next = next, .predicted = evaluation, .reached = rung::replanned, .thinking = thinking_.replay, .reason = "partition points moved"};
}

HETPLAN_INLINE rescheduling_policy::rescheduling_policy(const planning_problem& problem, plan first, any_planner planner,
                                                        policy_options options)
    : problem_(&problem), first_(std::move(first)), options_(checked_options(options, "rescheduling_policy")), known_(problem),
      plan_(problem, std::move(planner), options.memory) {}

HETPLAN_INLINE reaction rescheduling_policy::react(const situation& s) {
  if (s.running == nullptr) return {.next = first_};
  if (s.can_run) return {};
  known_.forget(options_.most_plans);
  const plan_result& r = plan_(known_, s, s.wanted);
  if (r.plans.empty()) return {.ask_again = plan_.ask_again(), .reason = r.status.reason};
  const auto best = known_.best(goal(problem_->job, s), s.noticed, s.traffic, r.plans);  // the result may be for other conditions
  if (!best) return {.ask_again = plan_.ask_again(), .reason = "no plan of the planner's can run"};
  return {.next = known_[*best],
          .how = switching::through_coordinator,
          .reached = rung::replanned,
          .thinking = options_.thinking.replan,
          .ask_again = plan_.ask_again(),
          .reason = "planned anew by the coordinator"};
}

HETPLAN_INLINE void check_ladder_options(const ladder_options& o) {
  const auto require = [](bool ok, const char* option, double given, const char* expected) {
    if (!ok) throw invalid_input(std::string("ladder: ") + option + " = " + to_text(given) + "; expected " + expected);
  };
  static_cast<void>(checked_options(o.common, "ladder"));
  require(std::isfinite(o.tolerance) && o.tolerance >= 0, "tolerance", o.tolerance, "a finite number >= 0");
  require(o.spare >= 0 && o.spare < 1, "spare", o.spare, "a share >= 0 and < 1");
  require(is_finite(o.patience) && o.patience >= seconds{}, "patience", o.patience.value(), "finite seconds >= 0");
  require(is_finite(o.dwell) && o.dwell >= seconds{}, "dwell", o.dwell.value(), "finite seconds >= 0");
  require(is_finite(o.payback) && o.payback > seconds{}, "payback", o.payback.value(), "finite seconds > 0");
}

HETPLAN_INLINE ladder::ladder(const planning_problem& problem, any_planner planner, ladder_options options)
    : problem_(&problem), options_(options), known_(problem), plan_(problem, std::move(planner), options.common.memory),
      changes_(checked_options(options.common, "ladder")) {
  check_ladder_options(options);
}

HETPLAN_INLINE reaction ladder::react(const situation& s) {
  const change_size changed = changes_.classify(s);
  const bool large = changed == change_size::large;
  if (large && s.running != nullptr) ++changes_answered_;
  known_.forget(options_.common.most_plans);
  if (!large && !(postponed_ && at_most(*postponed_, s.now))) {
    reaction r;
    if (changed == change_size::small && s.running != nullptr && s.coming == nullptr) {
      r = reorder_transfers(*problem_, known_, s, options_.common).value_or(reaction{});
    }
    r.ask_again = postponed_;
    return r;
  }
  postponed_.reset();
  const goal wanted(problem_->job, s);
  if (s.running == nullptr || !s.can_run) {
    const std::optional<choice> best = best_of(s, wanted, everything(s));
    if (!best) {
      postponed_ = plan_.ask_again();
      return {.ask_again = postponed_, .reason = answer(s).status.reason};
    }
    if (s.running == nullptr) {
      reference_ = best_reference_ = best->now.response_s;
      return {.next = known_[best->plan]};
    }
    return adopt(s, *best, switching::delta, "the running plan cannot go on");
  }

  const std::size_t running = running_ = known_.add(*s.running);
  choice mine = judged(s, wanted, running, rung::none, seconds{});
  if (holds(s, wanted, mine)) return {.cancel = s.coming != nullptr, .reason = "holds again"};

  if (const auto p = known_.reschedule(running, s.noticed, s.traffic, s.wanted, options_.common.network)) {
    const choice c = judged(s, wanted, *p, rung::network, options_.common.thinking.reschedule);
    if (c.plan != running && (holds(s, wanted, c) || beats(c, mine))) {
      if (holds(s, wanted, c)) return adopt(s, c, switching::delta, "the network alone holds what is wanted");
      mine = c;
    }
  }
  if (s.coming != nullptr) return {};
  if (large) lasts_since_ = s.since;
  const seconds calm = std::max(lasts_since_ + options_.patience, moved_ ? *moved_ + options_.dwell : seconds{});
  if (!at_most(calm, s.now)) {  // too early: asks again at that time
    postponed_ = calm;
    reaction r = mine.plan != running ? adopt(s, mine, switching::delta, "the network alone, until weights may move") : reaction{};
    r.ask_again = calm;
    return r;
  }
  std::vector<candidate> all = known_ones();
  std::optional<choice> best = best_of(s, wanted, all);
  // Without a wanted latency, a plan may hold only because the running one was adopted under worse conditions. Weights that have to move
  // anyway should move to the best plan.
  const auto is_worth_it = [&](const choice& c) {
    return wanted.keeps_latency(c.now).has_value() || c.now.response_s <= (1 + options_.tolerance) * best_reference_;
  };
  if (best && holds(s, wanted, *best) && beats(*best, mine) && is_worth_it(*best)) {
    return adopt(s, *best, switching::background, "a plan that is known holds what is wanted");
  }
  all = everything(s);
  best = best_of(s, wanted, all);
  if (best) best->thinking = std::max(best->thinking, options_.common.thinking.replan);  // includes the search
  if (best && beats(*best, mine)) return adopt(s, *best, switching::background, "a new plan for new conditions");
  reference_ = mine.now.response_s;  // no better plan is available
  postponed_ = plan_.ask_again();
  reaction r = mine.plan != running ? adopt(s, mine, switching::delta, "the network alone is the best that helps") : reaction{};
  r.ask_again = postponed_;
  return r;
}

HETPLAN_INLINE std::vector<ladder::candidate> ladder::known_ones() const {
  std::vector<candidate> all;
  for (std::size_t i = 0; i < known_.size(); ++i) all.push_back({i, rung::known_plan, options_.common.thinking.choose});
  return all;
}

HETPLAN_INLINE std::vector<ladder::candidate> ladder::everything(const situation& s) {
  std::vector<candidate> all = known_ones();
  const auto take = [&](const plan_result& r, seconds thinking) {
    for (const ranked_plan& found : r.plans) {
      const std::size_t i = known_.add(found.plan);
      if (i >= all.size()) all.push_back({i, rung::replanned, thinking});
    }
  };
  if (s.running != nullptr && !s.can_run) {
    take(replay_(*problem_, *s.running, lost_devices(problem_->cluster, s.noticed)), options_.common.thinking.replay);
  }
  take(answer(s), options_.common.thinking.replan);
  return all;
}

HETPLAN_INLINE const plan_result& ladder::answer(const situation& s) {
  const plan_result& usual = plan_(known_, s, s.wanted);
  if (!s.wanted.latency || usual.plans.empty()) return usual;
  const seconds best = usual.plans.front().evaluation.response();
  if (!at_most(best, *s.wanted.latency)) return usual;  // if all plans miss it, a shorter latency gives the same order
  qoe_target wanted = s.wanted;
  *wanted.latency *= 1 - options_.spare;
  return plan_(known_, s, wanted);
}

HETPLAN_INLINE ladder::choice ladder::judged(const situation& s, const goal& wanted, std::size_t plan, rung reached, seconds thinking) {
  choice c{plan, reached, thinking, known_.try_out(plan, s.noticed, s.traffic), {}};
  c.amortised = wanted.of(c.now);
  if (s.running == nullptr || !c.now.ended || moves_nothing(*s.running, known_[plan])) return c;
  // The switch to a plan that serves worse than the running one need not be known: it would not be taken.
  if (s.can_run && !wanted.keeps_latency(c.now).value_or(false) &&
      !c.amortised.beats(known_.serves(wanted, running_, s.noticed, s.traffic))) {
    return c;
  }
  const std::optional<switch_time> cost = time_of_switch(s, plan);
  if (!cost) c.now.ended = false;
  const double payback = time_to_pay_back(s.now).value(), beside = cost ? cost->beside_s : 0;
  const double pause = cost ? cost->pause_s + (s.can_run ? 0 : thinking.value()) : payback;
  if (const double rest = payback - pause - beside; rest > 0.01 * payback) {
    const double old = beside > 0 ? wanted.of(cost->meanwhile).score : 0;
    if (old > 0 && c.amortised.score > 0) c.amortised.score = payback / (beside / old + rest / c.amortised.score);
    else c.amortised.score *= payback / (rest + beside);
  } else {  // even a switch that does not pay back beats a standstill: the shortest pause first
    c.amortised.score *= 100 * (pause + beside) / payback;
  }
  return c;
}

HETPLAN_INLINE seconds ladder::time_to_pay_back(seconds now) const {
  const seconds most = options_.payback;
  return std::min(most, (most + now) / (1.0 + static_cast<double>(changes_answered_)));
}

HETPLAN_INLINE std::optional<ladder::switch_time> ladder::time_of_switch(const situation& s, std::size_t plan) {
  const migration all = delta_migration(s.held, known_[plan], problem_->model, problem_->cluster, s.noticed);
  if (!all.status.ok()) return std::nullopt;
  const auto time_s = [&](const migration& m) {
    return m.empty() ? 0 : run_migration(m, problem_->cluster, s.noticed, problem_->models.energy).time.value();
  };
  if (!s.can_run) return switch_time{time_s(all), 0};
  const auto [beside, stopped] = split_beside(all, *s.running, problem_->model, problem_->cluster, problem_->models.memory);
  switch_time t{time_s(stopped)};
  std::vector<foreign_traffic> traffic(s.traffic.begin(), s.traffic.end());
  for (const auto& round : beside.rounds) {
    for (const fetch& f : round) traffic.push_back({f.from, f.to, f.volume, std::numeric_limits<int>::max()});
  }
  if (traffic.size() == s.traffic.size()) return t;
  t.meanwhile = known_.try_out(running_, s.noticed, traffic);
  for (std::size_t i = s.traffic.size(); i < std::min(traffic.size(), t.meanwhile.background_left.size()); ++i) {
    const double volume = traffic[i].left.value(), left = t.meanwhile.background_left[i];  // after one iteration
    if (!(left < volume)) return switch_time{time_s(all), 0};                              // the running plan leaves no bandwidth
    t.beside_s = std::max(t.beside_s, t.meanwhile.took_s * std::max(1.0, volume / (volume - left)));
  }
  return t;
}

HETPLAN_INLINE std::optional<ladder::choice> ladder::best_of(const situation& s, const goal& wanted, const std::vector<candidate>& all) {
  std::optional<choice> best;
  for (const candidate& c : all) {
    const choice x = judged(s, wanted, c.plan, c.reached, c.thinking);
    if (!x.now.ended) continue;
    const int mine = rank(wanted, x), other = best ? rank(wanted, *best) : 0;
    if (!best || mine < other || (mine == other && x.amortised.beats(best->amortised))) best = x;
  }
  if (best) known_.touch(best->plan);
  return best;
}

HETPLAN_INLINE int ladder::rank(const goal& wanted, const choice& c) const {
  const bool kept = wanted.keeps_latency(c.now).value_or(true), well = wanted.keeps_latency(c.now, options_.spare).value_or(true);
  return kept ? (well ? 0 : 1) : 2;
}

HETPLAN_INLINE bool ladder::beats(const choice& a, const choice& b) const {
  return !b.now.ended || a.amortised.score * (1 + options_.tolerance) < b.amortised.score;
}

HETPLAN_INLINE bool ladder::holds(const situation& s, const goal& wanted, const choice& c) {
  if (const auto kept = wanted.keeps_latency(c.now)) return *kept;
  if (!c.now.ended || c.now.response_s > (1 + options_.tolerance) * reference_) return false;
  const auto best = best_of(s, wanted, known_ones());
  return !best || !beats(*best, c);
}

HETPLAN_INLINE reaction ladder::adopt(const situation& s, const choice& c, switching how, const char* why) {
  reference_ = c.now.response_s;
  best_reference_ = std::min(best_reference_, reference_);
  if (!same_placement(known_[c.plan], *s.running)) moved_ = s.now + c.thinking;
  const seconds answers = s.can_run && c.reached != rung::network ? std::min(s.since, lasts_since_) : s.since;
  return {.next = known_[c.plan], .how = how, .reached = c.reached, .thinking = c.thinking, .answers = answers, .reason = why};
}

}  // namespace hetplan::adapt
