// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/onnx_axes.hpp>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <set>

namespace HETPLAN_NAMESPACE::exchange::detail {

/// "seq", "seq_len", "SequenceLength" and the like.
[[nodiscard]] HETPLAN_INLINE bool is_sequence(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name.starts_with("seq");
}

HETPLAN_INLINE std::map<std::string, long long> size_inputs(onnx::GraphProto& g, const onnx_options& options,
                                                            std::vector<std::string>& assumed, const onnx_failure& fail) {
  constexpr std::size_t most_told = 5;
  const std::map<std::string, long long>& dimensions = options.dimensions;
  bool tokens_known = options.tokens_per_sample.has_value();
  std::set<std::string> constants, used;
  for (const auto& i : g.initializer()) constants.insert(i.name());
  struct free_axis {  // that has no size in the file
    onnx::TensorShapeProto::Dimension* size;
    std::string name, place, input;
    bool first;
  };
  std::vector<free_axis> axes;
  std::vector<std::string> empty;
  for (auto& input : *g.mutable_input()) {
    if (constants.contains(input.name())) continue;
    if (!input.type().has_tensor_type()) fail("input \"" + input.name() + "\": expected a tensor");
    if (!input.type().tensor_type().has_shape()) fail("input \"" + input.name() + "\" has no shape");
    auto& shape = *input.mutable_type()->mutable_tensor_type()->mutable_shape();
    for (int axis = 0; axis < shape.dim_size(); ++axis) {
      auto& d = *shape.mutable_dim(axis);
      const std::string place = input.name() + "[" + std::to_string(axis) + "]";
      if (!d.has_dim_value() || d.dim_value() < 0) axes.push_back({&d, d.dim_param(), place, input.name(), axis == 0});
      else if (d.dim_value() == 0 && dimensions.contains(place)) axes.push_back({&d, "", place, input.name(), false});
      else if (d.dim_value() == 0) empty.push_back(place);
      else if (dimensions.contains(place)) fail("axis \"" + place + "\" is " + std::to_string(d.dim_value()) + " in the file");
    }
  }
  std::map<std::string, long long> sizes = dimensions;
  for (const free_axis& a : axes) {
    if (!a.first || sizes.contains(a.place) || (!a.name.empty() && sizes.contains(a.name))) continue;
    const std::string& called = a.name.empty() ? a.place : a.name;
    sizes[called] = 1;
    assumed.push_back("axis \"" + called + "\" of the inputs is 1");
  }
  for (std::size_t i = 0; i < std::min(empty.size(), most_told); ++i)
    assumed.push_back("axis \"" + empty[i] + "\" of the inputs is 0 in the file: nothing is computed along it, unless \"" + empty[i] +
                      "\" is given a size");
  std::string missing;
  for (const free_axis& a : axes) {
    const auto given = sizes.contains(a.place) ? sizes.find(a.place) : a.name.empty() ? sizes.end() : sizes.find(a.name);
    if (given == sizes.end()) {
      missing += (missing.empty() ? "\"" : ", \"") + (a.name.empty() ? a.place + "\"" : a.name + "\" of input \"" + a.input + "\"");
      continue;
    }
    used.insert(given->first);
    a.size->set_dim_value(given->second);
    if (tokens_known || given->second == 1 || !is_sequence(a.name)) continue;
    tokens_known = true;  // one line is enough
    assumed.push_back("axis \"" + a.name + "\" is " + std::to_string(given->second) +
                      ", yet a sample counts as one token: --tokens-per-sample says how many it has");
  }
  if (!missing.empty()) fail("expected a size for each dynamic axis, got none for " + missing);
  for (const auto& [name, size] : dimensions) {
    if (!used.contains(name)) fail("no dynamic axis of an input is called \"" + name + "\"");
  }
  return sizes;
}

}  // namespace HETPLAN_NAMESPACE::exchange::detail
