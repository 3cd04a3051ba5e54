// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Enumeration of every plan of a space: the oracle for planners that search the same space.

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <hetplan/core/observer.hpp>
#include <hetplan/core/sorting.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/cost/energy_model.hpp>
#include <hetplan/cost/memory_model.hpp>
#include <hetplan/estimate/estimate.hpp>
#include <hetplan/estimate/step_law.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/partition/apportion.hpp>
#include <hetplan/partition/candidate_costs.hpp>
#include <hetplan/partition/search_context.hpp>
#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/plan_result.hpp>

namespace hetplan::partition {

/// Blocks [first, last) of the sequence on a group of the device space.
struct plain_stage {
  std::size_t first, last, group;
};
struct plain_plan {
  double score = std::numeric_limits<double>::infinity();  ///< infinite if no plan keeps the limits
  std::vector<plain_stage> stages = {};                    ///< from last to first
};

/// Returns the best plan of a serial sequence by the recurrence as printed in the paper, from the last block to the first, without any
/// pruning. two_substate_dp finds the same plans faster.
///
/// @param law   tail of the pipeline -> longer tail. It need not be monotone, as nothing is dropped.
/// Complexity   all plans of the space: for a dozen blocks on a few devices.
/// Throws       invalid_input: an invalid device space.
/// Determinism  ties: first found.
/// Source       Dora, section 4.1, eqs. 3-5. Deviations: those of two_substate_dp.
template <step_law Law>
[[nodiscard]] plain_plan plain_dp(const search_tables& t, const device_space& space, const plan& blank, const any_objective& objective,
                                  const Law& law, const search_options& options = {}) {
  struct partial_pipeline {
    pipeline_tail tail = {};
    stage_budget budget = {};
    std::vector<plain_stage> stages = {};
  };
  require_device_space(space, t.cluster, "plain_dp");
  const candidate_costs costs(t, space, blank, options.keep_budgets);
  const pipelining job = pipelining_of(blank, t.model, options.warmup);
  const group_links links(space, t.cluster.network(), blank, job);
  const warmup_levels warmup(blank, options);
  const std::size_t blocks = t.sequence.size();
  // Q(l, n): partial pipelines of blocks l and later, with the devices of state n taken, for any number of stages.
  std::vector Q(blocks + 1, std::vector(space.states(), std::vector<partial_pipeline>()));
  Q[blocks][0].push_back({});
  plain_plan best;

  /// Returns the pipeline with a stage of blocks [first, l) on a group, and its link, in front; nothing if it breaks a limit.
  const auto prepend = [&](std::size_t first, std::size_t l, std::size_t group, partial_pipeline next) -> std::optional<partial_pipeline> {
    const int in_flight = warmup.in_flight(static_cast<int>(next.stages.size()) + 1);
    const placed_stage stage = costs.place(first, l, group, in_flight);
    if (!stage.exists || next.stages.size() == static_cast<std::size_t>(options.max_stages)) return {};
    if (l < blocks) {
      const exchange_cost link = links.between(group, next.stages.back().group);
      next.tail = law.extend(job, links.time(link, sum_of(t.crossings.crossings(l))), next.tail);
    }
    next.tail = law.extend(job, stage.times(), next.tail);
    next.budget += costs.budget(first, l, group, in_flight, costs.traffic(t.cuts.bytes_in(first, l), t.cuts.bytes_in(l, blocks)));
    next.stages.push_back({first, l, group});
    return next;
  };

  for (std::size_t l = blocks; l > 0; --l) {
    for (std::size_t n = 0; n < space.states(); ++n) {
      for (const partial_pipeline& behind : Q[l][n]) {
        for (const auto& [group, to] : space.moves[n]) {
          for (std::size_t first = 0; first < l; ++first) {
            if (!t.sequence.is_stage(first, l)) continue;  // a piece of one chain (eq. 3) or whole chains (eq. 4)
            auto next = prepend(first, l, group, behind);
            if (!next) continue;
            if (first > 0) {
              Q[first][to].push_back(*std::move(next));
              continue;
            }  // all blocks are placed: the best plan is the answer (eq. 5)
            run_times times = times_by(law, job, next->tail);
            stretch(times, next->budget.stretch_s);
            const double makespan_s = times.makespan.value();
            if (!std::isfinite(makespan_s) || makespan_s > next->budget.limit_s) continue;
            const double score = detail::checked_score(objective, times, next->budget.energy_J + next->budget.idle_W * makespan_s);
            if (score < best.score) best = {score, std::move(next->stages)};
          }
        }
      }
    }
  }
  return best;
}

/// Definition of a space of plans.
struct space_options {
  int max_stages = 16;
  std::vector<device_id> device_order = {};              ///< a permutation of the devices; empty: by id
  bool contiguous_groups = false;                        ///< true if groups are runs of device_order, in the order of the stages
  warmup_rule warmup = warmup_rule::hide_communication;  ///< microbatches in flight under 1F1B in training
  bool all_shares = false;                               ///< true for all shares within memory; false for allocate's only
  int largest_share = std::numeric_limits<int>::max();   ///< largest number of samples of a microbatch on one device
  /// The search ends after so many cuts and stages on groups; large microbatches count more, as each size's memory is asked for.
  long long most_tried = std::numeric_limits<long long>::max();
  memory_savers savers = {};  ///< that every stage uses: recomputes; shards its state, if it has several devices
};

/// A plan, its score by the objective, and its estimate.
struct scored_plan {
  double score = 0;
  hetplan::plan plan;
  hetplan::evaluation evaluation;
};

/// Limits on the size of an enumerated space.
inline constexpr std::size_t max_space_devices = 10;
inline constexpr std::size_t max_space_blocks = 24;

namespace detail {

/// Three nested choices that complete one plan: the cut, the group of each stage, its shares.
template <class Visit>
class plan_enumerator {
 public:
  plan_enumerator(const layer_sequence& s, const planning_graph& model, const cluster& c, const any_cost_model& cost,
                  const any_memory_model& memory, const plan& blank, const space_options& o, Visit& visit)
      : sequence_(s), model_(model), cluster_(c), cost_(cost), memory_(memory), options_(o), visit_(visit), plan_(blank),
        order_(o.device_order) {
    if (order_.empty()) {
      for (const device& d : c.devices()) order_.push_back(d.id);
    }
    check();
    plan_.stages.clear();
    plan_.schedule.warmup.clear();
  }

  long long run() {
    cut(0);
    return visited_;
  }

 private:
  using devices_left = std::uint32_t;  ///< bit i: position i of the device order

  void check() const {
    const auto fail = [](const std::string& what) { throw invalid_input("for_each_plan: " + what); };
    if (cluster_.size() > max_space_devices || sequence_.size() > max_space_blocks) {
      fail(std::to_string(sequence_.size()) + " blocks on " + std::to_string(cluster_.size()) +
           " devices are too many to go through; expected at most " + std::to_string(max_space_blocks) + " blocks and " +
           std::to_string(max_space_devices) + " devices");
    }
    std::vector<device_id> sorted = order_;
    sort_stably(sorted);
    bool permutation = sorted.size() == cluster_.size();
    for (std::size_t i = 0; permutation && i < sorted.size(); ++i) permutation = sorted[i] == device_id(i);
    if (!permutation) {
      fail("device_order has " + std::to_string(order_.size()) + " entries; expected each of the " + std::to_string(cluster_.size()) +
           " devices once");
    }
    if (options_.max_stages < 1) fail("max_stages = " + std::to_string(options_.max_stages) + "; expected an integer >= 1");
    if (plan_.schedule.kind == schedule_kind::explicit_orders) fail("expected 1F1B or GPipe, got explicit orders");
    if (!plan_.pipelines.empty()) fail("expected one pipeline, got " + std::to_string(plan_.pipelines.size()));
    if (plan_.microbatch_size < 1 || plan_.microbatches < 1) {
      fail("microbatch_size " + std::to_string(plan_.microbatch_size) + " and microbatches " + std::to_string(plan_.microbatches) +
           "; expected integers >= 1");
    }
  }

  /// Extends the cut; the stages so far hold blocks [0, first).
  void cut(std::size_t first) {
    if (first == sequence_.size()) {
      if (!plan_.stages.empty()) assign_all();
      return;
    }
    if (plan_.stages.size() == static_cast<std::size_t>(options_.max_stages)) return;
    for (std::size_t last = first + 1; last <= sequence_.size() && !stopped_; ++last) {
      if (!sequence_.is_stage(first, last)) continue;
      plan_.stages.push_back({.name = "s" + std::to_string(plan_.stages.size()), .layers = sequence_.layers_of(first, last)});
      cut(last);
      plan_.stages.pop_back();
    }
  }

  static constexpr long long sizes_per_try = 64;  ///< of a share, asked for their memory, that count as one more try

  bool tried_enough() {
    stopped_ = stopped_ || ++tried_ > options_.most_tried;
    return stopped_;
  }

  /// Completes a cut: stage depths determine the microbatches in flight.
  void assign_all() {
    if (tried_enough()) return;
    in_flight_.clear();
    inputs_.clear();
    const stage_graph g = make_stage_graph(plan_, model_);
    for (std::size_t s = 0; s < g.nodes.size(); ++s) {
      in_flight_.push_back(microbatches_in_flight(plan_, warmup_of(options_.warmup, g.nodes[s].depth)));
      inputs_.push_back(input_bytes(g, stage_id(s)));
    }
    set_warmup(plan_, model_, options_.warmup);
    choose_group(0, 0, (devices_left{1} << order_.size()) - 1);
    plan_.schedule.warmup.clear();
  }

  /// Chooses the group of stage s, after stages [0, s). `next` is the first position open to a contiguous group.
  void choose_group(std::size_t s, std::size_t next, devices_left left) {
    if (s == plan_.stages.size()) {
      ++visited_;
      if constexpr (std::same_as<decltype(visit_(std::as_const(plan_))), control>) {
        stopped_ = visit_(std::as_const(plan_)) == control::stop;
      } else {
        visit_(std::as_const(plan_));
      }
      return;
    }
    const std::size_t n = order_.size();
    if (options_.contiguous_groups) {
      for (std::size_t first = next; first < n && !stopped_; ++first) {
        for (std::size_t last = first + 1; last <= n && !stopped_; ++last) {
          choose_shares(s, last, left, (devices_left{1} << last) - (devices_left{1} << first));
        }
      }
      return;
    }
    for (devices_left group = 1; group < (devices_left{1} << n) && !stopped_; ++group) {
      if ((group & left) == group) choose_shares(s, next, left, group);
    }
  }

  void choose_shares(std::size_t s, std::size_t next, devices_left left, devices_left group) {
    if (tried_enough()) return;
    std::vector<device_id> members;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if ((group >> i) & 1U) members.push_back(order_[i]);
    }
    stage& st = plan_.stages[s];
    const bool training = plan_.workload.mode == mode::training;
    st.recompute = whole_stage_if(training && options_.savers.recompute);
    st.shard = training && options_.savers.shard_state && members.size() > 1 ? sharding::state : sharding::none;
    std::vector<int> caps;
    for (const device_id d : members) caps.push_back(cap(s, d, members.size()));
    tried_ += static_cast<long long>(members.size()) * plan_.microbatch_size / sizes_per_try;
    const auto use = [&](const std::vector<int>& shares) {
      for (std::size_t i = 0; i < members.size(); ++i) plan_.stages[s].devices.push_back(fastest(s, members[i], shares[i]).first);
      choose_group(s + 1, next, left & ~group);
      plan_.stages[s].devices.clear();
    };
    if (options_.all_shares) {
      std::vector<int> shares;
      every_share(caps, plan_.microbatch_size, shares, use);
      return;
    }
    const auto time_s = [&](std::size_t i, int share) { return fastest(s, members[i], share).second; };
    const auto shares = allocate(plan_.microbatch_size, caps, time_s);
    if (shares && std::count(shares->begin(), shares->end(), 0) == 0) use(*shares);
  }

  /// Calls use(shares) for all positive integers within the caps that sum to `samples`; the first share changes slowest.
  template <class Use>
  void every_share(const std::vector<int>& caps, int samples, std::vector<int>& shares, const Use& use) {
    if (shares.size() == caps.size()) {
      if (samples == 0) use(shares);
      return;
    }
    long long others = 0;  // samples that the members behind this one may take
    for (std::size_t i = shares.size() + 1; i < caps.size(); ++i) {
      if (caps[i] < 1) return;
      others += caps[i];
    }
    const int least = static_cast<int>(std::max(1LL, samples - others));
    for (int x = least; x <= std::min(caps[shares.size()], samples) && !stopped_; ++x) {
      shares.push_back(x);
      every_share(caps, samples - x, shares, use);
      shares.pop_back();
    }
  }

  /// Returns the most samples of a microbatch that fit into a device's memory. An oracle, it counts without count_that_fits.
  [[nodiscard]] int cap(std::size_t s, device_id d, std::size_t devices) const {
    const double limit = cluster_[d].memory_for_layers().value() * (1 + limit_tolerance);
    int fits = 0;
    for (int x = 1; x <= std::min(plan_.microbatch_size, options_.largest_share); ++x) {
      const assignment a{d, x};
      stage alone = plan_.stages[s];
      alone.devices.assign(devices, a);
      const share_memory kept = stage_share_memory(memory_, model_, alone, a, plan_.workload, inputs_[s]);
      const double held =
          stage_static_bytes(memory_, model_, alone, a, plan_.workload, plan_.microbatches) + in_flight_[s] * kept.forward + kept.backward;
      if (held <= limit) fits = x;
    }
    return fits;
  }

  /// Returns the tensor-parallel degree with the least time for a microbatch's forward and backward, and that time [s] with all overheads.
  [[nodiscard]] std::pair<assignment, double> fastest(std::size_t s, device_id id, int share) const {
    const device& d = cluster_[id];
    const stage& st = plan_.stages[s];
    const token_passes passes(plan_.workload, model_);
    const bool training = plan_.workload.mode == mode::training;
    const bool returns_tokens = plan_.workload.mode == mode::generation && plan_.workload.tokens > 1 && s > 0;
    const int sends = (s + 1 < plan_.stages.size() || returns_tokens ? 1 : 0) + (training && s > 0 ? 1 : 0);
    const double running = mean_over(passes, [&](const token_pass& pass) { return runs(st, model_, pass) ? 1.0 : 0.0; });
    const double overheads_s = running * ((training ? 2 : 1) * d.overhead.value() + sends * d.send_overhead.value());
    std::pair<assignment, double> best;
    for (const int g : usable_degrees(model_, st.layers, d)) {
      const assignment a{id, share, g};
      double time_s = stage_time_s(cost_, model_, st, a, d, phase::forward, passes);
      if (training) {
        time_s += stage_time_s(cost_, model_, st, a, d, phase::backward_input, passes) +
                  stage_time_s(cost_, model_, st, a, d, phase::backward_weight, passes);
      }
      if (g == 1 || time_s < best.second) best = {a, time_s};
    }
    best.second += overheads_s;
    return best;
  }

  const layer_sequence& sequence_;
  const planning_graph& model_;
  const cluster& cluster_;
  const any_cost_model& cost_;
  const any_memory_model& memory_;
  const space_options& options_;
  Visit& visit_;
  plan plan_;
  std::vector<device_id> order_;
  std::vector<int> in_flight_;  ///< by stage
  std::vector<double> inputs_;  ///< by stage, bytes per sample
  long long visited_ = 0, tried_ = 0;
  bool stopped_ = false;
};

}  // namespace detail

/// Calls visit(plan) for every plan of a space.
///
/// Stages are consecutive blocks that satisfy s.is_stage, at most max_stages of them. Their groups are disjoint, non-empty sets of devices,
/// listed in device order; devices may stay unused. With contiguous_groups, groups are runs of the device order, that of stage i before
/// that of stage i + 1. Shares are those of partition::allocate under the time of a microbatch's forward and backward, or all positive
/// integers (all_shares), within the memory that the stage's microbatches in flight leave. A group with a device that would get no sample
/// is not part of the space. Each device runs at its fastest tensor-parallel degree for its share (ties: the smaller), or at 1 if a layer
/// of the stage is profiled for its kind. prefix_table, and with it the search, applies this rule to the whole model.
///
/// @param blank    common to all plans: workload, microbatch size, microbatches and schedule. Its stages and warm-up are ignored. The
///                 warm-up is set if the rule is not the default.
/// @param visit    (const plan&) -> control, where stop ends the enumeration, or void. The plan changes after the call.
/// @return         number of plans visited. Limits other than memory, and missing routes, are left to the visitor.
/// Complexity      O(cuts x groupings x shares); N devices in P groups have sum_k C(N,k) P! S(k,P) groupings.
/// Throws          invalid_input (more than 24 blocks or 10 devices, device_order is no permutation, explicit orders, several pipelines);
///                 invalid_model (a user's model violates its concept).
/// Determinism     cuts in lexicographic order of their boundaries; groups stage by stage, as binary numbers with the first device as
///                 lowest bit, runs by (first, last); shares in lexicographic order.
/// Source          the space of Dora, section 4.1, eqs. 3-5, extended to groups in any order.
template <class Visit>
  requires std::invocable<Visit&, const plan&>
long long for_each_plan(const layer_sequence& s, const planning_graph& model, const cluster& c, const any_cost_model& cost,
                        const any_memory_model& memory, const plan& blank, const space_options& o, Visit&& visit) {
  return detail::plan_enumerator<std::remove_reference_t<Visit>>(s, model, c, cost, memory, blank, o, visit).run();
}

/// Returns the best plans of a space, by exhaustion.
///
/// @param keep      maximum number of plans, best first. Plans that break a limit by their estimate or need a missing route are left out.
/// @return          fewer plans than `keep`, or none, if the space has no more.
/// Complexity       one estimate per plan of the space.
/// Throws           as for_each_plan; invalid_input (keep < 1); invalid_model (the objective's score is NaN).
/// Determinism      ties: fewer stages, then the order of for_each_plan.
/// Source           reference for the dynamic program of Dora, section 4.1.
template <latency_estimator Estimator>
[[nodiscard]] std::vector<scored_plan> brute_force(const layer_sequence& s, const planning_graph& model, const cluster& c,
                                                   const any_cost_model& cost, const any_memory_model& memory,
                                                   const any_energy_model& energy, const plan& blank, const space_options& o,
                                                   const any_objective& objective, const Estimator& estimator, int keep) {
  if (keep < 1) throw invalid_input("brute_force: keep = " + std::to_string(keep) + "; expected an integer >= 1");
  std::vector<scored_plan> best;
  for_each_plan(s, model, c, cost, memory, blank, o, [&](const plan& p) {
    const evaluation e = estimate(p, model, c, cost, memory, energy, estimator);
    if (!is_finite(e.latency) || find_broken_limit(e, c)) return;
    const double score = hetplan::score(objective, e);
    if (std::isnan(score)) {
      throw invalid_model("objective: score(a plan of latency " + to_text(e.latency.value()) + " s) = nan; expected a number");
    }
    const auto key = [](double x, const plan& q) { return std::pair(x, q.stages.size()); };
    const auto at = std::find_if(best.begin(), best.end(), [&](const scored_plan& b) { return key(score, p) < key(b.score, b.plan); });
    if (at == best.end() && best.size() == static_cast<std::size_t>(keep)) return;
    best.insert(at, {score, p, e});
    if (best.size() > static_cast<std::size_t>(keep)) best.pop_back();
  });
  return best;
}

}  // namespace hetplan::partition
