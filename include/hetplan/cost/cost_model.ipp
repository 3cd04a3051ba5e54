// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/cost/cost_model.hpp>

#include <algorithm>
#include <cmath>

namespace hetplan {

HETPLAN_INLINE std::optional<std::string> detail::mode_fault(const planning_graph& model, mode how) {
  if (how != mode::generation || model.tokens_per_sample() == 1) return std::nullopt;
  return "model \"" + model.name() + "\": tokens_per_sample = " + std::to_string(model.tokens_per_sample()) +
         "; expected 1 in mode generation, where a step makes one token of each sequence: describe the model per token (a built-in "
         "language model: --tokens 1, in a program zoo::model(name, {.tokens = 1}); a model file: no tokens_per_sample, and every "
         "amount that of one token)";
}

HETPLAN_INLINE void check_mode(const planning_graph& model, mode how) {
  if (const auto fault = detail::mode_fault(model, how)) throw invalid_input(*fault);
}

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
