// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What every planner is given: the nouns of the problem and the user's models.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cluster/network_sharing.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/cost/energy_model.hpp>
#include <hetplan/cost/memory_model.hpp>
#include <hetplan/cost/prefix_table.hpp>
#include <hetplan/cost/work.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/solve/lp.hpp>

namespace hetplan {

// What is to be done: mode, batch, and what "good" means.

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

/// The user's models of a judgement beside the cost model; each defaults to what files mean.
struct judge_models {
  any_memory_model memory = {};
  any_energy_model energy = {};
  any_network_policy network = {};   ///< none: the policy that the plan names
  any_network_sharing sharing = {};  ///< in place of a policy; with one it is invalid_input
};

/// Model and cluster must outlive it, and temporaries, which would not, do not compile; the models are copied.
///
///     const planning_problem problem{model, home, roofline{}, job{.batch = 16}};
///
/// Throws  invalid_input (the job's mode cannot run the model: see check_mode; fewer than 0 steps).
struct planning_problem {
  const planning_graph& model;
  const hetplan::cluster& cluster;
  any_cost_model cost;  ///< asked once: see remembered_cost
  hetplan::job job;
  judge_models models;
  any_lp_solver lp;
  long long steps;          ///< that a planner may take, >= 0; see step_budget
  bool with_bounds = true;  ///< are plans of an answer given bounds over all plans? They cost as much as dozens of judgements

  planning_problem(const planning_graph& m, const hetplan::cluster& c, any_cost_model times, hetplan::job wanted = {},
                   judge_models others = {}, any_lp_solver solver = {}, long long most_steps = standard_steps)
      : model(m), cluster(c), cost(remembered_cost(std::move(times), m, c)), job(std::move(wanted)), models(std::move(others)),
        lp(std::move(solver)), steps(most_steps) {
    check_mode(m, job.workload.mode);
    if (steps < 0) throw invalid_input("planning_problem: steps = " + std::to_string(steps) + "; expected an integer >= 0");
  }
  // A temporary is gone at the end of the line.
  planning_problem(const planning_graph&& the_model_must_outlive_the_problem, const hetplan::cluster&, any_cost_model, hetplan::job = {},
                   judge_models = {}, any_lp_solver = {}, long long = standard_steps) = delete;
  planning_problem(const planning_graph&, const hetplan::cluster&& the_cluster_must_outlive_the_problem, any_cost_model, hetplan::job = {},
                   judge_models = {}, any_lp_solver = {}, long long = standard_steps) = delete;
  planning_problem(const planning_graph&& the_model_must_outlive_the_problem, const hetplan::cluster&& the_cluster_must_outlive_the_problem,
                   any_cost_model, hetplan::job = {}, judge_models = {}, any_lp_solver = {}, long long = standard_steps) = delete;
};

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/problem/planning_problem.ipp>
#endif
