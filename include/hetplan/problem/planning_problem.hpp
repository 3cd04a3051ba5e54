// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Planning problem, the input of every planner: model, cluster, job and the user's models.

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
#include <hetplan/cost/token_passes.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/solve/lp.hpp>

namespace hetplan {

enum class schedule_kind { one_f_one_b, gpipe, explicit_orders };

[[nodiscard]] constexpr std::string_view to_string(schedule_kind k) {
  return k == schedule_kind::one_f_one_b ? "1f1b" : k == schedule_kind::gpipe ? "gpipe" : "explicit";
}

/// Rules that make explicit orders of a training plan from its times, memory and network (schedule/order_plan.hpp).
enum class order_rule {
  compact,      ///< dispatching: forwards, then gradients of inputs, then of weights (DeepCEE)
  eager,        ///< dispatching: gradients of inputs, then forwards, then gradients of weights
  original,     ///< rounds of the zero-bubble scheduler
  automatic,    ///< best order that a search finds
  interleaved,  ///< 1F1B on devices with several stages, taken in turn
  zb_v,         ///< V-shaped stages: the memory of 1F1B, and no bubbles if stages are equal
  v_half,       ///< V-shaped stages: half the memory of 1F1B
  v_min         ///< V-shaped stages: a third of the memory of 1F1B
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

enum class objective_kind { latency, throughput, ttft, time_between_tokens, energy, qoe };
inline constexpr std::array objective_kinds{objective_kind::latency, objective_kind::throughput,
                                            objective_kind::ttft,    objective_kind::time_between_tokens,
                                            objective_kind::energy,  objective_kind::qoe};

[[nodiscard]] constexpr std::string_view to_string(objective_kind k) {
  switch (k) {
    case objective_kind::latency: return "latency";
    case objective_kind::throughput: return "throughput";
    case objective_kind::ttft: return "ttft";
    case objective_kind::time_between_tokens: return "time_between_tokens";
    case objective_kind::energy: return "energy";
    case objective_kind::qoe: break;
  }
  return "qoe";
}

/// Largest expansion of a plan that is simulated, in tasks and transfers: 1 GB at `expansion_bytes` each.
inline constexpr double max_expansion = 4e6;
/// Returns the tasks of a stage on one device per microbatch, at least; one more if W is split off.
[[nodiscard]] inline double tasks_per_microbatch(const workload& w) { return w.mode == mode::training ? 2 : pass_count(w, 1); }

/// Quality of experience: times to keep, and the price of each second beyond them. Under objective qoe a second costs lambda; under any
/// other, plans that keep the times (`latency` aside) come before those that do not.
struct qoe_target {
  std::optional<seconds> latency = {};              ///< of a response: T, or the time between tokens in generation
  std::optional<seconds> makespan = {};             ///< T
  std::optional<seconds> ttft = {};                 ///< generation
  std::optional<seconds> time_between_tokens = {};  ///< generation of more than one token
  double lambda_J_per_s = 1000;
  std::optional<seconds> deadline = {};  ///< of the whole job
  std::optional<long long> iterations = {};

  [[nodiscard]] bool has_times() const { return latency || makespan || ttft || time_between_tokens; }

  friend bool operator==(const qoe_target&, const qoe_target&) = default;
};

/// Ways to save memory at the cost of time or traffic that planners may use: the fields of a stage of the same names.
struct memory_savers {
  bool recompute = false;
  bool shard_state = false;

  friend bool operator==(const memory_savers&, const memory_savers&) = default;
};

/// A layer that stays on a device: it is in a stage whose only device is that one, in every pipeline.
struct pin {
  std::string layer;
  std::string device;

  friend bool operator==(const pin&, const pin&) = default;
};

/// Job: the workload, the samples of one iteration (or requests in flight), and the criteria of choice.
struct job {
  hetplan::workload workload = {};
  int batch = 32;
  std::vector<int> microbatch_sizes = {};     ///< empty: see candidate_microbatch_sizes
  hetplan::memory_savers memory_savers = {};  ///< dora uses those that help; other planners none
  bool split_tensors = false;                 ///< true: dora may give plans grids of devices that share tensors
  schedule_kind schedule = schedule_kind::one_f_one_b;
  std::vector<order_rule> orders = {};           ///< training: rules by which planners that have a choice may order plans
  bool only_orders = false;                      ///< true: plans must follow one of `orders`; the order of `schedule` is excluded
  std::optional<objective_kind> objective = {};  ///< empty: qoe if it has times, else latency
  qoe_target qoe = {};
  std::vector<pin> pins = {};  ///< at most one for each layer; a planner that cannot keep them says so

  [[nodiscard]] objective_kind effective_objective() const;

  /// Returns the microbatch sizes to try, ascending. Skipped are sizes that do not divide the batch, and sizes at which one device
  /// with one stage has too many tasks to simulate. Default: the divisors of the batch up to 16, and of the larger ones the powers
  /// of two and the batch divided by such, itself included. Throws invalid_input if none is left.
  [[nodiscard]] std::vector<int> candidate_microbatch_sizes() const;
  /// Returns the most samples of a microbatch that one device takes.
  [[nodiscard]] int largest_share() const { return candidate_microbatch_sizes().back(); }

  friend bool operator==(const job&, const job&) = default;
};

/// Throws invalid_input that names the field, its value and the values expected.
void check_job(const job& j);

/// The user's models for judging plans, besides the cost model. Defaults: the models of files.
struct judge_models {
  any_memory_model memory = {};
  any_energy_model energy = {};
  any_network_policy network = {};   ///< empty: the policy that the plan names
  any_network_sharing sharing = {};  ///< used in place of a policy; both together are invalid_input
};

/// Pins of a job as ids: by layer, the device that it stays on; invalid where it may be anywhere. Empty without pins.
/// @param who  begins the message, e.g. the job's file.
/// Throws      invalid_input `WHO: /pins/LAYER: expected X, got Y` (a layer or device that is not there, a layer that is pinned twice).
[[nodiscard]] std::vector<device_id> pinned_devices(const job& j, const planning_graph& model, const cluster& c,
                                                    const std::string& who = "job");

/// Planning problem. Model and cluster must outlive it, so temporaries do not compile; the models are copied.
///
///     const planning_problem problem{model, home, roofline{}, job{.batch = 16}};
///
/// Throws  invalid_input (a job in a mode that cannot run the model: see check_mode; pins: see pinned_devices; steps < 0); invalid_model
/// (see check_tokens, check_tiers).
struct planning_problem {
  const planning_graph& model;
  const hetplan::cluster& cluster;
  any_cost_model cost;  ///< cached: see remembered_cost
  hetplan::job job;
  judge_models models;
  any_lp_solver lp;
  long long steps;                ///< limit for a planner, >= 0; see step_budget
  std::vector<device_id> pinned;  ///< pinned_devices of the job
  bool with_bounds = true;        ///< true: resulting plans get bounds over all plans, at the cost of dozens of judgements

  planning_problem(const planning_graph& m, const hetplan::cluster& c, any_cost_model times, hetplan::job wanted = {},
                   judge_models others = {}, any_lp_solver solver = {}, long long most_steps = standard_steps)
      : model(m), cluster(c), cost(remembered_cost(std::move(times), m, c)), job(std::move(wanted)), models(std::move(others)),
        lp(std::move(solver)), steps(most_steps), pinned(pinned_devices(job, m, c)) {
    check_mode(m, job.workload);
    const token_passes passes(job.workload, m);
    check_tokens(cost, m, c.devices(), passes);
    check_tiers(cost, m, c.devices(), passes);
    if (steps < 0) throw invalid_input("planning_problem: steps = " + std::to_string(steps) + "; expected an integer >= 0");
  }
  // Temporaries would not outlive the problem.
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
