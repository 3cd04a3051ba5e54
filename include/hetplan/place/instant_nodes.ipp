// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/instant_nodes.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace HETPLAN_NAMESPACE::place {

HETPLAN_INLINE instant_nodes::instant_nodes(const placement_columns& c) : side_(c.nodes(), 0), rank_(c.nodes(), 0) {
  const placement_table& t = *c.table;
  const std::size_t n = t.size(), d = t.devices();
  const auto takes_none = [&](std::size_t v) {
    for (std::size_t k = 0; k < d; ++k) {
      if (c.may_be_on(v, k) && c.time(v, k) > 0) return false;
    }
    return true;
  };
  const auto carries_none = [&](std::uint32_t e) {
    for (std::size_t pair = 0; pair < d * d; ++pair) {
      if (const double s = carried_s(t, c.rules.copies, e, pair / d, pair % d); s > 0 && std::isfinite(s)) return false;
    }
    return true;
  };
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t v = t.order()[i];
    const auto in = t.in_edges(v);
    rank_[v] = 2 * i;
    const auto at_once = [&](std::uint32_t e) { return carries_none(e) && side_[t.edges()[e].from] < 0; };
    if (takes_none(v) && std::all_of(in.begin(), in.end(), at_once)) side_[v] = -1;
  }
  for (std::size_t i = n; i-- > 0;) {
    const std::size_t v = t.order()[i];
    const auto out = t.out_edges(v);
    const auto at_once = [&](std::uint32_t e) { return carries_none(e) && side_[t.edges()[e].to] > 0; };
    if (side_[v] == 0 && takes_none(v) && std::all_of(out.begin(), out.end(), at_once)) side_[v] = 1;
  }
  for (std::size_t a = n; a < c.nodes(); ++a) {
    const possible_transfer& x = c.transfer(a);
    const auto read_last = [&](std::uint32_t e) { return side_[t.edges()[e].to] > 0; };
    rank_[a] = rank_[x.producer] + 1;
    if (!std::all_of(x.edges.begin(), x.edges.end(), carries_none)) continue;
    if (side_[x.producer] < 0) side_[a] = -1;
    else if (std::all_of(x.edges.begin(), x.edges.end(), read_last)) side_[a] = 1;
  }
}

HETPLAN_INLINE node_order instant_nodes::order_of(std::size_t a, std::size_t b) const {
  const bool back = std::pair(side_[b], rank_[b]) < std::pair(side_[a], rank_[a]);
  return {back ? b : a, back ? a : b, node_order::any_machine, node_order::always};
}

}  // namespace HETPLAN_NAMESPACE::place
