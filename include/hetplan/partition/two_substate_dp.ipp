// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/partition/two_substate_dp.hpp>

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

}  // namespace HETPLAN_NAMESPACE::partition::detail

#ifdef HETPLAN_COMPILED
namespace HETPLAN_NAMESPACE::partition {
template search_result two_substate_dp(const search_tables&, const device_space&, const plan&, const any_objective&, const top_k&,
                                       search_options);
}  // namespace HETPLAN_NAMESPACE::partition
#endif
