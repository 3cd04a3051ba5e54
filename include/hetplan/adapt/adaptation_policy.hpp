// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Adaptation policies, which decide how a running job reacts to changes: the concept, its vocabulary, and the history of a run.

#include <algorithm>
#include <concepts>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/adapt/migration.hpp>
#include <hetplan/adapt/timeline.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::adapt {

enum class activity {
  running,    ///< whole iterations, all alike
  cut_off,    ///< an unfinished iteration: a device left or the timeline ended; its work is lost
  migrating,  ///< nothing runs while weights move
  stalled,    ///< no plan can run, or that is not known yet
  idle        ///< intentional: there is time until the deadline
};
[[nodiscard]] constexpr std::string_view to_string(activity a) {
  return a == activity::running     ? "running"
         : a == activity::cut_off   ? "cut off"
         : a == activity::migrating ? "migrating"
         : a == activity::stalled   ? "stalled"
                                    : "idle";
}

/// A period with one activity. Stretches follow each other without gaps.
struct stretch {
  activity what = activity::running;
  double start_s = 0;
  double end_s = 0;
  std::size_t plan = 0;      ///< index into history::plans
  long long iterations = 0;  ///< completed iterations, each (end_s - start_s) / iterations long
  double response_s = 0;     ///< of each iteration: T, or the time between tokens
  double energy_J = 0;
  bool violates = false;  ///< true if each response exceeds the target
  friend bool operator==(const stretch&, const stretch&) = default;
};

/// The highest rung of the reaction ladder that a reaction used.
enum class rung { none, network, known_plan, replanned };
[[nodiscard]] constexpr std::string_view to_string(rung r) {
  return r == rung::none ? "nothing" : r == rung::network ? "network" : r == rung::known_plan ? "known plan" : "re-planned";
}

/// The adoption of a plan: times, reason and cost.
struct adoption {
  double caused_s = 0;           ///< time of the event that it answers
  double decided_s = 0;          ///< time of the policy's decision
  double done_s = 0;             ///< time at which the plan runs
  std::size_t from = 0, to = 0;  ///< indices into history::plans
  rung reached = rung::none;
  std::string reason = {};
  double stall_s = 0;      ///< time in which nothing ran
  double moved_bytes = 0;  ///< weights, state and caches, moved while stopped and in the background
  double moved_J = 0;      ///< energy of these moves
  friend bool operator==(const adoption&, const adoption&) = default;
};

/// The history of a job over a timeline under one policy.
/// Source  semantics, section 10, results.
struct history {
  hetplan::status status = {};   ///< none found: ended without a plan that can run; stopped: by an observer or the step budget
  std::vector<plan> plans = {};  ///< in order of first use
  std::map<std::size_t, evaluation> predictions = {};  ///< by index into `plans`, from the policy's answers
  std::vector<stretch> stretches = {};
  std::vector<adoption> adoptions = {};
  long long iterations = 0;               ///< completed and kept: the sum over stretches less `lost`
  long long lost = 0;                     ///< completed, but lost with the weights of a device that left
  long long cut_off = 0;                  ///< begun and not completed
  long long violations = 0;               ///< iterations with a response above the target
  std::optional<double> finished_s = {};  ///< time at which all iterations of the job were done
  bool missed_deadline = false;
  double stall_s = 0;  ///< time stalled or migrating
  double energy_J = 0;
  std::vector<double> device_energy_J = {};
  double moved_bytes = 0;
  long long switches = 0;  ///< adoptions that changed the placement
  double reaction_s = 0;   ///< the longest time from an event to the adoption that answers it

  /// What is predicted of a plan, by its index; null: nobody said.
  [[nodiscard]] const evaluation* prediction(std::size_t plan) const {
    const auto it = predictions.find(plan);
    return it == predictions.end() ? nullptr : &it->second;
  }
  friend bool operator==(const history&, const history&) = default;
};

/// Returns the iterations done in a part of the timeline, lost ones included; those of a stretch are spread evenly over it.
/// Complexity  O(stretches).
[[nodiscard]] inline double iterations_between(const history& h, double from_s, double to_s) {
  double sum = 0;
  for (const stretch& s : h.stretches) {
    const double inside_s = std::min(s.end_s, to_s) - std::max(s.start_s, from_s);
    if (s.iterations > 0 && inside_s > 0) sum += static_cast<double>(s.iterations) * inside_s / (s.end_s - s.start_s);
  }
  return sum;
}

struct foreign_traffic {
  device_id from;
  device_id to;
  bytes left;
  int priority = 0;
};

/// What a policy knows when it is called: the noticed conditions, which may lag behind the actual ones.
struct situation {
  seconds now;
  seconds since;  ///< time of the first unanswered event
  const conditions& noticed;
  const holdings& held;  ///< sources of weights, backups and archives included
  std::span<const foreign_traffic> traffic;
  const plan* running = nullptr;         ///< null: nothing has run yet
  const plan* coming = nullptr;          ///< adopted plan whose weights or decision time are pending; null: none
  bool can_run = false;                  ///< true if the running plan's devices work and its network has capacity
  std::optional<seconds> response = {};  ///< of the last whole iteration
  std::string_view dropped = {};         ///< reason why the policy's last plan was dropped; empty: it was not
  qoe_target wanted = {};
  long long done = 0;  ///< completed iterations
};

/// How weights reach the devices of the next plan.
enum class switching {
  delta,                ///< stop, move the missing weights, continue
  background,           ///< immutable weights move while the old plan runs, the rest as in `delta`
  through_coordinator,  ///< stop, gather the model at one device, redistribute it
  at_no_cost            ///< instantaneous; for bounds
};

/// The decision of a policy. An empty reaction continues the running plan.
struct reaction {
  std::optional<plan> next = {};             ///< plan of the whole cluster, on present devices
  std::optional<evaluation> predicted = {};  ///< of `next`; informative only
  switching how = switching::delta;
  rung reached = rung::none;
  seconds thinking = {};                  ///< decision time, during which the old plan runs
  std::optional<seconds> answers = {};    ///< time of the event that is answered; empty: situation::since
  std::optional<seconds> ask_again = {};  ///< call at the first end of an iteration then or later, even without an event
  bool rest = false;                      ///< true to run nothing until the next call
  bool cancel = false;                    ///< true to withdraw the plan that is coming; a `next` replaces it anyway
  std::string reason = {};
};

template <class P>
concept reacts = requires(P& p, const situation& s) {
  { p.react(s) } -> std::same_as<reaction>;  // the first reaction has a plan, or a `reason` for having none
};

/// Decides how a running job reacts to changes. Called between iterations: at the start, when an event has become known, and on request.
///
/// * The policy may have state. Equal calls in equal order get equal reactions.
/// * A `situation` is what the policy may know, which can lag behind the actual state. An empty `reaction` continues the running plan.
///   Returning the running plan counts as an adoption; return an empty reaction instead.
/// * An invalid plan throws `invalid_input`. A plan that cannot be adopted, because a device has left again or weights are unavailable, is
///   dropped. The policy is called again at once with the reason, but not twice for the same one. `estimate_switch` tells beforehand.
/// * `thinking` should be a round number near the measured time, so that a history does not depend on the machine.
/// * Building blocks: `change_classifier`, `known_plans`, `goal`, `reorder_transfers`, `plan_search`, `estimate_switch`,
///   `lightweight_replay`, `split_passes`, `policy_options`. How to: docs/how-to/adapt-to-change.md.
///
/// Ships, with the trigger and the reaction of each:
///
/// * `static_plan`: never reacts.
/// * `network_only`: on every change, the same plan with reordered transfers.
/// * `microbatch_adapter`: on a link that is slow beside its receiver over 20 messages, the same plan with smaller passes, without moves.
/// * `replan_always`: on a change of 10 % or more (`policy_options::small`), the planner's plan, however small the gain.
/// * `ladder`: on a lasting violation of the quality of experience, reordered transfers, a known plan or a new plan, whichever suffices
///   first; on a smaller change, reordered transfers.
/// * `mixing_policy`: on a change of 10 % or more and at the end of each plan's turn, a mixture that meets the deadline with least energy;
///   on a smaller change, reordered transfers.
/// * `replay_policy`: on a lost device, new partition points, with layers moved between neighbours only where needed.
/// * `rescheduling_policy`: on a lost device, the planner's plan, with the model moved through the coordinator.
/// * `oracle`: on every event, as it happens, the best plan that it remembers or its planner finds, at no cost.
///
/// `recipes::dora_adapter` is Dora's adapter: `mixing_policy` if the job has a deadline and a number of iterations, otherwise `ladder`.
///
/// Source  the runtime adapter of Dora, section 4.3, as a concept.
template <class P>
concept adaptation_policy = reacts<P>;

template <class P>
consteval bool check_adaptation_policy() {
  static_assert(reacts<P>, "adaptation_policy needs: hetplan::adapt::reaction react(const hetplan::adapt::situation&)");
  return adaptation_policy<P>;
}

namespace detail {
/// Throws invalid_input if a plan does not belong to the job; the message begins with `who`.
void check_plan_of_policy(const plan& p, const planning_problem& problem, const std::string& who);
}  // namespace detail

/// Checks a policy's reaction. The presence of its plan's devices is not checked, because they may also leave later.
/// Complexity  that of validate, if there is a plan.
/// Throws      invalid_input for a plan of another job (validate; model and cluster by name, mode, context, tokens, optimizer, batch), a
///             plan with a grid or a stage under zero2 or fsdp, or a transfer held back beyond 10^9 s; invalid_model for a time that is
///             NaN, negative or beyond 10^9 s, an event in the future, or an unknown enumerator.
/// Source      ours; semantics, section 10 (asking).
void check_reaction(const reaction& r, const planning_problem& problem, seconds now);

}  // namespace hetplan::adapt

#ifndef HETPLAN_SEPARATE
#include <hetplan/adapt/adaptation_policy.ipp>
#endif
