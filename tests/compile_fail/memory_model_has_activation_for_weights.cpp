// SPDX-License-Identifier: BSL-1.0
// expect: a memory_model's optional member is called activations_for_weights; this model has one of nearly that name
#include <hetplan/cost/memory_model.hpp>

using namespace hetplan;

struct my_memory {
  bytes state(const layer& l, const workload&) const { return l.weight; }
  bytes activations(const layer& l, const workload&) const { return l.activation; }
  bytes cache(const layer&, const workload&) const { return {}; }
  bytes activation_for_weights(const layer& l, const workload&) const { return l.activation_for_weights; }
};
static_assert(check_memory_model<my_memory>());
