// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Time from peak rates: compute or memory traffic, whichever takes longer, plus a launch.

#include <hetplan/cost/cost_model.hpp>

namespace hetplan {

/// max(FLOP b / (peak b/(b+h)), (weight traffic + traffic b) / memory bandwidth) + launch, h = half_batch.
///
/// Tensor parallelism g divides FLOP, weight traffic and traffic by g and adds, per layer, the
/// 2(g-1)/g of the largest out-edge that g accelerators gather over the interconnect, in the forward and
/// again in the backward_input (not where that phase has no FLOP). A backward part without FLOP takes 0 s;
/// a forward always counts. `context` is not read.
///
/// Throws  invalid_input: no FLOP known for the layer, no compute for the device, no interconnect where g > 1.
struct roofline {
  [[nodiscard]] seconds time(const work& w, const device& d) const;

 private:
  [[nodiscard]] static seconds gathering(const work& w, const device& d, flops per_sample);
};

static_assert(check_cost_model<roofline>());

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/cost/roofline.ipp>
#endif
