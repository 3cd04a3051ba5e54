// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/cost/roofline.hpp>

#include <algorithm>

namespace hetplan {

HETPLAN_INLINE seconds roofline::time(const work& w, const device& d) const {
  const flops per_sample = w.flops_per_sample();
  if (w.phase != phase::forward && per_sample == flops{}) return {};
  if (!w.layer.has_flops) {
    throw invalid_input("roofline: layer \"" + w.layer.name + "\" has neither forward_flops nor a profile for device \"" + d.name +
                        "\" of kind \"" + d.kind + "\"");
  }
  if (d.compute.value() <= 0) {
    throw invalid_input("roofline: device \"" + d.name + "\" has no compute and layer \"" + w.layer.name + "\" no profile for its kind \"" +
                        d.kind + "\"");
  }
  const double g = w.tensor_parallel;
  const seconds computing = per_sample * (w.batch + d.half_batch) / g / d.compute;
  const seconds moving = (w.weight_traffic() + w.traffic() * w.batch) / g / d.memory_bandwidth;
  return std::max(computing, moving) + d.launch + gathering(w, d, per_sample);
}

HETPLAN_INLINE seconds roofline::gathering(const work& w, const device& d, flops per_sample) {
  if (w.tensor_parallel == 1 || w.phase == phase::backward_weight || per_sample == flops{}) return {};
  if (!d.interconnect) {
    throw invalid_input("roofline: tensor parallelism on device \"" + d.name + "\" needs its interconnect");
  }
  const double g = w.tensor_parallel;
  return 2 * (g - 1) / g * w.layer.largest_output * w.batch / *d.interconnect;
}

}  // namespace hetplan
