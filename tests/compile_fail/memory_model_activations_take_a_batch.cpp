// SPDX-License-Identifier: BSL-1.0
// expect: memory_model needs: hetplan::bytes activations(const hetplan::layer&, const hetplan::workload&) const
#include <hetplan/cost/memory_model.hpp>

struct my_model {
  hetplan::bytes state(const hetplan::layer& l, const hetplan::workload&) const { return l.weight; }
  hetplan::bytes activations(const hetplan::layer& l, const hetplan::workload&, int batch) const { return batch * l.activation; }
  hetplan::bytes cache(const hetplan::layer&, const hetplan::workload&) const { return {}; }
};
static_assert(hetplan::check_memory_model<my_model>());
