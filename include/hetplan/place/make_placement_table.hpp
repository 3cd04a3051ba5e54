// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Between a planning problem and a placement table: the models are asked, and a schedule becomes a plan.

#include <string>

#include <hetplan/coarsen/merge_small.hpp>
#include <hetplan/place/operator_schedule.hpp>
#include <hetplan/place/placement_table.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::place {

/// The table of one inference: all samples of the job's batch at once, forwards only, every block of layers an operator.
///
/// Seconds are the cost model's for the block's layers one behind the other, as a plan's stage has them, on as many of the device's
/// accelerators as is fastest; infinite where a layer cannot run on the device (no profile, no such batch). An edge has the bytes that
/// a plan would send from block to block. A device takes what its memory budget allows.
///
/// @param blocks   operators that stay together, such as coarsen::fuse_operators gives; without: every layer alone.
/// Complexity      O(layers x devices x accelerators + edges log edges + devices^2).
/// Throws          invalid_input (a job that is not inference), invalid_model (a user's model misbehaves).
/// Source          Moirai, section III-C. Deviations: a weight that layers of several blocks share is a tied tensor, once per device as in
///                 the simulator.
[[nodiscard]] placement_table make_placement_table(const planning_problem& problem, const coarsen::blocks& blocks);
[[nodiscard]] placement_table make_placement_table(const planning_problem& problem);

/// The plan of a schedule: a stage for each block, the order of operators on each device, and, where transfers contend, each transfer
/// released when the schedule starts it. The simulator then gives the schedule's makespan again.
///
/// @param t        make_placement_table(problem, blocks).
/// @param s        found by a search of the table under these rules.
/// @param planner  its name in the plan.
/// Complexity      O(layers + (blocks + transfers) log).
/// Source          ours: greedy grants of ports are not the start times of an exact schedule, so those are written down.
[[nodiscard]] plan plan_of(const planning_problem& problem, const coarsen::blocks& blocks, const placement_table& t,
                           const placement_rules& r, const operator_schedule& s, std::string planner);

}  // namespace hetplan::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/make_placement_table.ipp>
#endif
