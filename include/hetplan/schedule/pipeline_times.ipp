// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/pipeline_times.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <hetplan/core/error.hpp>

namespace hetplan::schedule {

HETPLAN_INLINE std::size_t pipeline_times::devices() const {
  std::size_t n = memory.size();
  for (const phase_times& s : stages) n = std::max(n, s.device + 1);
  return n;
}

HETPLAN_INLINE pipeline_times chain_of(std::vector<phase_times> stages, double delay, int microbatches, std::vector<double> memory) {
  pipeline_times p{.stages = std::move(stages), .edges = {}, .microbatches = microbatches, .memory = std::move(memory)};
  for (std::size_t s = 0; s + 1 < p.stages.size(); ++s) {
    const double d = p.stages[s].device == p.stages[s + 1].device ? 0 : delay;
    p.edges.push_back({.from = s, .to = s + 1, .forward = d, .backward = d});
  }
  return p;
}

HETPLAN_INLINE pipeline_times v_shape(const phase_times& each, std::size_t devices, double delay, int microbatches,
                                      std::vector<double> memory) {
  std::vector<phase_times> stages(2 * devices, each);
  for (std::size_t s = 0; s < stages.size(); ++s) stages[s].device = std::min(s, 2 * devices - 1 - s);
  return chain_of(std::move(stages), delay, microbatches, std::move(memory));
}

HETPLAN_INLINE pipeline_times interleaved(const phase_times& each, std::size_t devices, std::size_t chunks, double delay, int microbatches,
                                          std::vector<double> memory) {
  std::vector<phase_times> stages(chunks * devices, each);
  for (std::size_t s = 0; s < stages.size(); ++s) stages[s].device = s % devices;
  return chain_of(std::move(stages), delay, microbatches, std::move(memory));
}

HETPLAN_INLINE void check(const pipeline_times& p) {
  const auto fail = [](const std::string& what) { throw invalid_input("pipeline times: " + what); };
  if (p.microbatches < 1) fail("microbatches = " + std::to_string(p.microbatches) + "; expected >= 1");
  if (!p.memory.empty() && p.memory.size() < p.devices()) fail("a memory for some devices only");
  std::vector<double> needed(p.devices(), 0.0), recomputed(p.devices(), 0.0);
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    const phase_times& t = p.stages[s];
    for (const double x : {t.forward, t.backward_input, t.backward_weight, t.activation, t.kept_for_weights, t.recomputed}) {
      if (!std::isfinite(x) || x < 0) fail("stage " + std::to_string(s) + " has " + to_text(x) + "; expected a finite number >= 0");
    }
    if (!at_most(t.kept_for_weights, t.activation + t.recomputed)) fail("stage " + std::to_string(s) + " keeps more than it has");
    needed[t.device] += t.activation;
    recomputed[t.device] = std::max(recomputed[t.device], t.recomputed);
  }
  for (const stage_delay& e : p.edges) {
    if (e.from >= e.to || e.to >= p.stages.size()) {
      fail("an edge from stage " + std::to_string(e.from) + " to " + std::to_string(e.to) + "; expected a later stage");
    }
    if (!std::isfinite(e.forward) || !std::isfinite(e.backward) || e.forward < 0 || e.backward < 0) fail("a delay that is no time");
  }
  for (std::size_t d = 0; d < needed.size(); ++d) {
    if (at_most(needed[d] + recomputed[d], p.memory_of(d))) continue;
    fail("device " + std::to_string(d) + " has room for " + to_text(p.memory_of(d)) + "; one microbatch of its stages takes " +
         to_text(needed[d] + recomputed[d]));
  }
}

HETPLAN_INLINE std::vector<double> step_law_spans(const pipeline_times& p) {
  check(p);
  constexpr double none = -std::numeric_limits<double>::infinity();
  const std::size_t n = p.stages.size();
  const double m = p.microbatches;
  // Least time from the start of a stage's forward to the start of its gradient, and to that of a later stage's forward.
  std::vector<double> window(n);
  std::vector<std::vector<double>> ahead(n, std::vector<double>(n, none));
  for (std::size_t s = n; s-- > 0;) {
    window[s] = p.stages[s].forward;
    ahead[s][s] = 0;
    for (const stage_delay& e : p.edges) {
      if (e.from != s) continue;
      window[s] = std::max(window[s], p.stages[s].forward + e.forward + window[e.to] + p.stages[e.to].backward_input + e.backward);
      for (std::size_t u = 0; u < n; ++u) ahead[s][u] = std::max(ahead[s][u], p.stages[s].forward + e.forward + ahead[e.to][u]);
    }
  }
  std::vector<double> spans(p.devices(), 0.0);
  for (std::size_t d = 0; d < spans.size(); ++d) {
    double work = 0, forwards = 0, longest = 0, rate = 0;
    double least_activation = std::numeric_limits<double>::infinity(), wait = std::numeric_limits<double>::infinity();
    for (std::size_t s = 0; s < n; ++s) {
      const phase_times& x = p.stages[s];
      if (x.device != d) continue;
      work += m * x.work();
      forwards += m * x.forward;
      longest = std::max(longest, x.forward);
      least_activation = std::min(least_activation, x.activation);
      if (x.forward > 0) rate = std::max(rate, x.activation > 0 ? x.forward / x.activation : std::numeric_limits<double>::infinity());
      double first = 0;
      for (std::size_t a = 0; a <= s; ++a) {
        if (p.stages[a].device == d) first = std::max(first, ahead[a][s] + window[s]);
      }
      wait = std::min(wait, first);
    }
    if (work == 0) continue;
    const double room = p.memory_of(d) * (1 + relative_tolerance);
    if (std::isfinite(room) && least_activation > 0) {
      forwards = std::min({forwards, std::floor(room / least_activation) * longest, room * rate});
    }
    spans[d] = work + std::max(0.0, wait - forwards);
  }
  return spans;
}

}  // namespace hetplan::schedule
