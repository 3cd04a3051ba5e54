// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Search for the grid of a stage: its rows share the samples, its columns the tensors. Finds shape, placement of the devices and shares.

#include <functional>
#include <optional>
#include <vector>

#include <hetplan/core/quantity.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::partition {

/// Judge of a stage, either alone or within its plan.
struct grid_judge {
  std::function<double(const stage&)> score;  ///< smaller is better, in any unit, such as seconds; infinite for an unacceptable stage
  /// Lower bound on the score of every stage with a device that is busy for so many seconds per microbatch, or per token of it. Empty:
  /// every grid is judged.
  std::function<double(double busy_s)> at_least = {};
};

struct grid_options {
  bool subsets = false;       ///< true if devices may be left out
  bool alone = false;         ///< true if the stage is the whole plan, so rows and columns may begin anywhere in their ring
  int largest_weight = 4;     ///< of a column, when all grids are tried
  double all_up_to = 20'000;  ///< all grids are tried up to this number; beyond it local search from proposals. 0: local search only
  int judged = 200;           ///< maximum number of judgements of the local search
};

struct found_grid {
  hetplan::stage stage;
  double score = 0;      ///< judge's score, in its unit
  long long judged = 0;  ///< number of grids judged
  bool exact = false;    ///< true if no grid within the options scores less
};

/// Returns the best grid for the layers of a stage.
///
/// Exhaustive search: every shape r x c and every order of the devices, rows in whole samples, columns in weights from 1 to
/// `largest_weight`. A branch is cut off by a bound on the busiest device's work, the all-reduces of its row included, or by memory.
///
/// Local search, if there are too many grids. Its starts, for each shape, are the devices by speed, by rows and by columns, in the given
/// order and next to those with the best links, with samples and weights in proportion to speed, as far as memory allows. From the best
/// start, a part of one column's tensors moves to another column, a sample to another row, two devices trade places, or an unused device
/// replaces one, as long as the score improves. A stage of one column is no grid.
///
/// @param of       stage with layers, name and pipeline; devices and columns are found.
/// @param devices  distinct devices, in the order to keep where nothing else matters.
/// @return         nothing if no grid has a finite score and fits: each device holds its state and its share of one microbatch.
/// Complexity      at most `all_up_to` judgements, or `judged` of them.
/// Throws          invalid_input (no device, duplicate devices, microbatch_size or largest_weight < 1), invalid_model.
/// Determinism     yes; ties: the first grid.
/// Source          DeepCEE, section 3.3.3 (uneven tensor parallelism: capacities 1 : 2 : 2 : 4 are rows 1, 2, columns 1, 2). Search: ours.
[[nodiscard]] std::optional<found_grid> best_grid(const planning_problem& problem, const stage& of, const std::vector<device_id>& devices,
                                                  int microbatch_size, const grid_judge& judge, const grid_options& options = {});

}  // namespace hetplan::partition

#ifndef HETPLAN_SEPARATE
#include <hetplan/partition/best_grid.ipp>
#endif
