// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/cost/memory_model.hpp>

#include <cmath>
#include <string>

namespace hetplan {

HETPLAN_INLINE void throw_no_optimizer_state() {
  throw invalid_input(
      "shard_state: the memory model does not tell the optimizer's part of the state; expected a member "
      "hetplan::bytes optimizer_state(const hetplan::layer&, const hetplan::workload&) const");
}

HETPLAN_INLINE void detail::refuse_bytes(double given, const char* member, const layer& l) {
  throw invalid_model("memory model: " + std::string(member) + "(layer " + std::to_string(l.id.value) + " \"" + l.name +
                      "\") = " + to_text(given) + " B; expected finite >= 0");
}

HETPLAN_INLINE void detail::refuse_part(double given, const char* member, const layer& l, double all, const char* whole) {
  throw invalid_model("memory model: " + std::string(member) + "(layer " + std::to_string(l.id.value) + " \"" + l.name +
                      "\") = " + to_text(given) + " B; expected at most its " + whole + ", " + to_text(all) + " B");
}

HETPLAN_INLINE trained_bytes trained_bytes_of(const layer& l, const workload& w) {
  const double weight = l.weight.value();
  if (w.mode != mode::training || !l.trainable) return {.weights = weight};
  if (!w.optimizer) return {.weights = weight, .gradients = weight, .state = weight * w.optimizer_factor};
  const trained_bytes one = bytes_of_parameter(*w.optimizer, l.bytes_per_parameter);
  const double parameters = weight / l.bytes_per_parameter;
  return {one.weights * parameters, one.copy * parameters, one.gradients * parameters, one.state * parameters};
}

HETPLAN_INLINE bytes plain_memory::state(const layer& l, const workload& w) const { return bytes(trained_bytes_of(l, w).all()); }

HETPLAN_INLINE bytes plain_memory::optimizer_state(const layer& l, const workload& w) const { return bytes(trained_bytes_of(l, w).state); }

HETPLAN_INLINE bytes framework_memory::optimizer_state(const layer& l, const workload& w) const {
  return (1 + fragmentation) * plain_memory{}.optimizer_state(l, precise(w));
}

HETPLAN_INLINE bytes framework_memory::activations(const layer& l, const workload& w) const {
  return (1 + fragmentation) * plain_memory{}.activations(l, w);
}

HETPLAN_INLINE bytes framework_memory::activations_for_weights(const layer& l, const workload& w) const {
  return (1 + fragmentation) * plain_memory{}.activations_for_weights(l, w);
}

HETPLAN_INLINE workload framework_memory::precise(workload w) const {
  w.optimizer_factor *= optimizer_precision;
  return w;
}

}  // namespace hetplan
