// SPDX-License-Identifier: BSL-1.0
#pragma once
/// HetPipe: pipelines inside virtual workers, data parallelism among them through a parameter server.

#include <hetplan/core/observer.hpp>
#include <hetplan/plan/any_objective.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::recipes {

/// Sees a chain, unequal devices and bandwidths between pairs; neither memory nor contention.
///
/// For every number of virtual workers that divides the batch: devices are dealt out so that workers are alike (equal
/// distribution), each worker is a pipeline of single devices whose largest step is smallest, and after the iteration every
/// stage sends its gradients to the server, the fastest device, and gets the sum back. The number and the microbatch size for
/// which the slowest worker's round and the exchange of one model there and back take least time win.
///
/// @return  one plan, the planner's choice.
/// Source   HetPipe (Park et al., 2020), sections 3, 5 and 6. Deviations: synchronous (staleness 0); one server; a dynamic program instead
///          of an integer one; see choose_on_view.
[[nodiscard]] plan_result hetpipe(const planning_problem& problem, const any_objective& objective, int /*keep*/ = 1,
                                  const candidate_observer& observer = {});

}  // namespace hetplan::recipes

#ifndef HETPLAN_COMPILED
#include <hetplan/recipes/hetpipe.ipp>
#endif
