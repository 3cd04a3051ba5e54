// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/search_start.hpp>

#include <algorithm>
#include <cstdint>

namespace HETPLAN_NAMESPACE::schedule {

HETPLAN_INLINE message_rules order_of_ends::operator()(const cep_graph& cep, const trace& alone) const {
  std::vector<std::pair<double, message_chunk>> ends;
  for (std::uint32_t f = 0; f < cep.messages(); ++f) ends.push_back({alone.transfers[cep.transfers_of(f).front()].end_s, {f, 0}});
  std::sort(ends.begin(), ends.end());
  std::vector<message_chunk> sequence;
  for (const auto& [end, chunk] : ends) sequence.push_back(chunk);
  return rules_of_sequence(cep.messages(), sequence);
}

HETPLAN_INLINE std::vector<any_search_start> usual_starts() {
  return {critical_path_first{}, longest_tail_first{}, order_of_ends{}, earliest_first{}, smallest_first{}, all_equal{}};
}

}  // namespace HETPLAN_NAMESPACE::schedule
