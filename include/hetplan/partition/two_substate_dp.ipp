// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/partition/two_substate_dp.hpp>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

namespace HETPLAN_NAMESPACE::partition::detail {

HETPLAN_INLINE std::vector<std::size_t> even_boundaries(const search_tables& t, std::size_t wanted) {
  const std::size_t n = t.sequence.size();
  std::vector<std::size_t> chosen;
  const double* work = t.table.totals(t.classes.front().front(), t.table.max_share());
  double next = 0;
  for (std::size_t b = 0; b <= n; ++b) {
    const bool end = b == n || std::binary_search(t.sequence.chain_first.begin(), t.sequence.chain_first.end(), b);
    if (!end && work[b] < next) continue;
    chosen.push_back(b);
    next = work[b] + work[n] / static_cast<double>(wanted);
  }
  return chosen;
}

HETPLAN_INLINE void probe(const any_objective& o) {
  if (!o.monotone()) return;
  const double points[] = {0, 1e-3, 1, 30, 1e3, 1e6};
  const auto ask = [&](double t, double e) { return checked_score(o, t, e); };
  const auto fell = [&](double t, double e, double t2, double e2) {
    throw invalid_model("objective: score(" + to_text(t) + " s, " + to_text(e) + " J) = " + to_text(ask(t, e)) + " falls to " +
                        to_text(ask(t2, e2)) + " at " + to_text(t2) + " s, " + to_text(e2) + " J; expected non-decreasing in both");
  };
  for (std::size_t i = 0; i < std::size(points); ++i) {
    for (std::size_t j = 0; j + 1 < std::size(points); ++j) {
      const double x = points[i], low = points[j], high = points[j + 1];
      if (ask(low, x) > ask(high, x)) fell(low, x, high, x);
      if (ask(x, low) > ask(x, high)) fell(x, low, x, high);
    }
  }
}

#ifdef HETPLAN_COMPILED
template search_result ever_finer_runs(const search_tables&, const device_space&, const plan&, const any_objective&, const top_k&,
                                       search_options, const any_observer<cell_filled>&);
template search_result ever_finer_runs(const search_tables&, const device_space&, const plan&, const any_objective&, const dominance&,
                                       search_options, const any_observer<cell_filled>&);
template search_result ever_finer_runs(const search_tables&, const device_space&, const plan&, const any_objective&, const exhaustive&,
                                       search_options, const any_observer<cell_filled>&);
#endif

}  // namespace HETPLAN_NAMESPACE::partition::detail
