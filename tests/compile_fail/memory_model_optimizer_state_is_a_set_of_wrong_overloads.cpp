// SPDX-License-Identifier: BSL-1.0
// expect: a memory_model's optimizer state is: hetplan::bytes optimizer_state(const hetplan::layer&, const hetplan::workload&) const
#include <hetplan/cost/memory_model.hpp>

struct my_model {
  hetplan::bytes state(const hetplan::layer& l, const hetplan::workload&) const { return 4 * l.weight; }
  double optimizer_state(const hetplan::layer& l, const hetplan::workload&) const { return 2 * l.weight.value(); }
  double optimizer_state(const hetplan::layer& l) const { return 2 * l.weight.value(); }
  hetplan::bytes activations(const hetplan::layer& l, const hetplan::workload&) const { return l.activation; }
  hetplan::bytes cache(const hetplan::layer&, const hetplan::workload&) const { return {}; }
};
static_assert(hetplan::check_memory_model<my_model>());
