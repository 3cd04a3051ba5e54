// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The door for those who decide what a change calls for.

#include <algorithm>
#include <concepts>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/adapt/holdings.hpp>
#include <hetplan/adapt/timeline.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::adapt {

// The noun that a run over a timeline makes: what happened, stretch by stretch, and what it came to.

enum class activity {
  running,    ///< whole iterations, all alike
  cut_off,    ///< an iteration that never ended: a device left, or the timeline did. Its work is lost
  migrating,  ///< nothing runs while weights move
  stalled,    ///< no plan can run, or nobody knows yet that one cannot
  idle        ///< on purpose: there is time until the deadline
};
[[nodiscard]] constexpr std::string_view to_string(activity a) {
  return a == activity::running     ? "running"
         : a == activity::cut_off   ? "cut off"
         : a == activity::migrating ? "migrating"
         : a == activity::stalled   ? "stalled"
                                    : "idle";
}

/// A stretch of time in which one thing happened. Stretches follow one another without gaps.
struct stretch {
  activity what = activity::running;
  double start_s = 0;
  double end_s = 0;
  std::size_t plan = 0;      ///< index into history::plans
  long long iterations = 0;  ///< that ended in it, each (end_s - start_s) / iterations long
  double response_s = 0;     ///< of each: T, or the time between tokens
  double energy_J = 0;
  bool violates = false;  ///< each response is above what was wanted
  friend bool operator==(const stretch&, const stretch&) = default;
};

/// How far up the ladder a reaction went.
enum class rung { none, network, known_plan, replanned };
[[nodiscard]] constexpr std::string_view to_string(rung r) {
  return r == rung::none ? "nothing" : r == rung::network ? "network" : r == rung::known_plan ? "known plan" : "re-planned";
}

/// A plan was adopted: when, why, and what that took.
struct adoption {
  double caused_s = 0;           ///< the event that it answers
  double decided_s = 0;          ///< the policy has decided
  double done_s = 0;             ///< the plan runs
  std::size_t from = 0, to = 0;  ///< indices into history::plans
  rung reached = rung::none;
  std::string reason = {};
  double stall_s = 0;      ///< nothing ran
  double moved_bytes = 0;  ///< weights, state and caches, stopped and in the background
  double moved_J = 0;      ///< what moving them took
  friend bool operator==(const adoption&, const adoption&) = default;
};

/// What became of a job over a timeline under one policy.
///
/// Source  semantics, section 10, results.
struct history {
  hetplan::status status = {};                         ///< none found: it ended without a plan that can run; stopped: by an observer
  std::vector<plan> plans = {};                        ///< in the order of their first use
  std::map<std::size_t, evaluation> predictions = {};  ///< by index into `plans`, as the policy's answers said
  std::vector<stretch> stretches = {};
  std::vector<adoption> adoptions = {};
  long long iterations = 0;               ///< done and kept: the sum over stretches, less `lost`
  long long lost = 0;                     ///< done and lost again with the weights of a device that left
  long long cut_off = 0;                  ///< begun and not ended
  long long violations = 0;               ///< iterations whose response was above what was wanted
  std::optional<double> finished_s = {};  ///< when the job's iterations were all done
  bool missed_deadline = false;
  double stall_s = 0;  ///< stalled and migrating
  double energy_J = 0;
  std::vector<double> device_energy_J = {};
  double moved_bytes = 0;
  long long switches = 0;  ///< adoptions that changed who computes what
  double reaction_s = 0;   ///< the longest time from an event to the adoption that answers it

  /// What is predicted of a plan, by its index; null: nobody said.
  [[nodiscard]] const evaluation* prediction(std::size_t plan) const {
    const auto it = predictions.find(plan);
    return it == predictions.end() ? nullptr : &it->second;
  }
  friend bool operator==(const history&, const history&) = default;
};

/// Iterations done in a part of the timeline, those of a stretch spread evenly over it; later lost or not.
///
/// Complexity  O(stretches).
[[nodiscard]] inline double iterations_between(const history& h, double from_s, double to_s) {
  double sum = 0;
  for (const stretch& s : h.stretches) {
    const double inside_s = std::min(s.end_s, to_s) - std::max(s.start_s, from_s);
    if (s.iterations > 0 && inside_s > 0) sum += static_cast<double>(s.iterations) * inside_s / (s.end_s - s.start_s);
  }
  return sum;
}

/// Somebody else's traffic that is under way.
struct foreign_traffic {
  device_id from;
  device_id to;
  bytes left;
  int priority = 0;
};

/// What a policy knows when it is asked: what was noticed, which may be behind what is.
struct situation {
  seconds now;
  seconds since;  ///< the first event that it has not answered yet
  const conditions& noticed;
  const holdings& held;  ///< what weights may be fetched from: backups and archives included
  std::span<const foreign_traffic> traffic;
  const plan* running = nullptr;         ///< null: nothing has run yet
  const plan* coming = nullptr;          ///< adopted, and its weights or the decision still take their time
  bool can_run = false;                  ///< every device of the running plan is there and works, and its network carries
  std::optional<seconds> response = {};  ///< of the last whole iteration
  std::string_view dropped = {};         ///< why its last plan came to nothing; empty: it did not
  qoe_target wanted = {};
  long long done = 0;  ///< iterations
};

/// How weights come to where the next plan needs them.
enum class switching {
  delta,                ///< stop, move what is missing, go on
  background,           ///< immutable weights come while the old plan still runs; the rest as delta
  through_coordinator,  ///< stop, gather the model at one device, hand it out again
  at_no_cost            ///< at once; for bounds
};

/// What to do about it. Empty: go on.
struct reaction {
  std::optional<plan> next = {};             ///< of the whole cluster, on devices that are there
  std::optional<evaluation> predicted = {};  ///< of `next`, for the history
  switching how = switching::delta;
  rung reached = rung::none;
  seconds thinking = {};                  ///< the old plan goes on until this has passed
  std::optional<seconds> answers = {};    ///< the time of the event that it answers; situation::since, unless it waited
  std::optional<seconds> ask_again = {};  ///< at the first iteration that ends then or later, event or not
  bool rest = false;                      ///< run nothing until asked again
  bool cancel = false;                    ///< the plan that is coming is not wanted any more; a `next` replaces it anyway
  std::string reason = {};
};

template <class P>
concept reacts = requires(P& p, const situation& s) {
  { p.react(s) } -> std::same_as<reaction>;  // the first answer has a plan, or says in `reason` why there is none
};

/// Decides what a change calls for. Asked between iterations: at the start, when something has become known, and when it asked to be
/// asked.
///
/// * It may remember; the same questions in the same order get the same answers.
/// * A `situation` is what it may know, which can be behind what is. An empty `reaction` is "go on". An answer with the plan that runs is
///   an adoption like any other: say nothing instead.
/// * A plan that breaks a rule throws `invalid_input`. One that cannot be adopted, because a device is gone again or weights are nowhere
///   to be had, is dropped; the policy is asked again at once and told why, but not the same twice. `estimate_switch` says beforehand.
/// * Give round numbers near what was measured for `thinking`, so that a history does not depend on the machine.
/// * Blocks to build one of: `change_classifier`, `known_plans`, `goal`, `reorder_transfers`, `plan_search`, `estimate_switch`,
///   `lightweight_replay`, `split_passes`, `policy_options`. How to: docs/how-to/adapt-to-change.md.
///
/// Ships, and what they react to:
///
/// * `static_plan`: nothing.
/// * `network_only`: every change, by the same plan with its transfers in another order.
/// * `microbatch_adapter`: a link that is slow beside its receiver's work, over 20 messages, by the same plan in smaller passes there;
///   nothing moves.
/// * `replan_always`: a change of 10 % or more (`policy_options::small`), by the planner's answer, however little it is better.
/// * `ladder`: what breaks the quality of experience, and lasts, by the least of another order, a plan that it knows, a new plan; a smaller
///   change by another order.
/// * `mixing_policy`: a change of 10 % or more and the end of each plan's turn, by a mixture that ends before the deadline with least
///   energy; a smaller change by another order.
/// * `replay_policy`: a lost device, by moving partition points, layers between neighbours only where needed.
/// * `rescheduling_policy`: a lost device, by the planner's answer, the model through the coordinator.
/// * `oracle`: everything, as it happens, by the best plan that it remembers or its planner finds, at no cost.
///
/// `recipes::dora_adapter` is Dora's: `mixing_policy` where the job names a deadline and its iterations, else `ladder`.
///
/// Source  the runtime adapter of Dora, section 4.3, as a door.
template <class P>
concept adaptation_policy = reacts<P>;

template <class P>
consteval bool check_adaptation_policy() {
  static_assert(reacts<P>, "adaptation_policy needs: hetplan::adapt::reaction react(const hetplan::adapt::situation&)");
  return adaptation_policy<P>;
}

// Is what a policy answers an answer at all? Asked before anything moves.

namespace detail {
/// Throws invalid_input where a plan is not one of the job; `who` comes before what is wrong.
void check_plan_of_policy(const plan& p, const planning_problem& problem, const std::string& who);
}  // namespace detail

/// Checks a policy's answer to a situation. Whether the devices of its plan are there is no part of it: they may leave later as well.
///
/// Complexity  that of validate, where it has a plan.
/// Throws      invalid_input: its plan is none of the job (validate; model and cluster by name, mode, context, tokens, optimizer,
///             batch), has a grid or a stage under zero2 or fsdp, or holds a transfer back beyond 10^9 s; invalid_model: a time that is no
///             number, negative or beyond 10^9 s, an event that has not happened yet, an enumerator that there is not.
/// Source      ours; semantics, section 10 (asking).
void check_reaction(const reaction& r, const planning_problem& problem, seconds now);

}  // namespace hetplan::adapt

#ifndef HETPLAN_SEPARATE
#include <hetplan/adapt/adaptation_policy.ipp>
#endif
