// SPDX-License-Identifier: BSL-1.0
// Values and functions: what the functions are defined in, the headers or hetplan::compiled, is the build's choice.
#include <hetplan/core/version.hpp>
#include <hetplan/graph/planning_graph.hpp>
#ifdef HAS_onnx
#include <hetplan/exchange/onnx_graph.hpp>
#endif

#include <iostream>
#include <utility>

int main() {
#ifdef HAS_onnx
  try {
    static_cast<void>(hetplan::exchange::read_onnx("no model", "no file"));
    return 1;
  } catch (const hetplan::invalid_input&) {
  }
#endif
  hetplan::planning_graph_builder b("two");
  const hetplan::layer_id first = b.add_layer({.name = "first", .forward_flops = hetplan::flops{1}});
  b.add_edge(first, b.add_layer({.name = "second", .forward_flops = hetplan::flops{1}}), hetplan::bytes{1});
  const hetplan::planning_graph two = std::move(b).build();
#ifdef HETPLAN_SEPARATE
  std::cout << hetplan::version << " compiled " << two.size() << '\n';
#else
  std::cout << hetplan::version << " header-only " << two.size() << '\n';
#endif
}
