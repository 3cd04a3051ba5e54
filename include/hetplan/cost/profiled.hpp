// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Time from measurements, and the usual mixture: measured where there is a profile, roofline elsewhere.

#include <span>

#include <hetplan/cost/roofline.hpp>

namespace hetplan {

/// Piecewise linear in batch over the layer's profile for the device's kind: below the first entry its
/// value, above the last the last slope, one entry = constant. The measured backward is shared by
/// backward_input and backward_weight in proportion to their FLOP, half each where both are 0.
///
/// Throws  invalid_input: no profile for the kind, no backward in it, tensor parallelism > 1. unknown_time: the last slope
///         falls, and the batch is so large that less than no time would be left.
struct profiled {
  [[nodiscard]] seconds time(const work& w, const device& d) const;
  /// Where the last slope falls, the last batch that it leaves any time for.
  [[nodiscard]] double largest_batch(const work& w, const device& d) const;

 private:
  static constexpr double most_batch = 1e9;  ///< nobody has larger ones

  [[nodiscard]] static double interpolate(std::span<const double> x, std::span<const double> y, double at);
};

/// A layer profiled for the device's kind uses the profile, any other the roofline: what files mean.
struct profiled_or_roofline {
  [[nodiscard]] seconds time(const work& w, const device& d) const;
  [[nodiscard]] double largest_batch(const work& w, const device& d) const { return profiled{}.largest_batch(w, d); }
};

static_assert(check_cost_model<profiled>() && check_cost_model<profiled_or_roofline>());

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/cost/profiled.ipp>
#endif
