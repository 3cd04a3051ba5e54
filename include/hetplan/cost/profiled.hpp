// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Time from measurements, and the usual mixture: measured where there is a profile, roofline elsewhere.

#include <algorithm>
#include <span>

#include <hetplan/cost/roofline.hpp>

namespace hetplan {

/// Piecewise linear in batch over the layer's profile for the device's kind: below the first entry its
/// value, above the last the last slope, one entry = constant. The measured backward is shared by
/// backward_input and backward_weight in proportion to their FLOP, half each where both are 0.
///
/// Throws  invalid_input: no profile for the kind, no backward in it, tensor parallelism > 1.
struct profiled {
  [[nodiscard]] seconds time(const work& w, const device& d) const {
    const layer_profile* p = w.layer.profile_for(d.kind);
    const auto fail = [&](const char* what) {
      throw invalid_input("profiled: layer \"" + w.layer.name + "\" on device \"" + d.name + "\" of kind \"" + d.kind + "\" " + what);
    };
    if (p == nullptr) fail("has no profile for that kind");
    if (w.tensor_parallel > 1) fail("is measured for one accelerator; expected tensor_parallel 1");
    if (w.phase == phase::forward) return seconds(interpolate(p->batch, p->forward_s, w.batch));
    if (p->backward_s.empty()) fail("has no measured backward, which training needs");
    const double input = w.layer.backward_input_flops.value(), weight = w.layer.backward_weight_flops.value();
    const double mine = w.phase == phase::backward_input ? input : weight;
    const double share = input + weight > 0 ? mine / (input + weight) : 0.5;
    return seconds(share * interpolate(p->batch, p->backward_s, w.batch));
  }

 private:
  [[nodiscard]] static double interpolate(std::span<const double> x, std::span<const double> y, double at) {
    if (x.size() == 1 || at <= x.front()) return y.front();
    std::size_t right = 1;
    while (right + 1 < x.size() && x[right] < at) ++right;
    const double slope = (y[right] - y[right - 1]) / (x[right] - x[right - 1]);
    return std::max(0.0, y[right - 1] + slope * (at - x[right - 1]));  // a falling last slope must not end below zero
  }
};

/// A layer profiled for the device's kind uses the profile, any other the roofline: what files mean.
struct profiled_or_roofline {
  [[nodiscard]] seconds time(const work& w, const device& d) const {
    return w.layer.profile_for(d.kind) != nullptr ? profiled{}.time(w, d) : roofline{}.time(w, d);
  }
};

static_assert(check_cost_model<profiled>() && check_cost_model<profiled_or_roofline>());

}  // namespace hetplan
