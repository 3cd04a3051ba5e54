// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/cost/cost_model.hpp>

#include <hetplan/core/error.hpp>

namespace hetplan {

HETPLAN_INLINE std::optional<std::string> detail::mode_fault(const planning_graph& model, mode how) {
  if (how != mode::generation || model.tokens_per_sample() == 1) return std::nullopt;
  return "model \"" + model.name() + "\": tokens_per_sample = " + std::to_string(model.tokens_per_sample()) +
         "; expected 1 in mode generation, where a step makes one token of each sequence: describe the model per token (a built-in "
         "language model: --tokens 1, in a program zoo::model(name, {.tokens = 1}); a model file: no tokens_per_sample, and every "
         "amount that of one token)";
}

HETPLAN_INLINE void check_mode(const planning_graph& model, mode how) {
  if (const auto fault = detail::mode_fault(model, how)) throw invalid_input(*fault);
}

}  // namespace hetplan
