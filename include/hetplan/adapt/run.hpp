// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A job over a timeline: iteration after iteration under the conditions of the moment, with a policy that may answer.

#include <type_traits>

#include <hetplan/adapt/run_loop.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace HETPLAN_NAMESPACE::adapt {

/// Runs a job over a timeline under a policy.
///
/// Iterations follow one another; each is simulated with the capacities and speeds that the timeline has while it runs, and
/// beside the traffic that is under way. Plans change between iterations. A device that leaves cuts the iteration short;
/// the policy is asked when the detector has noticed. Weights that move share the network with everything else.
///
/// @param policy   asked at the start, when something has become known, and when it asked for it.
/// @return         the history; none found: it ended with no plan that can run, and why.
/// Complexity      one simulation per iteration while conditions change or transfers beside the plan come and go; iterations that
///                 are alike cost one together.
/// Throws          invalid_input (timeline, options, a policy's plan, one whose iteration takes no time), invalid_model.
/// Determinism     as the policy's.
/// Source          semantics, section 10; Dora, section 4.3; Asteroid, section 3.4.
template <adaptation_policy Policy, failure_detector Detector = heartbeat, observer<run_progress>... Observers>
[[nodiscard]] history run(const planning_problem& problem, const timeline& t, Policy& policy, const run_options<Detector>& options = {},
                          Observers&&... observers) {
  if constexpr (std::is_same_v<Detector, heartbeat>) check_heartbeat(options.detector);
  return detail::run_loop<Policy, Detector, std::remove_reference_t<Observers>...>(problem, t, policy, options, observers...).run();
}

}  // namespace HETPLAN_NAMESPACE::adapt
