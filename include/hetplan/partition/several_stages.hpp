// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A pipeline cut anew so that each of its devices has several stages: for schedules that need them.

#include <vector>

#include <hetplan/plan/plan.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::partition {

/// The devices of a pipeline of single devices, a stage each, in the same order and back again: of n devices the first has stages 0 and
/// 2n - 1. The longest stage, or boundary at peak bandwidth, is as short as possible, and there are up to three such cuts: with small
/// stages in front, with the shortest way of a microbatch through all of them, and with even ones. Memory and latencies play no part.
///
/// @return      plans without warm-up, transfer rules or prediction, whose orders somebody must make; none for another plan,
///              one device, or fewer places to cut than stages.
/// Complexity   O(n L^2) for L layers; models of more than 512 are cut at light boundaries alone, and L is their number.
/// Throws       what the cost and memory models may (invalid_model).   Determinism  yes.
/// Source       Qi et al., Pipeline Parallelism with Controllable Memory, 2024, section 3; the cut is ours.
[[nodiscard]] std::vector<plan> in_a_v(const plan& p, const planning_problem& problem);

/// The same devices in the same order, `chunks` times one behind the other: of n devices the first has stages 0, n, 2n, ...
///
/// @param chunks  stages of a device.
/// @return        as in_a_v; none for chunks < 1.
/// Complexity     O(chunks n L^2).   Throws, Determinism  as in_a_v.
/// Source         Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters, 2021, section 2.2; the cut is ours.
[[nodiscard]] std::vector<plan> in_turns(const plan& p, const planning_problem& problem, std::size_t chunks = 2);

namespace detail {
/// The devices of a plan that is a pipeline of single devices, a stage each; none for another plan.
[[nodiscard]] std::vector<device_id> devices_in_line(const plan& p);
}  // namespace detail

}  // namespace hetplan::partition

#ifndef HETPLAN_COMPILED
#include <hetplan/partition/several_stages.ipp>
#endif
