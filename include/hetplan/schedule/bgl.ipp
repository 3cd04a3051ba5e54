// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/bgl.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace hetplan::schedule {

HETPLAN_INLINE boost::compressed_sparse_row_graph<boost::directedS> boost_graph(const cep_graph& cep) {
  const tasks::task_graph& g = cep.tasks();
  std::vector<std::pair<tasks::node_id, tasks::node_id>> edges;
  for (tasks::node_id n = 0; n < g.size(); ++n) {
    for (const tasks::node_id m : g.successors_of(n)) edges.emplace_back(n, m);
  }
  for (const auto& order : g.device_order) {
    for (std::size_t i = 1; i < order.size(); ++i) edges.emplace_back(order[i - 1], order[i]);
  }
  return {boost::edges_are_unsorted_multi_pass, edges.begin(), edges.end(), g.size()};
}

}  // namespace hetplan::schedule
