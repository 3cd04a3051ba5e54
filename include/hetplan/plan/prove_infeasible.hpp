// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Why no plan keeps the limits: rows of a relaxation that every plan satisfies and these devices do not.

#include <optional>

#include <hetplan/core/status.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan {

/// Looks for a proof that no plan of a job keeps memory, energy budgets and busy shares: not one of those that some planner tries, but
/// none that a plan file can say, with any cut into stages and pipelines, orders, shares, microbatch sizes, degrees of tensor parallelism,
/// and with recomputed activations and shared-out optimizer state, whatever the job lets planners make use of.
///
/// Memory: tensors that only the k largest devices have room for, each with the activations (and in generation the cache) of one sample,
/// lie on those k: each tensor once, the caches of the whole batch, and one sample's activations somewhere. One row for the worst k.
///
/// Energy: a device that works for b seconds runs for b / max_busy at least, and no shorter than any plan does, so its budget allows
/// it so many seconds of work; all work, every layer at its least time per sample, is split among the devices in any fractions. One row:
/// that split's fullest device, bounded by weights on the devices that make it checkable by hand. Without an energy budget on every device
/// that has room for a layer there is no such row; busy shares alone forbid nothing, for a plan may wait, but on the only device of a
/// cluster.
///
/// The solver only proposes the weights: what it answers is checked here.
///
/// @return      rows of which the last proves alone, or nothing where neither relaxation excludes all plans: then there may be one or not.
/// Complexity   memory: O((layers + devices) log). Energy: layers x devices x batch sizes questions to the cost model, and a linear program
///              where the problem has a solver and layers that differ x devices are at most 20 000; asked only where every device has a
///              budget.
/// Determinism  yes.
/// Throws       what the models throw.
[[nodiscard]] std::optional<infeasibility_proof> prove_infeasible(const planning_problem& problem);

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/plan/prove_infeasible.ipp>
#endif
