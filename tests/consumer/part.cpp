// SPDX-License-Identifier: BSL-1.0
// A shared library of the user's, which holds a part of hetplan::compiled.
#include <hetplan/graph/planning_graph.hpp>

#include <cstddef>
#include <utility>

std::size_t layers_of_one() {
  hetplan::planning_graph_builder b("one");
  b.add_layer({.name = "only", .forward_flops = hetplan::flops{1}});
  return std::move(b).build().size();
}
