// SPDX-License-Identifier: BSL-1.0
// expect: a memory_model's split of activations is: hetplan::bytes activations_for_weights(const hetplan::layer&, const hetplan::workload&)
// const
#include <hetplan/cost/memory_model.hpp>

struct my_model {
  hetplan::bytes state(const hetplan::layer& l, const hetplan::workload&) const { return l.weight; }
  hetplan::bytes activations(const hetplan::layer& l, const hetplan::workload&) const { return l.activation; }
  double activations_for_weights(const hetplan::layer& l, const hetplan::workload&) const { return l.activation.value(); }
  hetplan::bytes cache(const hetplan::layer&, const hetplan::workload&) const { return {}; }
};
static_assert(hetplan::check_memory_model<my_model>());
