// SPDX-License-Identifier: BSL-1.0
#pragma once
/// How much devices compute, in one number each.

#include <span>
#include <vector>

#include <hetplan/cluster/device.hpp>
#include <hetplan/cost/any_cost_model.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan::coarsen {

/// Work that every device is timed with.
struct benchmark {
  std::vector<work> calls;  ///< one behind the other; their layers must outlive it
  double weight = 1;        ///< what one run of it counts
};

/// By device: the sum over benchmarks of weight / time, p_c.
///
/// @param cost     whose times count: that of the problem.
/// Complexity      devices * calls questions to the cost model.
/// Throws          invalid_input (no benchmark, a weight that is negative or not finite, weights that are all 0, a benchmark that takes
///                 no time); invalid_model (a time that is negative or not finite).
/// Source          DeepCEE, section 3.2.1.
[[nodiscard]] std::vector<double> compute_scores(std::span<const device> devices, const any_cost_model& cost,
                                                 std::span<const benchmark> benchmarks);

/// The model as the only benchmark, one microbatch forward and, in training, backward: samples per second. Its layers are no benchmarks of
/// their own, for a sum of w_i / t_i is led by those that take next to no time.
///
/// @param batch  samples of the microbatch, > 0.
/// Complexity    devices * layers questions.   Throws  as above; invalid_input (a batch that is not finite or <= 0).
/// Source        DeepCEE, section 3.2.1; which benchmark is ours.
[[nodiscard]] std::vector<double> compute_scores(std::span<const device> devices, const any_cost_model& cost, const planning_graph& model,
                                                 mode mode = mode::training, double batch = 1);

/// Where there is nothing to time: the peak rate of one accelerator, in FLOP/s.
///
/// Throws  invalid_input (a device whose rate is not known).   Source  ours.
[[nodiscard]] std::vector<double> compute_scores(std::span<const device> devices);

}  // namespace hetplan::coarsen

#ifndef HETPLAN_COMPILED
#include <hetplan/coarsen/compute_scores.ipp>
#endif
