// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What is to be done: mode, batch, and what "good" means.

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include <hetplan/cost/work.hpp>

namespace hetplan {

enum class schedule_kind { one_f_one_b, gpipe, explicit_orders };

[[nodiscard]] constexpr std::string_view to_string(schedule_kind k) {
  return k == schedule_kind::one_f_one_b ? "1f1b" : k == schedule_kind::gpipe ? "gpipe" : "explicit";
}

/// Schedules that make explicit orders of a plan for training, from its times, memory and network (schedule/order_plan.hpp).
enum class order_rule {
  compact,      ///< dispatched: forwards, then gradients of inputs, then of weights (DeepCEE)
  eager,        ///< dispatched: gradients of inputs, then forwards, then gradients of weights
  original,     ///< the rounds of zero bubble's scheduler
  automatic,    ///< the best that a search finds
  interleaved,  ///< 1F1B of devices with several stages in turn
  zb_v,         ///< V shapes: the memory of 1F1B, and with equal stages no bubbles
  v_half,       ///< half of that memory
  v_min         ///< a third
};
inline constexpr std::array order_rules{order_rule::compact,     order_rule::eager, order_rule::original, order_rule::automatic,
                                        order_rule::interleaved, order_rule::zb_v,  order_rule::v_half,   order_rule::v_min};

[[nodiscard]] constexpr std::string_view to_string(order_rule r) {
  switch (r) {
    case order_rule::compact: return "compact";
    case order_rule::eager: return "eager";
    case order_rule::original: return "original";
    case order_rule::automatic: return "automatic";
    case order_rule::interleaved: return "interleaved";
    case order_rule::zb_v: return "zb-v";
    case order_rule::v_half: return "v-half";
    case order_rule::v_min: break;
  }
  return "v-min";
}

enum class objective_kind { latency, throughput, energy, qoe };

[[nodiscard]] constexpr std::string_view to_string(objective_kind k) {
  return k == objective_kind::latency      ? "latency"
         : k == objective_kind::throughput ? "throughput"
         : k == objective_kind::energy     ? "energy"
                                           : "qoe";
}

/// The largest expansion of a plan that is taken on, in tasks and transfers: 1 GB at `expansion_bytes` each.
inline constexpr double max_expansion = 4e6;
/// Tasks of a stage on one device, by microbatch; where W is split off, one more.
[[nodiscard]] inline double tasks_per_microbatch(const workload& w) { return w.mode == mode::training ? 2 : w.steps(); }

/// Quality of experience: a latency that should be kept, and what a second beyond it is worth.
struct qoe_target {
  std::optional<seconds> latency = {};
  double lambda_J_per_s = 1000;
  std::optional<seconds> deadline = {};  ///< of the whole job
  std::optional<long long> iterations = {};

  friend bool operator==(const qoe_target&, const qoe_target&) = default;
};

/// What planners may trade time or traffic for memory with: fields of a stage of the same names.
struct memory_savers {
  bool recompute = false;
  bool shard_state = false;

  friend bool operator==(const memory_savers&, const memory_savers&) = default;
};

/// A job: the workload, the samples of one iteration (or requests in flight), and how to choose.
struct job {
  hetplan::workload workload = {};
  int batch = 32;
  std::vector<int> microbatch_sizes = {};     ///< empty: see candidate_microbatch_sizes
  hetplan::memory_savers memory_savers = {};  ///< no planner makes use of them yet
  bool split_tensors = false;                 ///< may dora give plans grids of devices that share tensors?
  schedule_kind schedule = schedule_kind::one_f_one_b;
  std::vector<order_rule> orders = {};           ///< training: planners that choose may give their plans the orders of one of these
  bool only_orders = false;                      ///< and must: plans in the order of `schedule` are no answer
  std::optional<objective_kind> objective = {};  ///< empty: qoe if qoe.latency is given, else latency
  qoe_target qoe = {};

  [[nodiscard]] objective_kind effective_objective() const;

  /// Microbatch sizes to try, ascending; sizes that do not divide the batch are skipped, and those of which one device with one
  /// stage makes more tasks than a simulation takes on. Where none are given: all divisors of the batch up to 16, beyond them those
  /// that are a power of two or the batch divided by one. So the batch is among them.
  ///
  /// Throws invalid_input if none is left.
  [[nodiscard]] std::vector<int> candidate_microbatch_sizes() const;
  /// Samples of a microbatch that one device takes at most.
  [[nodiscard]] int largest_share() const { return candidate_microbatch_sizes().back(); }

  friend bool operator==(const job&, const job&) = default;
};

/// Throws invalid_input naming the field, its value and what was expected.
void check_job(const job& j);

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/problem/job.ipp>
#endif
