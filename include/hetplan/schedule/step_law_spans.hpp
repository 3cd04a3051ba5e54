// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The law of a split backward's step: how long a device is at work at least.

#include <vector>

#include <hetplan/schedule/pipeline_times.hpp>

namespace hetplan::schedule {

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

#ifndef HETPLAN_COMPILED
#include <hetplan/schedule/step_law_spans.ipp>
#endif
