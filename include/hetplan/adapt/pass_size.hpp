// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The size of a pass that takes a pipeline's samples through it soonest, in closed form.

#include <span>

#include <hetplan/core/linkage.hpp>

namespace hetplan::adapt {

/// What a stage, or a link, takes for a pass: so long for each, and so long for each of its samples.
struct pass_time {
  double fixed_s = 0;
  double each_s = 0;

  [[nodiscard]] double of(double samples) const { return fixed_s + each_s * samples; }
};

/// One pass through all of them, and the others behind it at the pace of the slowest: sum (a + b m) + (N/m - 1) max (a + b m).
[[nodiscard]] double pipeline_time_s(std::span<const pass_time> parts, long long samples, double pass_samples);

/// The size, from 1 to N samples, for which that is least: where one part is the slowest for all sizes sqrt(N a_max / (sum b - b_max)),
/// else that of some part, or the size at which two parts are equally slow.
///
/// Complexity  O(P^3) for P parts.
/// Source      ours.
[[nodiscard]] double best_pass_size(std::span<const pass_time> parts, long long samples);

}  // namespace hetplan::adapt

#ifndef HETPLAN_COMPILED
#include <hetplan/adapt/pass_size.ipp>
#endif
