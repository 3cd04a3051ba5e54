// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/cost/profiled.hpp>

#include <cmath>
#include <limits>

namespace hetplan {

HETPLAN_INLINE seconds profiled::time(const work& w, const device& d) const {
  const layer_profile* p = w.layer.profile_for(d.kind);
  const auto fail = [&](const char* what) {
    throw invalid_input("profiled: layer \"" + w.layer.name + "\" on device \"" + d.name + "\" of kind \"" + d.kind + "\" " + what);
  };
  if (p == nullptr) fail("has no profile for that kind");
  if (w.tensor_parallel > 1) fail("is measured for one accelerator; expected tensor_parallel 1");
  const auto measured_s = [&](const char* what, std::span<const double> y) {
    const double t = interpolate(p->batch, y, w.batch);
    if (t < 0) {
      throw unknown_time("profiled: layer \"" + w.layer.name + "\", kind \"" + d.kind + "\": the last slope of " + what +
                         " falls and gives " + to_text(t) + " s at batch " + to_text(w.batch) +
                         "; expected >= 0, so measure a larger batch");
    }
    return t;
  };
  if (w.phase == phase::forward) return seconds(measured_s("forward", p->forward_s));
  if (p->backward_s.empty()) fail("has no measured backward, which training needs");
  const double input = w.layer.backward_input_flops.value(), weight = w.layer.backward_weight_flops.value();
  const double mine = w.phase == phase::backward_input ? input : weight;
  const double share = input + weight > 0 ? mine / (input + weight) : 0.5;
  return seconds(share * measured_s("backward", p->backward_s));
}

HETPLAN_INLINE double profiled::largest_batch(const work& w, const device& d) const {
  constexpr double any = std::numeric_limits<double>::infinity();
  const layer_profile* p = w.layer.profile_for(d.kind);
  if (p == nullptr) return any;
  const std::span<const double> x = p->batch, y = w.phase == phase::forward ? p->forward_s : p->backward_s;
  if (y.size() < 2) return any;
  const std::size_t n = y.size();
  const double slope = (y[n - 1] - y[n - 2]) / (x[n - 1] - x[n - 2]);
  if (slope >= 0) return any;
  double last = std::floor(x[n - 2] - y[n - 2] / slope);
  if (last >= most_batch) return any;
  while (interpolate(x, y, last) < 0) --last;  // rounding
  while (interpolate(x, y, last + 1) >= 0) ++last;
  return last;
}

HETPLAN_INLINE double profiled::interpolate(std::span<const double> x, std::span<const double> y, double at) {
  if (x.size() == 1 || at <= x.front()) return y.front();
  std::size_t right = 1;
  while (right + 1 < x.size() && x[right] < at) ++right;
  const double slope = (y[right] - y[right - 1]) / (x[right] - x[right - 1]);
  return y[right - 1] + slope * (at - x[right - 1]);
}

HETPLAN_INLINE seconds profiled_or_roofline::time(const work& w, const device& d) const {
  return w.layer.profile_for(d.kind) != nullptr ? profiled{}.time(w, d) : roofline{}.time(w, d);
}

}  // namespace hetplan
