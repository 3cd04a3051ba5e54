// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Table of a pipeline's times, from which device orders are made without layers or networks.

#include <cstddef>
#include <limits>
#include <vector>

#include <hetplan/plan/plan.hpp>

namespace hetplan::schedule {

/// Times and memory of one stage for one microbatch, in any unit.
///
/// A forward takes `activation`. The input gradient frees all of it but `kept_for_weights`, which the weight gradient frees. A stage that
/// recomputes holds only its inputs, and takes `recomputed` on top while its backward runs.
struct phase_times {
  std::size_t device = 0;
  double forward = 0, backward_input = 0, backward_weight = 0;
  double activation = 1, kept_for_weights = 0.5, recomputed = 0;

  [[nodiscard]] double work() const { return forward + backward_input + backward_weight; }
};

/// Delays from a stage to a later one, for the output and for its gradient. Delays are pure: several at once do not contend.
struct stage_delay {
  std::size_t from = 0, to = 0;
  double forward = 0, backward = 0;
};

/// A pipeline: stages in topological order on devices that may hold several, and the edges between them.
struct pipeline_times {
  std::vector<phase_times> stages;
  std::vector<stage_delay> edges;
  int microbatches = 1;
  std::vector<double> memory = {};  ///< by device; empty: no limit

  [[nodiscard]] std::size_t devices() const;
  [[nodiscard]] double memory_of(std::size_t device) const {
    return memory.empty() ? std::numeric_limits<double>::infinity() : memory[device];
  }
};

/// Returns a chain of stages with a delay between them, in the unit of their times; no delay between stages of one device.
/// Complexity  O(stages).   Throws  nothing: whoever orders the table checks it.
[[nodiscard]] pipeline_times chain_of(std::vector<phase_times> stages, double delay, int microbatches, std::vector<double> memory = {});

/// Returns a pipeline of equal stages in which device d holds stages d and 2 devices - 1 - d: the first and last stage share a device.
/// Source  Qi et al., Pipeline Parallelism with Controllable Memory, 2024, section 3.2.
[[nodiscard]] pipeline_times v_shape(const phase_times& each, std::size_t devices, double delay, int microbatches,
                                     std::vector<double> memory = {});

/// Returns a pipeline of equal stages in which device d holds stages d, d + devices, d + 2 devices, …
/// Source  Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters, 2021, section 2.2.
[[nodiscard]] pipeline_times interleaved(const phase_times& each, std::size_t devices, std::size_t chunks, double delay, int microbatches,
                                         std::vector<double> memory = {});

/// Throws invalid_input unless times are finite and not negative, edges lead to later stages, and each device has room for one microbatch
/// of each of its stages plus its largest recomputation.
void check(const pipeline_times& p);

/// By device: the tasks in the order in which it runs them.
using orders_by_device = std::vector<std::vector<order_entry>>;

/// Returns a lower bound on each device's span under any orders. A device has its work, and before its first input gradient arrives it can
/// only run forwards, as many as its memory holds. For a chain with one stage s per device, of which ⌊M⌋ activations fit,
///
///   m (F + B + W)_s + max(0, window_s - min(m, ⌊M⌋) F_s),   window_s = F_s + B_{s+1} + 2 c_s + window_{s+1}, of the last stage F.
///
/// A device with several stages waits from its first forward to the first gradient that any of them can have; forwards of all fill that
/// time.
///
/// Complexity   O(stages * edges).   Source  semantics, section 5 (step law); for several stages of a device ours.
/// Throws       invalid_input (see check).
[[nodiscard]] std::vector<double> step_law_spans(const pipeline_times& p);

}  // namespace hetplan::schedule

#ifndef HETPLAN_SEPARATE
#include <hetplan/schedule/pipeline_times.ipp>
#endif
