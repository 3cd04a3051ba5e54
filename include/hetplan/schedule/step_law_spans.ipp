// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/step_law_spans.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include <hetplan/core/at_most.hpp>

namespace hetplan::schedule {

HETPLAN_INLINE std::vector<double> step_law_spans(const pipeline_times& p) {
  check(p);
  constexpr double none = -std::numeric_limits<double>::infinity();
  const std::size_t n = p.stages.size();
  const double m = p.microbatches;
  // From the start of a stage's forward to that of its gradient, and to that of a later stage's forward.
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
