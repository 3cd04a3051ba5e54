// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/cost/cost_model.hpp>

#include <algorithm>
#include <cmath>

namespace hetplan {

HETPLAN_INLINE flops work::of_phase() const {
  switch (phase) {
    case phase::forward: return layer.forward_flops * fraction;
    case phase::backward_input: return layer.backward_input_flops * fraction;
    case phase::backward_weight: return layer.backward_weight_flops * fraction;
    case phase::optimizer_step: break;
  }
  return {};
}

HETPLAN_INLINE double work::phase_ratio() const {
  if (phase == phase::forward) return 1;
  return layer.forward_flops.value() > 0 ? of_phase() / (layer.forward_flops * fraction) : 0;
}

HETPLAN_INLINE double work::pairs() const { return layer.sequence.pairs(new_tokens(), context); }

HETPLAN_INLINE flops work::product_flops() const {
  const flops whole = of_phase();
  if (layer.sequence.attention_flops == flops{}) return whole * share_of_sample();
  const flops paired = layer.sequence.attention_flops * fraction * phase_ratio() * layer.sequence.pairs(layer.tokens_per_sample, 0);
  return std::max(flops{}, whole - paired) * share_of_sample();
}

HETPLAN_INLINE flops work::attention_flops() const {
  if (layer.sequence.attention_flops == flops{}) return {};
  return layer.sequence.attention_flops * fraction * phase_ratio() * pairs();
}

HETPLAN_INLINE bytes work::weight_traffic() const {
  if (!layer.sequence.experts) return layer.weight_traffic * fraction;
  const expert_weights& e = *layer.sequence.experts;
  // Each row passes `active` of the experts, all equally likely: the share that no row passes is left out.
  const double taken = 1 - std::pow(1 - static_cast<double>(e.active) / e.total, batch * new_tokens());
  return (layer.weight_traffic - e.weight + e.weight * taken) * fraction;
}

HETPLAN_INLINE bytes work::attention_traffic() const {
  return layer.sequence.attention_traffic == bytes{} ? bytes{} : layer.sequence.attention_traffic * fraction * pairs();
}

HETPLAN_INLINE bytes work::cache_traffic() const {
  if (!cached || layer.kv_bytes_per_token == bytes{}) return {};
  return layer.kv_bytes_per_token * fraction * (layer.sequence.kept(context + new_tokens()) + new_tokens());
}

HETPLAN_INLINE time_parts& time_parts::operator+=(const time_parts& o) {
  compute += o.compute;
  weights += o.weights;
  activations += o.activations;
  cache += o.cache;
  tier += o.tier;
  launch += o.launch;
  exchange += o.exchange;
  return *this;
}

HETPLAN_INLINE void detail::check_parts(const time_parts& parts, double whole_s, const work& w, const device& d) {
  const double sum = parts.all().value();
  bool fits = std::abs(sum - whole_s) <= relative_tolerance * whole_s;
  for (const seconds s : {parts.compute, parts.weights, parts.activations, parts.cache, parts.tier, parts.launch, parts.exchange})
    fits = fits && s.value() >= 0;
  if (fits) return;
  throw invalid_model("cost model: parts(layer " + std::to_string(w.layer.id.value) + " \"" + w.layer.name + "\", " +
                      std::string(to_string(w.phase)) + ", batch " + to_text(w.batch) + ", device " + std::to_string(d.id.value) + " \"" +
                      d.name + "\") add up to " + to_text(sum) + " s; expected numbers >= 0 that add up to its time, " + to_text(whole_s) +
                      " s");
}

HETPLAN_INLINE work work_kind::of(const layer& l) const {
  work w{l,      phase,         batch, tensor_parallel, context, l.is_split() ? fraction : 1, tokens > 0 ? tokens : l.tokens_per_sample,
         cached, tier_bandwidth};
  if (l.runs_per_request()) {
    w.tokens = 1;
    w.context = 0;
  } else if (cached && l.sequence.last_token) {
    w.context += w.tokens - 1;
    w.tokens = 1;
  }
  return w;
}

HETPLAN_INLINE std::optional<std::string> detail::mode_fault(const planning_graph& model, const workload& w) {
  const int prompt = w.prompt_tokens(model.tokens_per_sample());
  if (w.mode != mode::generation) return std::nullopt;
  const auto layers = model.layers();
  if (std::all_of(layers.begin(), layers.end(), [](const layer& l) { return l.runs_per_request(); }))
    return "model \"" + model.name() + "\": per = \"request\" for every layer; expected one that makes tokens in mode generation";
  for (const layer& l : model.layers()) {
    if (l.sequence.attention != attention_kind::full || l.runs_per_request()) continue;
    if (w.prompt_chunk == 0 || w.prompt_chunk >= prompt) continue;
    return "model \"" + model.name() + "\": layer \"" + l.name + "\" has attention \"full\"; expected prompt_chunk >= prompt (" +
           std::to_string(prompt) + "), as its tokens see the whole prompt, got " + std::to_string(w.prompt_chunk);
  }
  return std::nullopt;
}

HETPLAN_INLINE void check_mode(const planning_graph& model, const workload& w) {
  if (const auto fault = detail::mode_fault(model, w)) throw invalid_input(*fault);
}

namespace detail {

/// Returns the part of a layer's measured backward that a phase of it takes.
[[nodiscard]] HETPLAN_INLINE double share_of_backward(const work& w) {
  const double input = w.layer.backward_input_flops.value(), weight = w.layer.backward_weight_flops.value();
  const double mine = w.phase == phase::backward_input ? input : weight;
  return input + weight > 0 ? mine / (input + weight) : 0.5;
}

}  // namespace detail

HETPLAN_INLINE bool reads_weights(const work& w, const device& d) {
  if (w.phase == phase::forward) return true;
  if (w.layer.profile_for(d.kind) != nullptr) return detail::share_of_backward(w) > 0;
  return w.flops_per_sample() > flops{} || (w.phase == phase::backward_input && w.traffic() > bytes{});
}

HETPLAN_INLINE std::optional<roofline::kernels> roofline::kernels_of(const work& w, const device& d) {
  const flops products = w.product_flops(), attention = w.attention_flops();
  const bool moves = w.phase == phase::backward_input && w.traffic() > bytes{};
  if (w.phase != phase::forward && products + attention == flops{} && !moves) return std::nullopt;
  if (!w.layer.has_flops) {
    throw invalid_input("roofline: layer \"" + w.layer.name + "\" has neither forward_flops nor a profile for device \"" + d.name +
                        "\" of kind \"" + d.kind + "\"");
  }
  if (d.compute.value() <= 0) {
    throw invalid_input("roofline: device \"" + d.name + "\" has no compute and layer \"" + w.layer.name + "\" no profile for its kind \"" +
                        d.kind + "\"");
  }
  const double g = w.tensor_parallel;
  const flops_per_second rate = d.compute_in(w.layer.precision) * share_for(d.efficiency, w.layer.weight_format, d, "efficiency");
  const bytes_per_second bandwidth = d.memory_bandwidth * share_for(d.memory_efficiency, w.layer.weight_format, d, "memory_efficiency");
  const double half = d.half_batch + d.half_rows / w.rows();
  const bytes moved = w.cache_traffic() / d.cache_efficiency + w.attention_traffic();
  const bytes weights = w.offloaded() ? bytes{} : w.weight_traffic(), with_rest = weights + w.traffic() * w.batch;
  const auto share = [](bytes some, bytes all) { return all > bytes{} ? some / all : 0; };
  return kernels{{products * (w.batch + half) / g / rate, with_rest / g / bandwidth, share(weights, with_rest)},
                 {attention * w.batch / g / rate, moved * w.batch / g / bandwidth, share(w.cache_traffic() / d.cache_efficiency, moved)}};
}

HETPLAN_INLINE seconds roofline::time(const work& w, const device& d) const {
  const auto k = kernels_of(w, d);
  return k ? k->products.time() + k->attention.time() + w.layer.calls * d.launch + gathering(w, d) + w.tier_time() : seconds();
}

HETPLAN_INLINE time_parts roofline::parts(const work& w, const device& d) const {
  const auto k = kernels_of(w, d);
  if (!k) return {};
  time_parts p{.tier = w.tier_time(), .launch = w.layer.calls * d.launch, .exchange = gathering(w, d)};
  if (k->products.memory_bound()) {
    p.weights = k->products.traffic * k->products.share;
    p.activations = k->products.traffic - p.weights;
  } else {
    p.compute = k->products.arithmetic;
  }
  if (k->attention.memory_bound()) {
    p.cache = k->attention.traffic * k->attention.share;
    p.activations += k->attention.traffic - p.cache;
  } else {
    p.compute += k->attention.arithmetic;
  }
  return p;
}

HETPLAN_INLINE seconds roofline::gathering(const work& w, const device& d) {
  if (w.tensor_parallel == 1 || w.phase == phase::backward_weight || w.flops_per_sample() == flops{}) return {};
  if (!d.interconnect) {
    throw invalid_input("roofline: tensor parallelism on device \"" + d.name + "\" needs its interconnect");
  }
  const double g = w.tensor_parallel;
  return 2 * (g - 1) / g * w.largest_output() * w.batch / *d.interconnect;
}

HETPLAN_INLINE seconds profiled::time(const work& w, const device& d) const {
  const layer_profile* p = w.layer.profile_for(d.kind);
  const auto fail = [&](const char* what) {
    throw invalid_input("profiled: layer \"" + w.layer.name + "\" on device \"" + d.name + "\" of kind \"" + d.kind + "\" " + what);
  };
  if (p == nullptr) fail("has no profile for that kind");
  if (w.tensor_parallel > 1) fail("is measured for one accelerator; expected tensor_parallel 1");
  if (w.cached && w.layer.tokens_per_sample > 1)
    fail("has a profile of samples of several tokens, which tells no pass of generation; expected tokens_per_sample 1");
  const double batch = w.cached ? w.batch * w.new_tokens() : w.batch;
  const auto measured_s = [&](const char* what, std::span<const double> y) {
    const double t = interpolate(p->batch, y, batch);
    if (t < 0) {
      throw unknown_time("profiled: layer \"" + w.layer.name + "\", kind \"" + d.kind + "\": the last slope of " + what +
                         " falls and gives " + to_text(t) + " s at batch " + to_text(batch) + "; expected >= 0, so measure a larger batch");
    }
    return t;
  };
  if (w.phase == phase::forward) return seconds(measured_s("forward", p->forward_s)) + w.tier_time();
  if (p->backward_s.empty()) fail("has no measured backward, which training needs");
  const double share = detail::share_of_backward(w);
  return seconds(share * measured_s("backward", p->backward_s)) + (share > 0 ? w.tier_time() : seconds());
}

HETPLAN_INLINE time_parts profiled::parts(const work& w, const device& d) const {
  const seconds whole = time(w, d), tier = std::min(w.tier_time(), whole);  // a part of the backward that is 0 reads nothing
  return {.compute = whole - tier, .tier = tier};
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
  return w.cached ? std::floor(last / w.new_tokens()) : last;
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

HETPLAN_INLINE time_parts profiled_or_roofline::parts(const work& w, const device& d) const {
  return w.layer.profile_for(d.kind) != nullptr ? profiled{}.parts(w, d) : roofline{}.parts(w, d);
}

}  // namespace hetplan
