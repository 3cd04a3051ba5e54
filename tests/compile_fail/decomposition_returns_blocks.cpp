// SPDX-License-Identifier: BSL-1.0
// expect: decomposition needs: hetplan::layer_sequence operator()(const hetplan::planning_graph&) const
#include <vector>

#include <hetplan/coarsen/decomposition.hpp>

using namespace hetplan;

struct my_row {
  std::vector<std::vector<layer_id>> operator()(const planning_graph& model) const { return sequence_of(model).blocks; }
};
const decompose::any_decomposition row = my_row{};
