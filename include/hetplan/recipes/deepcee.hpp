// SPDX-License-Identifier: BSL-1.0
#pragma once
/// DeepCEE: a pipeline across regions that a slow network joins, each running its layers as its own devices do best.

#include <optional>
#include <vector>

#include <hetplan/coarsen/device_groups.hpp>
#include <hetplan/core/observer.hpp>
#include <hetplan/partition/region_chain.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::recipes {

/// How a region runs its layers on its devices.
enum class region_mode {
  alone,    ///< the device that does it best
  samples,  ///< all of them share the samples, uneven (asymmetric DP)
  layers,   ///< all of them share the layers, uneven (asymmetric PP)
  classes,  ///< classes, or groups of 2 to 4 of a class, share the layers, the devices of each the samples (asymmetric PP over DP)
  tensors   ///< a grid: rows share the samples, columns the tensors, both uneven (asymmetric DP and TP)
};

struct deepcee_options {
  coarsen::group_options groups = {};
  std::optional<bytes> message = {};                                   ///< whose travel is the distance of devices; none: a mean boundary's
  partition::region_cost cost = partition::region_cost::serial_links;  ///< printed: eq. 1 as it stands
  partition::region_use use = partition::region_use::any;              ///< all: every region has a part of the model
  bool exact = true;  ///< up to max_exact_regions regions; beyond, and if not, the paper's beam
  std::vector<region_mode> modes = {region_mode::alone, region_mode::samples, region_mode::layers, region_mode::classes,
                                    region_mode::tensors};
  /// In training, where the job names none; not empty.
  std::vector<order_rule> orders = {order_rule::compact, order_rule::eager, order_rule::original, order_rule::automatic, order_rule::zb_v};
  bool alike = false;      ///< devices of a region take equal shares, whatever they can do
  std::size_t splits = 6;  ///< how many of the cheapest, over all microbatch sizes, are tried in each mode; twice as many in one region
};

/// What the paper has: its cost, its beam, all regions and all of their devices, compact order alone.
///
/// @param second_level  false: the devices of a region take equal shares, as if they were alike.
[[nodiscard]] deepcee_options deepcee_as_printed(bool second_level = true);

/// Groups the devices by the network (coarsen::group_devices), splits the model over the regions by eq. 1 for every microbatch size,
/// exactly up to twelve regions, and makes a plan of each of the best splits in each manner: a mode for all regions, with all devices or
/// the faster classes, in the best number of stages or in fewer with a longer longest one. An estimate (the busiest device or boundary, and
/// the way of one microbatch to it) chooses 24 plans, or twice `keep`; the simulator judges these: in training with the orders of each
/// rule, by default compact and eager dispatch, zero bubble's, the best of a search and ZB-V's (job::orders takes their place).
///
/// @return      none found where no split fits by eq. 1, or no plan made of one keeps the limits.
///              Where the job allows its own schedule beside orders, the best `keep` plans under that one are given the orders.
/// Complexity   that of split_exactly or split_by_beam for each microbatch size, an estimate for each split and manner, and
///              max(24, 2 keep) judgements for each rule of the orders.
/// Throws       invalid_input: keep < 1, no modes, no orders, splits < 1; what group_devices throws of the thresholds.
/// Determinism  yes, but for `elapsed`.
/// Source       DeepCEE, section 3. Deviations: synchronous; regions may be left out and may use one device or their faster classes
///              alone, for on the paper's own testbed the network costs more than a second region brings; the stages of a region are
///              pipelined with the rest, their boundaries inside it included; what a region's mode costs is estimated, the simulator
///              judges.
[[nodiscard]] plan_result deepcee(const planning_problem& problem, const any_objective& objective, int keep, const deepcee_options& options,
                                  const candidate_observer& observer = {});
[[nodiscard]] plan_result deepcee(const planning_problem& problem, const any_objective& objective, int keep = 10,
                                  const candidate_observer& observer = {});

}  // namespace hetplan::recipes

#ifndef HETPLAN_SEPARATE
#include <hetplan/recipes/deepcee.ipp>
#endif
