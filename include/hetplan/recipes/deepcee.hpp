// SPDX-License-Identifier: BSL-1.0
#pragma once
/// DeepCEE: a pipeline over regions joined by a slow network; each region runs its layers in the best way for its devices.

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
  alone,    ///< on the one device that is fastest for them
  samples,  ///< all devices share the samples unevenly (asymmetric DP)
  layers,   ///< all devices share the layers unevenly (asymmetric PP)
  classes,  ///< classes, or groups of 2 to 4 devices of a class, share the layers, their devices the samples (asymmetric PP over DP)
  tensors   ///< a grid: rows share the samples and columns the tensors, both unevenly (asymmetric DP and TP)
};

struct deepcee_options {
  coarsen::group_options groups = {};
  std::optional<bytes> message = {};  ///< size that defines the distance of devices; none: a mean boundary's
  partition::region_cost cost = partition::region_cost::serial_links;  ///< printed: eq. 1 as in the paper
  partition::region_use use = partition::region_use::any;              ///< all: every region has a part of the model
  bool exact = true;  ///< true for exact splits up to max_exact_regions regions; else the paper's beam
  std::vector<region_mode> modes = {region_mode::alone, region_mode::samples, region_mode::layers, region_mode::classes,
                                    region_mode::tensors};
  /// Orders in training if the job names none; not empty.
  std::vector<order_rule> orders = {order_rule::compact, order_rule::eager, order_rule::original, order_rule::automatic, order_rule::zb_v};
  bool alike = false;      ///< true for equal shares of a region's devices, whatever their speeds
  std::size_t splits = 6;  ///< number of cheapest splits, over all microbatch sizes, tried in each mode; twice as many for single regions
};

/// Returns the options of the paper: its cost and beam, all regions with all of their devices, compact order only.
///
/// @param second_level  false: devices of a region get equal shares, as if they were alike.
[[nodiscard]] deepcee_options deepcee_as_printed(bool second_level = true);

/// Plans by regions. Groups the devices by the network (coarsen::group_devices), and splits the model over the regions by eq. 1 for every
/// microbatch size, exactly for up to twelve regions. Each of the best splits gives a plan for each manner: a mode of all regions, with all
/// devices or the faster classes, in the best number of stages or in fewer with a longer longest one. An estimate (the busiest device or
/// boundary, and the path of one microbatch to it) selects max(24, 2 keep) plans for simulation, in training with the orders of each rule:
/// by default compact and eager dispatch, zero bubble's, the best of a search and ZB-V's, or those of job::orders.
///
/// @return      none_found if no split fits by eq. 1, or no plan of one keeps the limits. If the job also allows its own schedule, the
///              orders are given to the best `keep` plans under that schedule.
/// Complexity   that of split_exactly or split_by_beam per microbatch size, one estimate per split and manner, and max(24, 2 keep)
///              judgements per rule of orders.
/// Throws       invalid_input: keep < 1, no modes, no orders, splits < 1; as group_devices for the thresholds.
/// Determinism  yes, except for `elapsed`.
/// Source       DeepCEE, section 3. Deviations: synchronous; regions may be left out, or use one device or their faster classes only, as on
///              the paper's own testbed the network costs more than a second region gains; stages inside a region are pipelined with the
///              rest, including their boundaries; the cost of a region's mode is estimated, and the simulator judges.
[[nodiscard]] plan_result deepcee(const planning_problem& problem, const any_objective& objective, int keep, const deepcee_options& options,
                                  const candidate_observer& observer = {});
[[nodiscard]] plan_result deepcee(const planning_problem& problem, const any_objective& objective, int keep = 10,
                                  const candidate_observer& observer = {});

}  // namespace hetplan::recipes

#ifndef HETPLAN_SEPARATE
#include <hetplan/recipes/deepcee.ipp>
#endif
