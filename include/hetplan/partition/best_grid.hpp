// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A stage on a grid of devices: rows share its samples, columns its tensors. Which shape, who stands where, how much each takes?

#include <functional>
#include <optional>
#include <vector>

#include <hetplan/core/quantity.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::partition {

/// How a stage is judged: alone, or in its plan.
struct grid_judge {
  std::function<double(const stage&)> score;  ///< of any unit, such as seconds: smaller is better; infinite where the stage will not do
  /// What no stage scores less than in which a device works so many seconds for one microbatch, or one token of it; none: nothing is
  /// left out unjudged.
  std::function<double(double busy_s)> at_least = {};
};

struct grid_options {
  bool subsets = false;       ///< may devices be left out?
  bool alone = false;         ///< is the stage the whole plan? Then rows, and columns, may begin anywhere in their ring
  int largest_weight = 4;     ///< of a column, where all grids are tried
  double all_up_to = 20'000;  ///< grids, of which all are tried; beyond that steps from the proposals. 0: steps alone
  int judged = 200;           ///< by the steps
};

struct found_grid {
  hetplan::stage stage;
  double score = 0;      ///< the judge's, in its unit
  long long judged = 0;  ///< grids
  bool exact = false;    ///< no grid that the options name scores less
};

/// The best grid for the layers of a stage.
///
/// All grids: every shape r x c of the devices, every order of them, rows in whole samples, columns in weights from 1 to
/// `largest_weight`; a branch ends where the busiest device's work, the all-reduces of its row included, or its memory says that nothing
/// behind it helps. Where there are too many, steps: of each shape the devices by speed, by rows and by columns, in their own order
/// and next to those with the best links, samples and weights in proportion to what each can do, as far as memory allows; from the best of
/// these a portion of a column's tensors moves to another one, a sample to another row, two devices change places, or one takes the place
/// of one left out, as often as it helps. A stage of one column is no grid.
///
/// @param of       its layers, name, pipeline; devices and columns are found.
/// @param devices  each once; they come in this order where nothing else matters.
/// @return         nothing where no grid has a finite score and fits: each device holds its state and one microbatch's share.
/// Complexity      at most `all_up_to` judgements, or `judged` of them.
/// Throws          invalid_input (no device, one twice, microbatch_size or largest_weight < 1), invalid_model.
/// Determinism     yes; the first of those that score the same.
/// Source          DeepCEE, section 3.3.3 (uneven tensor parallelism: capacities 1 : 2 : 2 : 4 are rows 1, 2 and columns 1, 2).
///                 Ours: the search.
[[nodiscard]] std::optional<found_grid> best_grid(const planning_problem& problem, const stage& of, const std::vector<device_id>& devices,
                                                  int microbatch_size, const grid_judge& judge, const grid_options& options = {});

}  // namespace hetplan::partition

#ifndef HETPLAN_SEPARATE
#include <hetplan/partition/best_grid.ipp>
#endif
