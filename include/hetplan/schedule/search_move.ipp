// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/search_move.hpp>

namespace HETPLAN_NAMESPACE::schedule {

namespace detail {

[[nodiscard]] HETPLAN_INLINE int& priority_of(message_rules& rules, const message_chunk& c) { return rules[c.message][c.chunk].priority; }

/// Gives a chunk this priority for itself: what had it, or a later one, makes room.
[[nodiscard]] HETPLAN_INLINE message_rules inserted(message_rules rules, const message_chunk& c, int at) {
  for (auto& message : rules) {
    for (chunk_rule& r : message) r.priority += r.priority >= at ? 1 : 0;
  }
  priority_of(rules, c) = at;
  return rules;
}

}  // namespace detail

HETPLAN_INLINE message_rules overtake_rival::operator()(const cep_graph&, message_rules rules, const contention& at) const {
  const int place = detail::priority_of(rules, at.rival);
  return detail::inserted(std::move(rules), at.urgent, place);
}

HETPLAN_INLINE message_rules hold_back_rival::operator()(const cep_graph&, message_rules rules, const contention& at) const {
  const int place = detail::priority_of(rules, at.urgent) + 1;
  return detail::inserted(std::move(rules), at.rival, place);
}

HETPLAN_INLINE message_rules join_rival::operator()(const cep_graph&, message_rules rules, const contention& at) const {
  detail::priority_of(rules, at.urgent) = detail::priority_of(rules, at.rival);
  return rules;
}

HETPLAN_INLINE message_rules let_rival_join::operator()(const cep_graph&, message_rules rules, const contention& at) const {
  detail::priority_of(rules, at.rival) = detail::priority_of(rules, at.urgent);
  return rules;
}

HETPLAN_INLINE std::vector<any_search_move> usual_moves() { return {overtake_rival{}, hold_back_rival{}, join_rival{}, let_rival_join{}}; }

}  // namespace HETPLAN_NAMESPACE::schedule
