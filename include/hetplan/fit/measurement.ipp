// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/fit/measurement.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include <hetplan/core/error.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/plan/stage_costs.hpp>
#include <hetplan/simulate/evaluate.hpp>

namespace hetplan::fit {

HETPLAN_INLINE void check_measurement(const measurement& m, const cluster& c) {
  const auto fail = [&](const std::string& what) { throw invalid_input(m.where + ": " + what); };
  const auto require = [&](bool ok, const char* field, double given, const char* expected) {
    if (!ok) fail(std::string(field) + ": expected " + expected + ", got " + to_text(given));
  };
  if (m.model == nullptr) fail("expected a model, got none");
  if (m.devices.empty()) fail("expected a device, got none");
  for (std::size_t i = 0; i < m.devices.size(); ++i) {
    if (!m.devices[i].valid() || m.devices[i].index() >= c.size()) fail("expected devices of cluster \"" + c.name() + "\"");
    for (std::size_t j = 0; j < i; ++j) {
      if (m.devices[i] == m.devices[j]) fail("expected every device once, got \"" + c[m.devices[i]].name + "\" twice");
    }
  }
  if (m.devices.size() > 1 && m.what == measured::layer_seconds) fail("layer_seconds: expected one device, got several");
  if (m.devices.size() > m.model->size()) fail("expected at most as many devices as layers");
  require(m.batch >= 1, "batch", m.batch, "an integer >= 1");
  require(m.prompt >= (m.what == measured::prefill_tokens_per_s ? 1 : 0), "prompt", m.prompt,
          m.what == measured::prefill_tokens_per_s ? "tokens >= 1" : "tokens >= 0");
  require(m.context.value_or(0) >= 0, "context", m.context.value_or(0), "tokens >= 0");
  require(m.tokens >= 1, "tokens", m.tokens, "an integer >= 1");
  require(m.prompt_chunk >= 0, "prompt_chunk", m.prompt_chunk, "tokens >= 0");
  require(m.chunks_in_flight >= 0, "chunks_in_flight", m.chunks_in_flight, "an integer >= 0");
  require(std::isfinite(m.value) && m.value > 0, "value", m.value, "a finite number > 0");
  require(std::isfinite(m.weight) && m.weight >= 0, "weight", m.weight, "a finite number >= 0");
  const bool of_samples = m.what == measured::images_per_s || (m.what == measured::layer_seconds && !m.context);
  if (of_samples && m.prompt > 0 && m.prompt != m.model->tokens_per_sample()) {
    fail("prompt: expected the " + std::to_string(m.model->tokens_per_sample()) + " tokens of a sample of model \"" + m.model->name() +
         "\", or a context, got " + std::to_string(m.prompt));
  }
  if (m.what == measured::layer_seconds && m.context && m.prompt < 1) fail("prompt: expected the new tokens behind the context, got none");
  if (m.phase != timed_phase::forward && (m.what != measured::layer_seconds || m.context))
    fail("phase: a backward is measured in layer_seconds, without a context");
}

namespace detail {

/// Returns the last layers of the stages of a pipeline, one past each.
HETPLAN_INLINE std::vector<std::size_t> ends_of_stages(const planning_graph& model, const std::vector<device_id>& devices,
                                                       const cluster& c) {
  if (devices.size() == 1) return {model.size()};
  std::vector<double> before{0};  // weight bytes that the layers before a boundary read, or the number of layers
  for (const layer& l : model.layers()) before.push_back(before.back() + l.weight_traffic.value());
  if (before.back() <= 0) std::iota(before.begin(), before.end(), 0.0);
  std::vector<std::size_t> cuts;
  const sequence_cuts all(model, sequence_of(model));
  for (std::size_t b = 1; b < model.size(); ++b) {
    const std::vector<crossing> tensors = all.crossings(b);
    const auto is_the_first = [&](const crossing& x) { return x.tensor == tensors.front().tensor; };
    if (std::all_of(tensors.begin(), tensors.end(), is_the_first)) cuts.push_back(b);
  }
  if (cuts.size() + 1 < devices.size()) {
    cuts.resize(model.size() - 1);
    std::iota(cuts.begin(), cuts.end(), std::size_t{1});
  }
  double memory = 0, of_all = 0;
  for (const device_id d : devices) of_all += c[d].memory.value();
  std::vector<std::size_t> ends;
  std::size_t next = 0;  // first cut that is left
  for (std::size_t i = 0; i + 1 < devices.size(); ++i) {
    memory += c[devices[i]].memory.value();
    const double target = before.back() * (memory / of_all);
    const std::size_t last = cuts.size() - (devices.size() - 2 - i);  // the stages behind it need a cut each
    std::size_t best = next;
    for (std::size_t k = next; k < last; ++k) {
      if (std::abs(before[cuts[k]] - target) < std::abs(before[cuts[best]] - target)) best = k;
    }
    ends.push_back(cuts[best]);
    next = best + 1;
  }
  ends.push_back(model.size());
  return ends;
}

}  // namespace detail

HETPLAN_INLINE plan plan_of(const measurement& m, const cluster& c) {
  check_measurement(m, c);
  plan p{.model = m.model->name(), .cluster = c.name(), .planner = "measured", .microbatch_size = m.batch};
  workload& w = p.workload;
  switch (m.what) {
    case measured::prefill_tokens_per_s:
      w.mode = mode::generation;
      w.context = m.context.value_or(0);
      w.prompt = m.prompt;
      w.tokens = 1;
      break;
    case measured::decode_tokens_per_s:
      w.mode = mode::generation;
      w.context = m.context.value_or(0) + m.prompt;
      w.prompt = 0;
      w.tokens = m.tokens;
      break;
    case measured::layer_seconds:
      w.mode = m.context ? mode::generation : m.phase == timed_phase::forward ? mode::inference : mode::training;
      w.tokens = 1;
      if (m.context) {
        w.context = *m.context;
        w.prompt = m.prompt;
      }
      break;
    case measured::images_per_s: w.mode = mode::inference; break;
  }
  w.prompt_chunk = m.prompt_chunk;
  w.chunks_in_flight = m.chunks_in_flight;
  const std::vector<std::size_t> ends = detail::ends_of_stages(*m.model, m.devices, c);
  std::size_t first = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    stage s{.name = "s" + std::to_string(i), .devices = {{m.devices[i], m.batch}}};
    for (; first < ends[i]; ++first) s.layers.emplace_back(first);
    p.stages.push_back(std::move(s));
  }
  return p;
}

HETPLAN_INLINE double predict(const measurement& m, const cluster& c, const any_cost_model& cost) {
  return predict(m, plan_of(m, c), c, cost);
}

HETPLAN_INLINE double predict(const measurement& m, const plan& p, const cluster& c, const any_cost_model& cost) {
  try {
    if (m.what != measured::layer_seconds) {
      const evaluation e = judge(p, *m.model, c, cost).evaluation;
      if (m.what == measured::prefill_tokens_per_s) return e.prompt_tokens_per_second;
      return m.what == measured::decode_tokens_per_s ? e.tokens_per_second : m.batch / e.latency.value();
    }
    const stage_costs s(p, *m.model, c, cost);
    const stage_costs::part& part = s.of_run(stage_id(0), 0, 0);
    switch (m.phase) {
      case timed_phase::forward: return part.forward_s;
      case timed_phase::backward_input: return part.backward_input_s;
      case timed_phase::backward_weight: return part.backward_weight_s;
      case timed_phase::backward: break;
    }
    return part.backward_input_s + part.backward_weight_s;
  } catch (const invalid_input& e) {
    throw invalid_input(m.where + ": " + e.what());
  }
}

HETPLAN_INLINE planning_graph layers_named(const planning_graph& model, const std::vector<std::string>& prefixes) {
  std::vector<char> found(prefixes.size(), 0);
  planning_graph_builder part(model.name(), model.facts());
  std::vector<layer_id> renamed(model.size());
  for (const layer& l : model.layers()) {
    for (std::size_t k = 0; k < prefixes.size(); ++k) {
      if (!l.name.starts_with(prefixes[k])) continue;
      found[k] = 1;
      if (!renamed[l.id.index()].valid()) renamed[l.id.index()] = part.add_layer(spec_of(model, l));
    }
  }
  for (std::size_t k = 0; k < prefixes.size(); ++k) {
    if (found[k] == 0) throw invalid_input("model \"" + model.name() + "\" has no layer whose name begins with \"" + prefixes[k] + "\"");
  }
  for (const layer_edge& e : model.edges()) {
    const layer_id from = renamed[e.from.index()], to = renamed[e.to.index()];
    if (from.valid() && to.valid()) part.add_edge(from, to, e.forward, e.gradient);
  }
  return std::move(part).build();
}

}  // namespace hetplan::fit
