// SPDX-License-Identifier: BSL-1.0
// expect: memory_model needs: hetplan::bytes state(const hetplan::layer&, const hetplan::workload&) const
#include <hetplan/problem/planning_problem.hpp>

using namespace hetplan;

struct my_memory {
  double state(const layer&, const workload&) const { return 1e6; }
  bytes activations(const layer& l, const workload&) const { return l.activation; }
  bytes cache(const layer&, const workload&) const { return {}; }
};
const judge_models wrong{.memory = my_memory{}};
