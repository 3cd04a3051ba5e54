// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Time from peak rates: compute or memory traffic, whichever takes longer, plus a launch.

#include <algorithm>

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
  [[nodiscard]] seconds time(const work& w, const device& d) const {
    const flops per_sample = w.flops_per_sample();
    if (w.phase != phase::forward && per_sample == flops{}) return {};
    if (!w.layer.has_flops) {
      throw invalid_input("roofline: layer \"" + w.layer.name + "\" has neither forward_flops nor a profile for device \"" + d.name +
                          "\" of kind \"" + d.kind + "\"");
    }
    if (d.compute.value() <= 0) {
      throw invalid_input("roofline: device \"" + d.name + "\" has no compute and layer \"" + w.layer.name +
                          "\" no profile for its kind \"" + d.kind + "\"");
    }
    const double g = w.tensor_parallel;
    const seconds computing = per_sample * (w.batch + d.half_batch) / g / d.compute;
    const seconds moving = (w.layer.weight_traffic + w.layer.traffic * w.batch) / g / d.memory_bandwidth;
    return std::max(computing, moving) + d.launch + gathering(w, d, per_sample);
  }

 private:
  [[nodiscard]] static seconds gathering(const work& w, const device& d, flops per_sample) {
    if (w.tensor_parallel == 1 || w.phase == phase::backward_weight || per_sample == flops{}) return {};
    if (!d.interconnect) {
      throw invalid_input("roofline: tensor parallelism on device \"" + d.name + "\" needs its interconnect");
    }
    const double g = w.tensor_parallel;
    return 2 * (g - 1) / g * w.layer.largest_output * w.batch / *d.interconnect;
  }
};

static_assert(check_cost_model<roofline>());

}  // namespace hetplan
