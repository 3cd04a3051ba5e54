// SPDX-License-Identifier: BSL-1.0
// expect: a memory_model's optional member is called activations_for_weights; this model has one of nearly that name
#include <hetplan/cost/memory_model.hpp>

struct my_model {
  hetplan::bytes state(const hetplan::layer& l, const hetplan::workload&) const { return l.weight; }
  hetplan::bytes activations(const hetplan::layer& l, const hetplan::workload&) const { return l.activation; }
  hetplan::bytes activations_for_weigths(const hetplan::layer& l, const hetplan::workload&) const { return l.activation; }
  hetplan::bytes cache(const hetplan::layer&, const hetplan::workload&) const { return {}; }
};
static_assert(hetplan::check_memory_model<my_model>());
