// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a planner answers.

#include <concepts>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include <hetplan/core/erased.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/core/observer.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/plan/limits.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan {

// What "better" means: the door for objectives, and those that ship.

template <class O>
concept scores_evaluation = requires(const O& o, const evaluation& e) {
  { o.score(e) } -> std::same_as<double>;  // smaller is better; pure
};
/// Reads nothing but the response (T, or the time between tokens in generation) and the total energy, and falls with
/// neither: then a search may drop partial plans that cannot catch up.
template <class O>
concept monotone_objective = requires(const O& o, seconds response, joules energy) {
  { o.score(response, energy) } -> std::same_as<double>;  // smaller is better; non-decreasing in both; pure
};
/// Which of two plans is better: smaller scores are. Either of two members will do; with both, that of evaluations scores evaluated
/// plans, the other one steers searches in parts.
///
/// * score(response, energy), where response and energy of all devices are all that counts. It falls with neither, so a search may drop a
///   partial plan that cannot catch up. `two_substate_dp` tries that on some points and refuses a score that falls; between them it takes
///   your word.
/// * score(evaluation) for anything else: peak memory, one device's battery, a score that falls with time. Planners that judge whole
///   candidates take it at the same cost; a search in parts has to keep every partial plan (the `cell_policy` `exhaustive`), which only
///   small problems allow.
/// * NaN is refused; infinity is a way to say "never". Only plans within the devices' limits are scored, so limits need no penalty.
/// * Planners score before they bound: `bound` and `gap` are 0 then; `schedule_bound` is there.
/// * Equal scores: fewer stages first, then the candidate that was judged first.
/// * Called from several threads at once where a search has threads.
///
/// Ships: `minimize_latency` (T, the last end, in generation as well), `maximize_throughput` (T per sample), `minimize_response` (T, or
/// the time between tokens in generation), `minimize_energy`, `keep_qoe` (energy, plus lambda per second of response beyond a target),
/// `objective_of_job` and `any_objective` (chosen at run time). `score` asks either member.
template <class O>
concept objective = scores_evaluation<O> || monotone_objective<O>;

template <class O>
consteval bool check_objective() {
  static_assert(objective<O>,
                "objective needs: double score(seconds response, joules energy) const, non-decreasing in both; "
                "or: double score(const hetplan::evaluation&) const");
  return objective<O>;
}

/// The score of an evaluated plan.
template <objective O>
[[nodiscard]] double score(const O& o, const evaluation& e) {
  if constexpr (scores_evaluation<O>) return o.score(e);
  else return o.score(e.response(), e.energy());
}

/// T [s], in generation as well: the last end. A search in parts counts the time between tokens there, which grows as T does
/// under its estimate.
struct minimize_latency {
  [[nodiscard]] double score(seconds response, joules) const { return response.value(); }
  [[nodiscard]] double score(const evaluation& e) const { return e.latency.value(); }
};
/// Seconds per sample: the inverse of throughput. Plans of one job share batch and tokens, so it ranks them as T does.
struct maximize_throughput {
  double batch = 1;
  [[nodiscard]] double score(seconds response, joules) const { return response.value() / batch; }
  [[nodiscard]] double score(const evaluation& e) const { return e.latency.value() / batch; }
};
/// T, or the time between tokens in generation [s]: what `qoe.latency` limits.
struct minimize_response {
  [[nodiscard]] double score(seconds response, joules) const { return response.value(); }
};
/// Total energy [J].
struct minimize_energy {
  [[nodiscard]] double score(seconds, joules energy) const { return energy.value(); }
};
/// Energy plus lambda per second beyond the latency that should be kept [J]. Source: Dora, eq. 2.
struct keep_qoe {
  seconds latency;
  double lambda_J_per_s = 1000;
  [[nodiscard]] double score(seconds response, joules energy) const;
};

static_assert(check_objective<minimize_latency>() && check_objective<maximize_throughput>() && check_objective<minimize_response>() &&
              check_objective<minimize_energy>() && check_objective<keep_qoe>());

/// The objective that a job names.
///
/// Throws  invalid_input (objective qoe without qoe.latency).
class objective_of_job {
 public:
  explicit objective_of_job(const job& j);
  [[nodiscard]] double score(seconds response, joules energy) const;
  [[nodiscard]] double score(const evaluation& e) const;

 private:
  std::variant<minimize_latency, maximize_throughput, minimize_energy, keep_qoe> chosen_;
};

static_assert(check_objective<objective_of_job>());

// An objective chosen at run time.

/// Holds any objective by value; copies share it (objectives are pure).
class any_objective {
 public:
  template <class O>
    requires(!std::same_as<O, any_objective>)
  any_objective(O o) : monotone_(monotone_objective<O>) {
    static_assert(check_objective<O>());
    if constexpr (objective<O>)
      objective_ = {std::move(o),
                    {.score = [](void* held, const evaluation& e) { return hetplan::score(as<const O>(held), e); },
                     .estimate =
                         [](void* held, auto... a) {
                           if constexpr (monotone_objective<O>) return as<const O>(held).score(a...);
                           else return 0.0;
                         }}};
  }

  /// Can it steer a search in parts? See monotone_objective.
  [[nodiscard]] bool monotone() const { return monotone_; }
  [[nodiscard]] double score(const evaluation& e) const { return objective_->score(objective_.get(), e); }
  /// 0 where the objective that it holds is not monotone.
  [[nodiscard]] double score(seconds response, joules energy) const { return objective_->estimate(objective_.get(), response, energy); }

 private:
  struct calls {
    double (*score)(void*, const evaluation&);
    double (*estimate)(void*, seconds response, joules energy);
  };
  erased<calls> objective_;
  bool monotone_;
};

static_assert(check_objective<any_objective>());

/// Plans best first, each with its prediction. None found: no plan, and the reason names the limit that binds, the device and the
/// smallest overflow, and what was tried. Infeasible: the same, and proven of the problem. Stopped, by an observer or a budget: the best
/// so far.
struct plan_result {
  hetplan::status status = {};
  std::optional<broken_limit> binding = {};  ///< without plans: of the candidate that came nearest
  std::vector<plan> plans = {};
  long long candidates = 0;   ///< plans that were judged
  long long steps = 0;        ///< that it took; see step_budget
  bool out_of_steps = false;  ///< stopped by the budget
  seconds elapsed = {};
};

/// A proof is one of plans without grids whose devices hold the whole weights of their layers: a planner that makes others has found none.
inline void without_proof(plan_result& r) {
  if (r.status.result != outcome::infeasible) return;
  r.status.result = outcome::none_found;
  r.status.proof.reset();
}

/// A planner has judged one more candidate; for progress and for stopping.
///
/// Over one call of a planner, whatever parts it has (candidate_rounds): `judged` is 1, 2, 3, ...; `total` is an estimate that is
/// corrected on the way, never less than `judged`; and judged / total never falls.
struct candidate_judged {
  long long judged = 0;
  long long total = 0;
  const plan* best = nullptr;  ///< so far, in all parts; null until one fits
  bool estimated = false;      ///< what is predicted of the best so far is an estimate, for it runs long
};
using candidate_observer = any_observer<candidate_judged>;

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/plan/plan_result.ipp>
#endif
