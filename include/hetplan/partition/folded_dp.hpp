// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Dynamic program over pipelines of single devices that may hold several stages: the fold of the step law, and its best drafts.

#include <cstddef>
#include <vector>

#include <hetplan/partition/pipeline_draft.hpp>
#include <hetplan/partition/search_tables.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::partition {

struct folded_options {
  int slots = 2;                        ///< most stages of a device
  std::size_t stages = 12;              ///< most stages
  bool recompute = false;               ///< true: stages may recompute their activations (training)
  std::size_t labels = 4;               ///< partial drafts kept per boundary, devices used and first device; 0: all, for an exact answer
  std::size_t drafts = 4;               ///< most drafts returned
  std::vector<device_id> devices = {};  ///< devices that may have stages; empty: all
  std::vector<std::size_t> boundaries = {};  ///< blocks where stages may begin, ascending, without 0; empty: all
  long long most_extensions = 1LL << 40;     ///< limit on the effort; the search then returns what it has
};

/// A draft and its time by the folded step law.
struct folded_draft {
  pipeline_draft draft;
  double response_s = 0;
};

/// Returns the drafts that take the least time by the folded step law, for given microbatches.
///
/// The law is that of the dominant step (estimate/step_law.hpp) with two changes: passes may have unequal sizes, and a device is busy with
/// all of its stages. Stage i has the work W_i of all passes. A fill step e_i is the forward of the first pass and, in training, the
/// backward of the last pass. A boundary between two devices is a step, too, with all its traffic as work. Then in training
///
///     T = max( max_i (W_i + sum_{j<i} e_j),  max_d (sum_{i on d} W_i + sum_{j < first stage of d} e_j) ) + reductions
///
/// and without backwards the steps behind a stage, or behind a device's last stage, count as well. A tensor that stages of several devices
/// share is reduced over a ring at the end. Memory: each device has room for its state, with shared tensors once, for the largest pass of
/// each of its stages, and for its largest recomputation. In generation T is the time between tokens, max(max_d sum W_i, sum_i e_i).
///
/// @param sizes  samples of the passes in order, in 1 ... max_share of the tables.
/// @return       best first, distinct; rules and policy are the defaults of drafts. None if nothing fits, or for more than 16
///               devices, or a model more than 64 shared tensors.
/// Complexity    exact: exponential in the devices. With labels: boundaries^2 x (slots + 1)^devices x devices^2 x labels.
/// Determinism   ties: fewer stages, then the order of the search.
/// Source        ours; the step law: Asteroid, section 3.2, eqs. 4-6.
[[nodiscard]] std::vector<folded_draft> folded_dp(const planning_problem& problem, const search_tables& tables,
                                                  const std::vector<int>& sizes, const folded_options& options = {});

}  // namespace hetplan::partition

#ifndef HETPLAN_SEPARATE
#include <hetplan/partition/folded_dp.ipp>
#endif
