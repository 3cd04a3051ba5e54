// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The reaction ladder for continuous jobs, which changes only as much as the target requires, and policies for lost devices.

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/adapt/fixed_policies.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::adapt {

/// The measure of a layer's work in a partition.
enum class work_measure {
  flop,    ///< FLOP over the stage's capacity: needs no profile
  seconds  ///< seconds of the cost model, layer by layer
};

struct replay_options {
  std::vector<work_measure> measures = {work_measure::flop, work_measure::seconds};
  /// Weights of a boundary's transfers, both ways at peak bandwidth, as a step beside the stages. 0 balances the stages alone,
  /// which may cut a model's widest tensors; more than 1 stands for transfers that share a route. Each measure with each weight
  /// gives a cut, and the simulator selects.
  std::vector<double> transfer_weights = {0, 0.5, 1, 2};
};

/// Returns a plan for the remaining devices: the running plan's stages in order, each with its remaining devices, and new partition
/// points. The layers of a stage without devices go to its neighbours.
///
/// All layers, in the order of the running plan's stages (a graph of stages: in its topological order, in which every cut is sound), are
/// divided in proportion to the stages' capacities: the largest FLOP / capacity is minimal among all cuts that fit the memory. The
/// capacity of a device is 1 / seconds of the whole model on one microbatch; that of a stage is the sum. Cuts by seconds (`measures`) and
/// cuts with transfers as steps (`transfer_weights`) compete. partition::allocate divides the microbatch inside each stage, within
/// memory. The warm-up is 2 depth - 1; if no cut fits the memory with that, depth, then 1, raised again as far as the memory of the cut
/// allows. Stages are left out if not every stage can have a layer, or if new neighbours have no route between them. The simulator
/// selects the shortest response within the problem's limits; ties: the first measure, then the first weight.
///
/// Stages use the plan's microbatch size, in place of cuts that of the job nearest to the mean pass; transfer rules and a lost parameter
/// server are dropped. Explicit orders are replaced by those
/// of `eager` (dispatch.hpp) within the devices' memory, with every backward in two parts if one was. Such a plan does not deadlock, with
/// the tightest feasible memory, if the stages of a device form a chain. Stages on one device share its speed and memory evenly.
///
/// @param problem  the current problem: the cluster has all devices with unchanged ids, the cost model gives current speeds.
/// @param lost     devices that the plan must not use; empty: rebalances the running plan.
/// @return         one plan with its prediction (no bound, which takes longer than the plan), or none found: missing memory, limit or
///                 route, no device left, several pipelines, orders of generation, stages that save memory, grids, cuts of several devices.
/// Complexity      O(layers x devices) calls of the cost model, O(S L^2) steps for S stages of L layers, and a simulation per measure and
///                 weight, for each warm-up rule until one fits.
/// Throws          invalid_input (an unknown device, an invalid running plan, a negative weight, no weight or no measure).
/// Determinism     yes, except `elapsed`.
/// Source          Asteroid, section 3.4, layer-wise lightweight pipeline re-planning. Deviations: the partition points are the exact
///                 optimum of the paper's criterion, within memory (the paper speaks of "a minor adjustment"); other cuts compete, and
///                 the simulator selects. FLOP alone with a weight of 0 alone is the paper's criterion.
[[nodiscard]] plan_result lightweight_replay(const planning_problem& problem, const plan& running, std::span<const device_id> lost,
                                             const replay_options& options = {});

/// Returns the devices of a cluster that do not work.
[[nodiscard]] std::vector<device_id> lost_devices(const cluster& c, const conditions& now);

/// Remembers the last lightweight_replay: while nothing can run, every event asks for the same plan and losses.
class remembered_replay {
 public:
  [[nodiscard]] const plan_result& operator()(const planning_problem& problem, const plan& running, std::vector<device_id> lost);

 private:
  std::optional<plan> running_;
  std::vector<device_id> lost_;
  plan_result result_;
};

/// Lightweight replay: the running plan without the lost devices; adjacent stages move layers at once, at full-speed shares.
/// Source  Asteroid, section 3.4.
class replay_policy {
 public:
  replay_policy(const planning_problem& problem, plan first, thinking_times thinking = {});
  replay_policy(const planning_problem&& the_problem_must_outlive_it, plan, thinking_times = {}) = delete;

  [[nodiscard]] reaction react(const situation& s);

 private:
  const planning_problem* problem_;
  plan first_;
  thinking_times thinking_;
  remembered_replay replay_;
};

/// Heavy rescheduling: the coordinator gathers the model, the planner runs, and the weights are redistributed.
/// Source  Asteroid, section 3.4, the baseline of Figs 16 and 17.
class rescheduling_policy {
 public:
  rescheduling_policy(const planning_problem& problem, plan first, any_planner planner, policy_options options = {});
  rescheduling_policy(const planning_problem&& the_problem_must_outlive_it, plan, any_planner, policy_options = {}) = delete;

  [[nodiscard]] reaction react(const situation& s);

 private:
  const planning_problem* problem_;
  plan first_;
  policy_options options_;
  known_plans known_;
  plan_search plan_;
};

struct ladder_options {
  policy_options common = {};
  double tolerance = 0.1;  ///< relative loss that is accepted if no latency is wanted; also the least gain of a switch
  double spare = 0.1;      ///< share of the wanted latency that a chosen plan keeps as slack, if one can
  seconds patience{10};    ///< weights move only for a change that has lasted so long
  seconds dwell{10};       ///< time without further moves of weights after one, while a plan runs
  seconds payback{300};    ///< time in which a switch must pay for its pause; shorter if changes are frequent
};

/// Throws invalid_input that names the option, its value and what is expected.
void check_ladder_options(const ladder_options& o);

/// Climbs only as far as necessary: reordered transfers of the running plan, another known plan, a new plan. A rung is taken if it holds
/// the target; if none does, the best of them is. A change within 10 % never climbs beyond the first.
///
/// The target is the job's latency. If the job names none, a plan holds while it stays within `tolerance` of its performance at adoption
/// and of the best known plan for the current conditions.
///
/// The ladder does not flap: changes are measured against the conditions of the last answer, and a plan that holds is kept even if
/// another may be better. A plan that does not hold must be beaten by more than the tolerance on average over the payback time. In that
/// time the old plan runs while weights arrive, and nothing runs while state moves. The payback time is `payback`, or the mean duration
/// of conditions so far if that is less: (payback + elapsed time) / (1 + large changes). Weights move only for lasting changes and then
/// rest for a while. A plan on its way is cancelled when it is no longer needed. None of this applies when a device of the running plan
/// is gone: then the plan with the most work in the payback time wins, among known plans, a lightweight replay and a new plan.
///
/// Throws  invalid_input (an option out of range).
/// Source  Dora, sections 4.3 and 5. Deviations: known plans before a search; the paper defines neither a good enough plan nor a rule
///         against flapping. Replay: Asteroid, section 3.4.
class ladder {
 public:
  ladder(const planning_problem& problem, any_planner planner, ladder_options options = {});
  ladder(const planning_problem&& the_problem_must_outlive_it, any_planner, ladder_options = {}) = delete;

  [[nodiscard]] reaction react(const situation& s);

 private:
  struct candidate {
    std::size_t plan;
    rung reached;
    seconds thinking;
  };
  /// A candidate under current conditions. `amortised`: its mean over the payback time, the switch included.
  struct choice {
    std::size_t plan;
    rung reached;
    seconds thinking;
    iteration now;
    serving amortised;
  };

  [[nodiscard]] std::vector<candidate> known_ones() const;
  /// Returns the known plans, a replay if a device is gone, and the planner's plans.
  [[nodiscard]] std::vector<candidate> everything(const situation& s);
  /// Returns the planner's result, with slack if the wanted latency is within reach.
  [[nodiscard]] const plan_result& answer(const situation& s);
  [[nodiscard]] choice judged(const situation& s, const goal& wanted, std::size_t plan, rung reached, seconds thinking);
  [[nodiscard]] seconds time_to_pay_back(seconds now) const;
  /// The duration of a switch: `beside_s` of the old plan, slower, while weights arrive; then `pause_s` without any plan.
  struct switch_time {
    double pause_s = 0, beside_s = 0;
    iteration meanwhile = {};  ///< iteration of the old plan beside moving weights
  };
  /// Returns the duration of a switch; empty if weights are missing. Immutable weights move in the background if they fit beside
  /// the running plan, with which they share the network.
  [[nodiscard]] std::optional<switch_time> time_of_switch(const situation& s, std::size_t plan);
  [[nodiscard]] std::optional<choice> best_of(const situation& s, const goal& wanted, const std::vector<candidate>& all);
  /// Returns 0 if the latency is kept with slack, 1 if it is kept, otherwise 2.
  [[nodiscard]] int rank(const goal& wanted, const choice& c) const;
  [[nodiscard]] bool beats(const choice& a, const choice& b) const;
  [[nodiscard]] bool holds(const situation& s, const goal& wanted, const choice& c);

  [[nodiscard]] reaction adopt(const situation& s, const choice& c, switching how, const char* why);

  const planning_problem* problem_;
  ladder_options options_;
  known_plans known_;
  plan_search plan_;
  remembered_replay replay_;
  change_classifier changes_;
  std::size_t running_ = 0;           ///< index of the running plan; valid if it can run
  double reference_ = 0;              ///< response at the adoption of the running plan
  double best_reference_ = 0;         ///< least such response so far
  std::optional<seconds> moved_;      ///< time of the last move of weights
  std::optional<seconds> postponed_;  ///< time of the next call
  seconds lasts_since_;               ///< time of the change that is being answered
  long long changes_answered_ = 0;    ///< large changes since the start
};

}  // namespace hetplan::adapt

#ifndef HETPLAN_SEPARATE
#include <hetplan/adapt/ladder.ipp>
#endif
