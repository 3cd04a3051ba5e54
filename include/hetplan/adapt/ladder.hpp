// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The reaction ladder for work that should not stop: as little as holds the quality of experience, and no more.

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/adapt/fixed_policies.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::adapt {

// Pipeline replay: a plan for those who are left that moves the running plan's partition points and nothing else.

/// What counts as a layer's work when it is shared out.
enum class work_measure {
  flop,    ///< FLOP over a stage's capacity: needs no profile
  seconds  ///< the cost model's, layer by layer
};

struct replay_options {
  std::vector<work_measure> measures = {work_measure::flop, work_measure::seconds};
  /// How many times the transfer of a boundary, there and back at peak bandwidth, counts as a step beside the stages. 0 is
  /// proportion alone, which may cut through the widest tensors of a model; more than 1 stands for transfers that share
  /// their way. Each measure with each weight gives a cut, and the simulator chooses.
  std::vector<double> transfer_weights = {0, 0.5, 1, 2};
};

/// A plan for the devices that are left: the running plan's stages in their order, each with the devices of it that are
/// left, and other partition points. A stage without devices vanishes; its layers go to its neighbours.
///
/// All layers, in the order of the running plan's stages (a graph of stages: in its topological order, in which every cut
/// is sound), are shared out in proportion to the capacity of the stages: the largest FLOP / capacity is smallest among
/// all cuts that keep the memory. Capacity of a device: 1 / seconds of the whole model on one microbatch, of a stage the
/// sum. Cuts by seconds instead of FLOP compete (`measures`), and cuts that count the transfers between stages as steps, too
/// (`transfer_weights`). The microbatch is shared out inside each stage by partition::allocate, within memory. Warm-up
/// 2 depth - 1; where no cut keeps the memory with that, depth, then 1, raised again as far as the memory of the cut allows.
/// Where not every stage can have a layer, or stages that became neighbours have no route between them, stages are left out.
/// The simulator chooses: the shortest response among those
/// that keep the problem's limits; ties: the first measure, then the first weight.
///
/// Stages take the plan's microbatch size; transfer rules and a lost parameter server are given up. A plan that lists its orders gets new
/// ones: those in which its devices run it under `eager` (dispatch.hpp) within their memory, every backward in two parts where one was.
/// So it ends, with the tightest memory that is feasible, where the stages of a device form a chain. Stages on one device share its speed
/// and its memory evenly when the cut is made.
///
/// @param problem  as it is now: the cluster still has all devices, ids unchanged; speeds are what its cost model says.
/// @param lost     devices of the cluster that the plan must not use; empty: balances what runs.
/// @return         one plan (no bound: that takes longer than the plan), or none found: what memory,
///                 limit or route is missing, nobody left, several pipelines, orders of generation, stages that save memory, grids, cuts.
/// Complexity      O(layers x devices) questions to the cost model, O(S L^2) steps for S stages of L layers, and a
///                 simulation for each measure and weight, for each warm-up rule until one fits.
/// Throws          invalid_input (an unknown device, a running plan that is invalid, a negative weight, no weight or no measure).
/// Determinism     yes, but for `elapsed`.
/// Source          Asteroid, section 3.4, layer-wise lightweight pipeline re-planning. Deviations: the partition points are
///                 the exact optimum of its criterion, within memory (the paper speaks of "a minor adjustment"); other
///                 cuts compete, and the simulator chooses. FLOP alone with a weight of 0 alone is the paper's criterion.
[[nodiscard]] plan_result lightweight_replay(const planning_problem& problem, const plan& running, std::span<const device_id> lost,
                                             const replay_options& options = {});

// Two answers to the loss of a device, and to nothing else: move partition points, or gather, plan anew and redistribute.

/// The devices of a cluster that do not work.
[[nodiscard]] std::vector<device_id> lost_devices(const cluster& c, const conditions& now);

/// lightweight_replay, worked out once for the same plan and losses: while nothing can run, all that happens asks again.
class remembered_replay {
 public:
  [[nodiscard]] const plan_result& operator()(const planning_problem& problem, const plan& running, std::vector<device_id> lost);

 private:
  std::optional<plan> running_;
  std::vector<device_id> lost_;
  plan_result result_;
};

/// Lightweight: the running plan without the lost devices, adjacent stages migrate layers at once. Shares are those of
/// devices at full speed.
///
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

/// Heavy: the model comes together at the coordinator, the planner runs, weights go out again.
///
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
  double tolerance = 0.1;  ///< no latency wanted: so much worse than it could be is good enough; also what a switch must gain
  double spare = 0.1;      ///< a plan is chosen with so much of the wanted latency to spare, where there is one
  seconds patience{10};    ///< weights move only for a change that has lasted so long
  seconds dwell{10};       ///< after weights have moved, none move again for so long while a plan runs
  seconds payback{300};    ///< a switch must have paid for its pause by then, or sooner where changes come more often
};

/// Throws invalid_input naming the option, its value and what was expected.
void check_ladder_options(const ladder_options& o);

/// Climbs only as far as it must: the running plan's transfers in another order; another plan that is known; a new plan. A rung is
/// taken if it holds what is wanted; if none does, the best of them is. A change within 10 % never climbs higher than the first.
///
/// What is wanted is the job's latency. Where it names none, a plan holds while it stays within `tolerance` of what it did
/// when it was adopted and of the best plan known for the moment.
///
/// It does not flap: changes are measured against the conditions of the last answer, a plan that holds is kept though another
/// may be better, and one that does not must be beaten by more than the tolerance on average over the time to pay back, in
/// which the old plan goes on while weights come and nothing runs while state moves: `payback`, or as long as conditions have lasted
/// so far, if that is less: (payback + time that has passed) / (1 + large changes). Weights move only for what lasts, and then rest for a
/// while; a plan on its way is called back when it is not needed any more. Nothing of this binds when a device of the running
/// plan is gone: then the plan that gets most done in that time wins, of those known, a lightweight replay and a new one.
///
/// Throws  invalid_input (an option out of range).
/// Source  Dora, sections 4.3 and 5. Deviations: known plans before a search; the paper says neither when a plan is good
///         enough nor what keeps it from flapping. Replay: Asteroid, section 3.4.
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
  /// A candidate as it would do now; `amortised`: on average over the time to pay back, the way to it included.
  struct choice {
    std::size_t plan;
    rung reached;
    seconds thinking;
    iteration now;
    serving amortised;
  };

  [[nodiscard]] std::vector<candidate> known_ones() const;
  /// Known plans, a replay where a device is gone, and what the planner says.
  [[nodiscard]] std::vector<candidate> everything(const situation& s);
  /// The planner's; with something to spare, where what is wanted is in reach.
  [[nodiscard]] const plan_result& answer(const situation& s);
  [[nodiscard]] choice judged(const situation& s, const goal& wanted, std::size_t plan, rung reached, seconds thinking);
  [[nodiscard]] seconds time_to_pay_back(seconds now) const;
  /// Nothing runs for `pause_s`, after the old plan went on for `beside_s`, slower, while weights came.
  struct switch_time {
    double pause_s = 0, beside_s = 0;
    iteration meanwhile = {};  ///< of the old plan
  };
  /// Nothing where weights are missing. Weights that do not change come in the background, as far as there is room for them
  /// beside the running plan; the two share the network.
  [[nodiscard]] std::optional<switch_time> time_of_switch(const situation& s, std::size_t plan);
  [[nodiscard]] std::optional<choice> best_of(const situation& s, const goal& wanted, const std::vector<candidate>& all);
  /// Those that keep the latency first, and of these those that also would if things got a little worse.
  [[nodiscard]] int rank(const goal& wanted, const choice& c) const;
  [[nodiscard]] bool beats(const choice& a, const choice& b) const;
  [[nodiscard]] bool holds(const situation& s, const goal& wanted, const choice& c);

  /// Where no latency is wanted, a plan may hold only because the running one was adopted in worse times. If weights have to
  /// move anyway, then to the best that there is.
  [[nodiscard]] bool is_worth_moving_for(const goal& wanted, const choice& c) const;

  [[nodiscard]] reaction first(const choice& c);
  [[nodiscard]] reaction adopt(const situation& s, const choice& c, switching how, const char* why);

  const planning_problem* problem_;
  ladder_options options_;
  known_plans known_;
  plan_search plan_;
  remembered_replay replay_;
  change_classifier changes_;
  std::size_t running_ = 0;           ///< where it can run
  double reference_ = 0;              ///< the response when the running plan was adopted
  double best_reference_ = 0;         ///< the least such response so far
  std::optional<seconds> moved_;      ///< when weights moved last
  std::optional<seconds> postponed_;  ///< ask again then
  seconds lasts_since_;               ///< the change that is being answered
  long long changes_answered_ = 0;    ///< large ones, since the start
};

}  // namespace hetplan::adapt

#ifndef HETPLAN_SEPARATE
#include <hetplan/adapt/ladder.ipp>
#endif
