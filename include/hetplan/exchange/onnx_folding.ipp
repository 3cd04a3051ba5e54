// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/onnx_folding.hpp>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

namespace HETPLAN_NAMESPACE::exchange::detail {

/// Elementwise arithmetic; nothing where it has no integer result.
[[nodiscard]] HETPLAN_INLINE std::optional<long long> calculate(const std::string& op, bool whole, long long a, long long b) {
  constexpr long long most = 1LL << 31;
  if (a > most || b > most || a < -most || b < -most) return std::nullopt;
  if (op == "Add") return a + b;
  if (op == "Sub") return a - b;
  if (op == "Mul") return a * b;
  if (op == "Div" && b != 0 && (whole || a % b == 0)) return a / b;
  if (op == "Mod" && b > 0 && a >= 0) return a % b;
  if (op == "Min") return std::min(a, b);
  if (op == "Max") return std::max(a, b);
  if (op == "Equal") return a == b ? 1 : 0;
  if (op == "Less") return a < b ? 1 : 0;
  if (op == "Greater") return a > b ? 1 : 0;
  return std::nullopt;
}

/// What is computed number by number: one, two or three operands, of which some may be a single number for all.
[[nodiscard]] HETPLAN_INLINE std::optional<folded_values> fold_elementwise(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  const std::string& op = n.op_type();
  const bool choice = op == "Where";
  if (n.input_size() != (choice ? 3 : 2)) return std::nullopt;
  std::size_t size = 1;
  const onnx_tensor* widest = &tensor(n.input(0));
  for (const auto& name : n.input()) {
    const onnx_tensor& t = tensor(name);
    if (t.values->size() != 1) size = t.values->size();
    if (t.values->size() > 1 || widest->shape.size() < t.shape.size()) widest = &t;
  }
  folded_values result;
  result.shape = widest->shape;
  for (const auto& name : n.input()) {
    if (size == 0 || (tensor(name).values->size() != size && tensor(name).values->size() != 1)) return std::nullopt;
    if (tensor(name).shape.size() > widest->shape.size()) result.shape.reset();
  }
  const auto at = [&](int input, std::size_t i) {
    const auto& v = *tensor(n.input(input)).values;
    return v[v.size() == 1 ? 0 : i];
  };
  const bool compares = op == "Equal" || op == "Less" || op == "Greater";
  const int type = tensor(n.input(choice ? 1 : 0)).type;
  result.type = compares ? static_cast<int>(onnx::TensorProto::BOOL) : type;
  for (std::size_t i = 0; i < size; ++i) {
    const auto v =
        choice ? std::optional(at(0, i) != 0 ? at(1, i) : at(2, i)) : calculate(op, type != onnx::TensorProto::FLOAT, at(0, i), at(1, i));
    if (!v) return std::nullopt;
    result.values.push_back(*v);
  }
  return result;
}

/// Picks places of every axis of an array.
[[nodiscard]] HETPLAN_INLINE std::vector<long long> pick(const std::vector<long long>& from, const std::vector<long long>& shape,
                                                         const std::vector<std::vector<long long>>& places) {
  std::vector<std::size_t> at{0};
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    std::vector<std::size_t> deeper;
    for (const std::size_t base : at) {
      for (const long long i : places[axis]) deeper.push_back(base * static_cast<std::size_t>(shape[axis]) + static_cast<std::size_t>(i));
    }
    at = std::move(deeper);
  }
  std::vector<long long> picked;
  for (const std::size_t i : at) picked.push_back(from[i]);
  return picked;
}

/// All places of an axis, in order.
[[nodiscard]] HETPLAN_INLINE std::vector<long long> all_places(long long size) {
  std::vector<long long> all(static_cast<std::size_t>(size));
  std::iota(all.begin(), all.end(), 0LL);
  return all;
}

[[nodiscard]] HETPLAN_INLINE std::optional<folded_values> fold_slice(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  using list = std::vector<long long>;
  const onnx_tensor& x = tensor(n.input(0));
  const auto numbers = [&](int i, std::string_view old) {
    const auto& given = input_of(n, i);
    return given.empty() ? attribute_list(n, old) : *tensor(given).values;
  };
  const list starts = numbers(1, "starts"), ends = numbers(2, "ends"), axes = numbers(3, "axes"), steps = numbers(4, "steps");
  const auto rank = static_cast<long long>(x.shape.size());
  if (x.values->empty()) return std::nullopt;
  std::vector<list> places;
  for (const long long size : x.shape) places.push_back(all_places(size));
  if (ends.size() != starts.size() || (!axes.empty() && axes.size() != starts.size())) return std::nullopt;
  for (std::size_t k = 0; k < starts.size(); ++k) {
    long long axis = axes.empty() ? static_cast<long long>(k) : axes[k];
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return std::nullopt;
    const long long size = x.shape[static_cast<std::size_t>(axis)], step = k < steps.size() ? steps[k] : 1;
    if (step == 0 || step > size + 1 || step < -size - 1) return std::nullopt;
    const auto place = [&](long long i) {
      if (i < 0) i = i < -size ? -1 : i + size;
      return step > 0 ? std::clamp(i, 0LL, size) : std::clamp(i, -1LL, size - 1);
    };
    list& cut = places[static_cast<std::size_t>(axis)];
    cut.clear();
    for (long long i = place(starts[k]); step > 0 ? i < place(ends[k]) : i > place(ends[k]); i += step) cut.push_back(i);
  }
  folded_values result{.values = pick(*x.values, x.shape, places), .type = x.type, .shape = list{}};
  for (const list& axis : places) result.shape->push_back(static_cast<long long>(axis.size()));
  return result;
}

[[nodiscard]] HETPLAN_INLINE std::optional<folded_values> fold_transpose(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  const onnx_tensor& x = tensor(n.input(0));
  const auto perm = attribute_list(n, "perm");
  const bool swaps = x.shape.size() == 2 && (perm.empty() || perm == std::vector<long long>{1, 0});
  if (!swaps) return std::nullopt;
  folded_values result{.values = {}, .type = x.type, .shape = std::vector{x.shape[1], x.shape[0]}};
  for (long long c = 0; c < x.shape[1]; ++c) {
    for (long long r = 0; r < x.shape[0]; ++r) result.values.push_back((*x.values)[static_cast<std::size_t>(r * x.shape[1] + c)]);
  }
  return result;
}

HETPLAN_INLINE std::optional<folded_values> fold(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  using list = std::vector<long long>;
  const std::string& op = n.op_type();
  const auto in = [&](int i) -> const onnx_tensor& { return tensor(input_of(n, i)); };
  const auto row = [](list values, int type) {
    const auto size = static_cast<long long>(values.size());
    return folded_values{.values = std::move(values), .type = type, .shape = list{size}};
  };
  constexpr int wide = onnx::TensorProto::INT64;
  if (!n.domain().empty()) return std::nullopt;
  if (op == "Constant") {
    if (const auto* one = attribute(n, "value_int"); one != nullptr)
      return folded_values{.values = {one->i()}, .type = wide, .shape = list{}};
    if (attribute(n, "value_ints") != nullptr) return row(attribute_list(n, "value_ints"), wide);
    const auto* a = attribute(n, "value");
    auto values = a != nullptr && a->has_t() ? integers_in(a->t()) : std::nullopt;
    if (!values) return std::nullopt;
    return folded_values{
        .values = std::move(*values), .type = a->t().data_type(), .shape = list(a->t().dims().begin(), a->t().dims().end())};
  }
  if (op == "Shape" || op == "Size") {
    if (!in(0).known) return std::nullopt;
    if (op == "Size") return folded_values{.values = {static_cast<long long>(in(0).elements())}, .type = wide, .shape = list{}};
    const auto rank = static_cast<long long>(in(0).shape.size());
    const auto place = [&](long long i) { return std::clamp(i < 0 ? std::max(i, -rank) + rank : i, 0LL, rank); };
    const long long from = place(attribute_or(n, "start", 0)), to = std::max(from, place(attribute_or(n, "end", rank)));
    return row(list(in(0).shape.begin() + from, in(0).shape.begin() + to), wide);
  }
  if (n.input_size() == 0) return std::nullopt;
  for (const auto& name : n.input()) {
    if (!name.empty() && !tensor(name).values) return std::nullopt;
  }
  if (!in(0).values) return std::nullopt;
  const list& x = *in(0).values;
  if (op == "Identity" || op == "Floor" || op == "Ceil") return folded_values{.values = x, .type = in(0).type, .shape = in(0).shape};
  if (op == "Unsqueeze" || op == "Squeeze" || op == "Reshape") return folded_values{.values = x, .type = in(0).type};
  if (op == "Cast") {
    const auto to = static_cast<int>(attribute_or(n, "to", 0));
    if (to != wide && to != onnx::TensorProto::INT32 && to != onnx::TensorProto::FLOAT) return std::nullopt;
    return folded_values{.values = x, .type = to, .shape = in(0).shape};
  }
  if (op == "ConstantOfShape") {
    const auto* a = attribute(n, "value");
    const auto value = a != nullptr && a->has_t() ? integers_in(a->t()) : std::nullopt;
    double count = 1;
    for (const long long d : x) count *= static_cast<double>(d);
    if (!value || value->size() != 1 || a->t().data_type() != wide || !(count >= 0 && count <= most_folded_data)) return std::nullopt;
    return folded_values{.values = list(static_cast<std::size_t>(count), value->front()), .type = wide, .shape = x};
  }
  const bool is_row = in(0).shape.size() == 1;
  if (op == "Concat" && is_row) {
    list all;
    for (const auto& name : n.input()) all.insert(all.end(), tensor(name).values->begin(), tensor(name).values->end());
    return row(std::move(all), in(0).type);
  }
  if (op == "Gather" && is_row && in(1).values) {
    list picked;
    const auto size = static_cast<long long>(x.size());
    for (long long i : *in(1).values) {
      if (i < 0) i += size;
      if (i < 0 || i >= size) return std::nullopt;
      picked.push_back(x[static_cast<std::size_t>(i)]);
    }
    return folded_values{.values = std::move(picked), .type = in(0).type, .shape = in(1).shape};
  }
  if (op == "Slice") return fold_slice(n, tensor);
  if (op == "Transpose") return fold_transpose(n, tensor);
  if (op == "Range") {
    for (int i = 0; i < 3; ++i) {
      if (!in(i).values || in(i).values->size() != 1) return std::nullopt;
    }
    const long long to = in(1).values->front(), step = in(2).values->front();
    constexpr long long most = 1LL << 31;
    if (step <= 0 || step > most || x.front() < -most || x.front() > most) return std::nullopt;
    list all;
    for (long long v = x.front(); v < to && all.size() <= most_folded_values; v += step) all.push_back(v);
    return row(std::move(all), in(0).type);
  }
  return fold_elementwise(n, tensor);
}

}  // namespace HETPLAN_NAMESPACE::exchange::detail
