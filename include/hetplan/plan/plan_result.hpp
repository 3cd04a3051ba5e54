// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Results of planners, and the objectives that rank plans.

#include <concepts>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/core/erased.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/core/observer.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan {

// Device limits of evaluated plans: which are broken, where, and by how much.

enum class limit_kind { memory, energy, busy_share };

/// Limit that a plan breaks; `used` and `allowed` are in the limit's unit (B, J, share).
struct broken_limit {
  limit_kind kind = limit_kind::memory;
  device_id device;
  double used = 0;
  double allowed = 0;

  /// Returns the relative overflow, which makes limits of different kinds comparable.
  [[nodiscard]] double overflow() const { return used / allowed - 1; }
};

/// Relative overflow that is tolerated: sums of the same numbers in another order are no violation.
inline constexpr double limit_tolerance = relative_tolerance;

/// Returns the memory that the layers of a plan may take of a device: what is usable beside its own overhead, and the tolerance.
[[nodiscard]] double memory_limit_bytes(const device& d);

/// Returns how many items of `each_bytes` fit into `room_bytes`, at most `most`; 0 if the room is negative.
[[nodiscard]] int count_that_fits(double room_bytes, double each_bytes, int most);

/// Returns whether every used device keeps its memory limit.
[[nodiscard]] bool within_memory(const evaluation& e, const cluster& c);

/// Returns the broken limit with the largest relative overflow, or nothing. Ties: memory, energy, busy share; then by device.
[[nodiscard]] std::optional<broken_limit> find_broken_limit(const evaluation& e, const cluster& c);

/// Returns all broken limits: memory, energy, busy share; each by device.
[[nodiscard]] std::vector<broken_limit> broken_limits(const evaluation& e, const cluster& c);

/// Returns the sum of the relative overflows of all broken limits; 0 if none is broken.
[[nodiscard]] double total_overflow(const evaluation& e, const cluster& c);

/// Returns, e.g., "memory: xiaomi0 needs 13.9 GB and may use 8 GB: 5.9 GB too much".
[[nodiscard]] std::string to_string(const broken_limit& b, const cluster& c);

template <class O>
concept scores_evaluation = requires(const O& o, const evaluation& e) {
  { o.score(e) } -> std::same_as<double>;  // smaller is better; pure
};
/// An objective of the response (T, or the time between tokens in generation) and the total energy alone, non-decreasing in both: a search
/// may drop partial plans that cannot catch up. It may take `run_times` in place of the response, and is then non-decreasing in each.
template <class O>
concept monotone_objective = requires(const O& o, seconds response, joules energy) {
  { o.score(response, energy) } -> std::same_as<double>;  // smaller is better; non-decreasing in both; pure
};
template <class O>
concept scores_times = requires(const O& o, const run_times& times, joules energy) {
  { o.score(times, energy) } -> std::same_as<double>;
};
/// Score that ranks plans; smaller is better. One of two members is enough. With both, score(evaluation) ranks evaluated plans, and
/// score(response, energy) steers searches over partial plans.
///
/// * score(response, energy): if the response and the energy of all devices are all that counts. The score falls with neither, so a search
///   may drop a partial plan that cannot catch up. `two_substate_dp` tests some points and refuses a score that falls; between them it
///   trusts the objective.
/// * score(evaluation): for anything else, such as peak memory, one device's battery, or a score that falls with time. Planners that judge
///   whole candidates take either at the same cost; a search over partial plans has to keep all of them (the `cell_policy` `exhaustive`),
///   which only small problems allow.
/// * NaN is refused; infinity means "never". Only plans within the devices' limits are scored, so limits need no penalty.
/// * Planners score before they compute bounds: `bound` and `gap` are still 0; `schedule_bound` is set.
/// * Equal scores: fewer stages first, then the candidate that was judged first.
/// * Called from several threads at once where a search uses threads.
///
/// Ships: `minimize_latency` (T, the last end, in generation as well), `maximize_throughput` (T per sample), `minimize_ttft`,
/// `minimize_response` (T, or the time between tokens in generation), `minimize_energy`, `keep_qoe` (energy, plus lambda per second beyond
/// targets), `objective_of_job` and `any_objective` (chosen at run time). The function `score` calls either member.
template <class O>
concept objective = scores_evaluation<O> || monotone_objective<O>;

template <class O>
consteval bool check_objective() {
  static_assert(objective<O>,
                "objective needs: double score(seconds response, joules energy) const, non-decreasing in both; "
                "or: double score(const hetplan::evaluation&) const");
  return objective<O>;
}

template <objective O>
[[nodiscard]] double score(const O& o, const evaluation& e) {
  if constexpr (scores_evaluation<O>) return o.score(e);
  else if constexpr (scores_times<O>) return o.score(e.times(), e.energy());
  else return o.score(e.response(), e.energy());
}

/// Latency T [s], the last end; in generation that of the whole run.
struct minimize_latency {
  [[nodiscard]] double score(const run_times& t, joules) const { return t.makespan.value(); }
};
/// Seconds per sample, the inverse of throughput. Plans of one job share batch and tokens, so the ranking is that of T.
struct maximize_throughput {
  double batch = 1;
  [[nodiscard]] double score(const run_times& t, joules) const { return t.makespan.value() / batch; }
};
/// Time to the first token [s] in generation; else T.
struct minimize_ttft {
  [[nodiscard]] double score(const run_times& t, joules) const { return t.ttft.value(); }
};
/// Response [s], which `qoe.latency` limits: T, or the time between tokens in generation.
struct minimize_response {
  [[nodiscard]] double score(seconds response, joules) const { return response.value(); }
};
/// Total energy [J].
struct minimize_energy {
  [[nodiscard]] double score(seconds, joules energy) const { return energy.value(); }
};
/// Energy [J] plus lambda per second of response beyond the latency to keep, and of any other time beyond its limit.
/// Source  Dora, eq. 2. Deviation: several times.
struct keep_qoe {
  std::optional<seconds> latency = {};  ///< of the response
  double lambda_J_per_s = 1000;
  std::optional<seconds> makespan = {};
  std::optional<seconds> ttft = {};
  std::optional<seconds> time_between_tokens = {};
  /// Returns the sum of what the times take too long.
  [[nodiscard]] seconds excess(const run_times& t) const;
  [[nodiscard]] double score(const run_times& t, joules energy) const { return energy.value() + lambda_J_per_s * excess(t).value(); }
};

static_assert(check_objective<minimize_latency>() && check_objective<maximize_throughput>() && check_objective<minimize_ttft>() &&
              check_objective<minimize_response>() && check_objective<minimize_energy>() && check_objective<keep_qoe>());

/// The objective that a job names, and under any but qoe its limits on times: plans that break them come last, by how far they do.
/// Throws  invalid_input (objective qoe without a time to keep).
class objective_of_job {
 public:
  explicit objective_of_job(const job& j);
  [[nodiscard]] double score(const run_times& t, joules energy) const;

 private:
  std::variant<minimize_latency, maximize_throughput, minimize_ttft, minimize_response, minimize_energy, keep_qoe> chosen_;
  keep_qoe limits_ = {};
  bool limited_ = false;
};

static_assert(check_objective<objective_of_job>());

/// Type-erased objective, held by value and shared by copies (objectives are pure). One indirect call per score.
class any_objective {
 public:
  template <class O>
    requires(!std::same_as<O, any_objective>)
  any_objective(O o) : monotone_(monotone_objective<O>), is_latency_(std::same_as<O, minimize_latency>) {
    static_assert(check_objective<O>());
    if constexpr (objective<O>)
      objective_ = {std::move(o),
                    {.score = [](void* held, const evaluation& e) { return hetplan::score(as<const O>(held), e); },
                     .estimate =
                         [](void* held, const run_times& t, joules energy) {
                           if constexpr (scores_times<O>) return as<const O>(held).score(t, energy);
                           else if constexpr (monotone_objective<O>) return as<const O>(held).score(t.response(), energy);
                           else return 0.0;
                         }}};
  }

  /// True if it can steer a search over partial plans. See monotone_objective.
  [[nodiscard]] bool monotone() const { return monotone_; }
  [[nodiscard]] double score(const evaluation& e) const { return objective_->score(objective_.get(), e); }
  /// Returns 0 if the held objective is not monotone.
  [[nodiscard]] double score(const run_times& t, joules energy) const {
    if (is_latency_) return t.makespan.value();  // searches ask often
    return objective_->estimate(objective_.get(), t, energy);
  }

 private:
  struct calls {
    double (*score)(void*, const evaluation&);
    double (*estimate)(void*, const run_times& times, joules energy);
  };
  erased<calls> objective_;
  bool monotone_, is_latency_;
};

static_assert(check_objective<any_objective>());

/// A plan and its predicted costs.
struct ranked_plan {
  hetplan::plan plan;
  hetplan::evaluation evaluation;

  friend bool operator==(const ranked_plan&, const ranked_plan&) = default;
};

/// Returns the plans without their costs, in the given order.
[[nodiscard]] std::vector<plan> plans_of(std::span<const ranked_plan> ranked);

/// Result of a planner: plans, best first, each with its prediction. None found: no plan, and a reason with the binding limit, the device,
/// the smallest overflow and the candidates tried. Infeasible: the same, proven. Stopped, by an observer or a budget: the best so far.
struct plan_result {
  hetplan::status status = {};
  std::optional<broken_limit> binding = {};  ///< without plans: limit of the candidate that came nearest
  std::vector<ranked_plan> plans = {};
  long long candidates = 0;   ///< number of plans judged
  long long steps = 0;        ///< steps taken; see step_budget
  bool out_of_steps = false;  ///< true: stopped by the budget
  seconds elapsed = {};
};

/// Turns `infeasible` into `none_found`, for planners of grids or sharded weights: no proof covers such plans.
inline void without_proof(plan_result& r) {
  if (r.status.result != outcome::infeasible) return;
  r.status.result = outcome::none_found;
  r.status.proof.reset();
}

/// Event of a planner that has judged one more candidate; for progress and for stopping. Over one call with all its parts
/// (candidate_rounds), `judged` counts 1, 2, 3, ...; the estimate `total` may change, but is never less; `judged / total` never falls.
struct candidate_judged {
  long long judged = 0;
  long long total = 0;
  const ranked_plan* best = nullptr;  ///< best plan so far, over all parts; null until one fits
  bool estimated = false;             ///< true: the prediction of `best` is an estimate, since the plan runs long
};
using candidate_observer = any_observer<candidate_judged>;

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/plan/plan_result.ipp>
#endif
