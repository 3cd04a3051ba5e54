// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a planner answers.

#include <optional>
#include <vector>

#include <hetplan/core/observer.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/core/status.hpp>
#include <hetplan/plan/limits.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan {

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
