// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A pipeline as a table of times: what the orders of its devices are made from, without layers or networks.

#include <cstddef>
#include <limits>
#include <vector>

#include <hetplan/plan/plan.hpp>

namespace hetplan::schedule {

/// One stage for one microbatch. Times are of any one unit, and so is memory; rules depend on neither.
///
/// A forward takes `activation`; the gradient of the inputs gives it back but for `kept_for_weights`, which the gradient of the weights
/// gives back. A stage that recomputes holds its inputs alone and takes `recomputed` on top while its backward runs.
struct phase_times {
  std::size_t device = 0;
  double forward = 0, backward_input = 0, backward_weight = 0;
  double activation = 1, kept_for_weights = 0.5, recomputed = 0;

  [[nodiscard]] double work() const { return forward + backward_input + backward_weight; }
};

/// The output of a stage goes to a later one, and its gradient comes back: pure delay, several at once do not disturb each other.
struct stage_delay {
  std::size_t from = 0, to = 0;
  double forward = 0, backward = 0;
};

/// Stages in an order in which `from` stands before `to`, on devices that may have several.
struct pipeline_times {
  std::vector<phase_times> stages;
  std::vector<stage_delay> edges;
  int microbatches = 1;
  std::vector<double> memory = {};  ///< by device; none: no limit

  [[nodiscard]] std::size_t devices() const;
  /// Of a device.
  [[nodiscard]] double memory_of(std::size_t device) const {
    return memory.empty() ? std::numeric_limits<double>::infinity() : memory[device];
  }
};

/// Each stage feeds the next one, `delay` after it, in the unit of its times; none between stages of one device.
///
/// Complexity  O(stages).   Throws  nothing: whoever orders the table checks it.
[[nodiscard]] pipeline_times chain_of(std::vector<phase_times> stages, double delay, int microbatches, std::vector<double> memory = {});

/// A pipeline of equal stages in which device d holds stages d and 2 devices - 1 - d, so the last stage is where the first is.
///
/// Source  Qi et al., Pipeline Parallelism with Controllable Memory, 2024, section 3.2.
[[nodiscard]] pipeline_times v_shape(const phase_times& each, std::size_t devices, double delay, int microbatches,
                                     std::vector<double> memory = {});

/// A pipeline of equal stages in which device d holds stages d, d + devices, d + 2 devices, …
///
/// Source  Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters, 2021, section 2.2.
[[nodiscard]] pipeline_times interleaved(const phase_times& each, std::size_t devices, std::size_t chunks, double delay, int microbatches,
                                         std::vector<double> memory = {});

/// Throws invalid_input unless times are finite and not negative, edges lead to later stages and each device has room for one
/// microbatch of each of its stages and, where one recomputes, for the largest that does.
void check(const pipeline_times& p);

/// Who runs what in which order: by device.
using orders_by_device = std::vector<std::vector<order_entry>>;

// The law of a split backward's step: how long a device is at work at least.

/// No orders give a device a shorter span: it has its work, and before its first gradient of inputs comes it can only run forwards, as many
/// as its memory holds. For a chain with one stage s per device, of which ⌊M⌋ activations fit,
///
///   m (F + B + W)_s + max(0, window_s - min(m, ⌊M⌋) F_s),   window_s = F_s + B_{s+1} + 2 c_s + window_{s+1}, of the last stage F.
///
/// A device of several stages waits from its first forward to the first gradient that any of them can have, and forwards of all of them
/// fill that time.
///
/// @return      by device.
/// Complexity   O(stages * edges).   Source  semantics, section 5 (step law); for several stages of a device ours.
/// Throws       invalid_input (see check).
[[nodiscard]] std::vector<double> step_law_spans(const pipeline_times& p);

}  // namespace hetplan::schedule

#ifndef HETPLAN_SEPARATE
#include <hetplan/schedule/pipeline_times.ipp>
#endif
