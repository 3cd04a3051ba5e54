// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/model_description.hpp>

#include <algorithm>
#include <array>

#include <hetplan/core/error.hpp>

namespace hetplan::exchange {

HETPLAN_INLINE planning_graph graph_of(model_description& d, const import_choice& choice) {
  zoo::model_options o{.tokens = choice.tokens.value_or(std::min(512, d.model.context)),
                       .dtype = choice.dtype.value_or(d.dtype),
                       .weights = choice.weights,
                       .lora = choice.lora,
                       .level = choice.level};
  if (!d.sizes) {
    if (choice.weights.empty()) o.stored = d.weights;
    return zoo::build_language_model(d.name, d.model, o, d.blocks);
  }
  if (!choice.weights.empty())
    throw invalid_input("model \"" + escaped(d.name) + "\": weights = \"" + escaped(choice.weights) + "\"; expected those of the file");
  return zoo::build_language_model(d.name, d.model, o, d.blocks, &*d.sizes, d.family);
}

HETPLAN_INLINE std::vector<std::pair<std::string, bytes>> left_out(const model_description& d) {
  std::vector<std::pair<std::string, bytes>> all = d.ignored;
  if (!d.sizes) return all;
  for (const auto& [name, stored] : *d.sizes) {
    if (!stored.used) all.emplace_back(name, stored.size);
  }
  return all;
}

HETPLAN_INLINE zoo::weight_format quantised(double bits, int nominal, double others) {
  constexpr std::array<std::string_view, 7> names{"q2", "q3", "q4", "q5", "q6", "", "q8"};
  if (nominal < 2 || nominal > 8 || names[static_cast<std::size_t>(nominal - 2)].empty())
    throw invalid_input("expected weights of 2, 3, 4, 5, 6 or 8 bits, got " + std::to_string(nominal));
  const std::string_view name = names[static_cast<std::size_t>(nominal - 2)];
  return {name, name, bits, bits, others, others};
}

HETPLAN_INLINE void tensor_sizes::add(const std::string& name, double size, double elements, bool counted) {
  zoo::stored_weights& s = sizes_[name];
  s.size += bytes(size);
  bool& packed = packed_[name];
  packed = packed || !counted;
  s.elements = packed ? 0 : s.elements + elements;
}

}  // namespace hetplan::exchange
