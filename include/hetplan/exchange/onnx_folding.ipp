// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/onnx_folding.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <hetplan/exchange/onnx_elementwise.hpp>

namespace hetplan::exchange::detail {

/// Is a shape small whatever its order of axes, so that none of its parts is large where another is 0?
[[nodiscard]] HETPLAN_INLINE bool is_small(const std::vector<long long>& shape) {
  double n = 1;
  for (const long long d : shape) n *= d < 0 ? 1e30 : static_cast<double>(std::max(d, 1LL));
  return n <= static_cast<double>(most_folded_values);
}

/// Numbers of a tensor, in another order or not all of them.
[[nodiscard]] HETPLAN_INLINE onnx_tensor picked(const onnx_tensor& x, const std::vector<std::size_t>& at, std::vector<long long> shape) {
  onnx_tensor t{.known = true, .shape = std::move(shape), .type = x.type};
  if (x.values) t.values.emplace();
  else t.reals.emplace();
  for (const std::size_t i : at) {
    if (x.values) t.values->push_back((*x.values)[i]);
    else t.reals->push_back((*x.reals)[i]);
  }
  return t;
}

/// Places in an array, by what is picked of every axis.
[[nodiscard]] HETPLAN_INLINE std::vector<std::size_t> places_in(const std::vector<long long>& shape,
                                                                const std::vector<std::vector<long long>>& wanted) {
  std::vector<std::size_t> at{0};
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    std::vector<std::size_t> deeper;
    for (const std::size_t base : at) {
      for (const long long i : wanted[axis]) deeper.push_back(base * static_cast<std::size_t>(shape[axis]) + static_cast<std::size_t>(i));
    }
    at = std::move(deeper);
  }
  return at;
}

/// All of every axis, in order.
[[nodiscard]] HETPLAN_INLINE std::vector<std::vector<long long>> all_places(const std::vector<long long>& shape) {
  std::vector<std::vector<long long>> all;
  for (const long long size : shape) {
    std::vector<long long>& axis = all.emplace_back(static_cast<std::size_t>(size));
    std::iota(axis.begin(), axis.end(), 0LL);
  }
  return all;
}

[[nodiscard]] HETPLAN_INLINE onnx_tensor picked(const onnx_tensor& x, const std::vector<std::vector<long long>>& wanted) {
  std::vector<long long> shape;
  for (const auto& axis : wanted) shape.push_back(static_cast<long long>(axis.size()));
  return picked(x, places_in(x.shape, wanted), std::move(shape));
}

/// An axis of a tensor from the front; nothing where it has no such axis.
[[nodiscard]] HETPLAN_INLINE std::optional<std::size_t> axis_of(const onnx_tensor& x, long long axis) {
  const auto rank = static_cast<long long>(x.shape.size());
  if (axis < -rank || axis >= rank) return std::nullopt;
  return static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
}

[[nodiscard]] HETPLAN_INLINE std::optional<onnx_tensor> fold_slice(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  using list = std::vector<long long>;
  const onnx_tensor& x = tensor(n.input(0));
  const auto numbers = [&](int i, std::string_view old) {
    const auto& given = input_of(n, i);
    return given.empty() ? attribute_list(n, old) : tensor(given).values.value_or(list{});
  };
  const list starts = numbers(1, "starts"), ends = numbers(2, "ends"), axes = numbers(3, "axes"), steps = numbers(4, "steps");
  if (x.elements() == 0) return std::nullopt;
  std::vector<list> wanted = all_places(x.shape);
  if (ends.size() != starts.size() || (!axes.empty() && axes.size() != starts.size())) return std::nullopt;
  for (std::size_t k = 0; k < starts.size(); ++k) {
    const auto axis = axis_of(x, axes.empty() ? static_cast<long long>(k) : axes[k]);
    if (!axis) return std::nullopt;
    const long long size = x.shape[*axis], step = k < steps.size() ? std::clamp(steps[k], -size - 1, size + 1) : 1;
    if (step == 0) return std::nullopt;
    const auto place = [&](long long i) {
      if (i < 0) i = i < -size ? -1 : i + size;
      return step > 0 ? std::clamp(i, 0LL, size) : std::clamp(i, -1LL, size - 1);
    };
    wanted[*axis].clear();
    for (long long i = place(starts[k]); step > 0 ? i < place(ends[k]) : i > place(ends[k]); i += step) wanted[*axis].push_back(i);
  }
  return picked(x, wanted);
}

[[nodiscard]] HETPLAN_INLINE std::optional<onnx_tensor> fold_transpose(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  const onnx_tensor& x = tensor(n.input(0));
  std::vector<long long> perm = attribute_list(n, "perm"), shape, strides(x.shape.size(), 1);
  for (std::size_t i = perm.empty() ? x.shape.size() : 0; i-- > 0;) perm.push_back(static_cast<long long>(i));
  if (perm.size() != x.shape.size()) return std::nullopt;
  for (std::size_t i = x.shape.size(); i-- > 1;) strides[i - 1] = strides[i] * x.shape[i];
  std::vector<std::size_t> at{0};
  for (const long long p : perm) {
    const auto axis = axis_of(x, p);
    if (!axis) return std::nullopt;
    shape.push_back(x.shape[*axis]);
    std::vector<std::size_t> deeper;
    for (const std::size_t base : at) {
      for (long long i = 0; i < shape.back(); ++i) deeper.push_back(base + static_cast<std::size_t>(i * strides[*axis]));
    }
    at = std::move(deeper);
    if (at.size() > most_folded_values) return std::nullopt;
  }
  return at.size() == static_cast<std::size_t>(x.elements()) ? std::optional(picked(x, at, shape)) : std::nullopt;
}

[[nodiscard]] HETPLAN_INLINE std::optional<onnx_tensor> fold_gather(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  const onnx_tensor& x = tensor(n.input(0));
  const onnx_tensor& which = tensor(input_of(n, 1));
  const auto axis = axis_of(x, attribute_or(n, "axis", 0));
  if (!axis || !which.values) return std::nullopt;
  std::vector<std::vector<long long>> wanted = all_places(x.shape);
  wanted[*axis].clear();
  for (long long i : *which.values) {
    if (i < 0) i += x.shape[*axis];
    if (i < 0 || i >= x.shape[*axis]) return std::nullopt;
    wanted[*axis].push_back(i);
  }
  std::vector<long long> shape = x.shape;
  shape[*axis] = static_cast<long long>(wanted[*axis].size());
  if (!is_small(shape)) return std::nullopt;
  onnx_tensor t = picked(x, wanted);
  t.shape.erase(t.shape.begin() + static_cast<long>(*axis));
  t.shape.insert(t.shape.begin() + static_cast<long>(*axis), which.shape.begin(), which.shape.end());
  return t;
}

[[nodiscard]] HETPLAN_INLINE std::optional<onnx_tensor> fold_concat(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  const onnx_tensor& first = tensor(n.input(0));
  const auto axis = axis_of(first, attribute_or(n, "axis", 0));
  if (!axis) return std::nullopt;
  onnx_tensor t{.known = true, .shape = first.shape, .type = first.type};
  t.shape[*axis] = 0;
  long long rows = 1;
  for (std::size_t i = 0; i < *axis; ++i) rows *= first.shape[i];
  for (const auto& name : n.input()) {
    std::vector<long long> rest = tensor(name).shape;
    if (rest.size() != first.shape.size() || tensor(name).values.has_value() != first.values.has_value()) return std::nullopt;
    t.shape[*axis] += std::exchange(rest[*axis], first.shape[*axis]);
    if (rest != first.shape || !is_small(t.shape)) return std::nullopt;
  }
  if (first.values) t.values.emplace();
  else t.reals.emplace();
  for (long long row = 0; row < rows; ++row) {
    for (const auto& name : n.input()) {
      const onnx_tensor& x = tensor(name);
      const auto size = static_cast<long>(x.elements()) / rows, from = static_cast<long>(row) * size;
      if (x.values) t.values->insert(t.values->end(), x.values->begin() + from, x.values->begin() + from + size);
      else t.reals->insert(t.reals->end(), x.reals->begin() + from, x.reals->begin() + from + size);
    }
  }
  return t;
}

/// Parts of an axis, as long as the second input, the attribute, or the number of outputs says.
[[nodiscard]] HETPLAN_INLINE std::vector<onnx_tensor> fold_split(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  const onnx_tensor& x = tensor(n.input(0));
  const auto axis = axis_of(x, attribute_or(n, "axis", 0));
  if (!axis) return {};
  const long long size = x.shape[*axis], parts = n.output_size(), part = (size + parts - 1) / parts;
  std::vector<long long> sizes = input_of(n, 1).empty() ? attribute_list(n, "split") : *tensor(n.input(1)).values;
  for (long long left = size; sizes.size() < static_cast<std::size_t>(parts); left -= sizes.back()) sizes.push_back(std::min(part, left));
  std::vector<onnx_tensor> all;
  long long from = 0;
  for (const long long s : sizes) {
    if (s < 0 || from + s > size) return {};
    auto wanted = all_places(x.shape);
    wanted[*axis].assign(wanted[*axis].begin() + from, wanted[*axis].begin() + from + s);
    all.push_back(picked(x, wanted));
    from += s;
  }
  return from == size && all.size() == static_cast<std::size_t>(parts) ? all : std::vector<onnx_tensor>{};
}

[[nodiscard]] HETPLAN_INLINE std::optional<onnx_tensor> fold_range(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  double number[3] = {};
  for (int i = 0; i < 3; ++i) {
    const onnx_tensor& t = tensor(input_of(n, i));
    if (!t.is_read() || t.elements() != 1) return std::nullopt;
    number[i] = t.values ? static_cast<double>(t.values->front()) : t.reals->front();
    if (!(std::abs(number[i]) <= 1e15)) return std::nullopt;
  }
  const int type = tensor(n.input(0)).type;
  if (number[2] == 0) return std::nullopt;
  const double count = std::max(std::ceil((number[1] - number[0]) / number[2]), 0.0);
  if (count > most_folded_values) return std::nullopt;
  onnx_tensor t{.known = true, .shape = {static_cast<long long>(count)}, .type = type};
  if (is_real(type)) t.reals.emplace();
  else t.values.emplace();
  for (long long i = 0; i < t.shape[0]; ++i) {
    const auto v = rounded(number[0] + static_cast<double>(i) * number[2], type);
    if (!v) return std::nullopt;
    if (is_real(type)) t.reals->push_back(*v);
    else t.values->push_back(static_cast<long long>(*v));
  }
  return t;
}

/// What a node makes of no tensor's numbers: constants and shapes.
[[nodiscard]] HETPLAN_INLINE std::optional<onnx_tensor> fold_source(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  using list = std::vector<long long>;
  constexpr int wide = onnx::TensorProto::INT64, single = onnx::TensorProto::FLOAT;
  const auto row = [](list values) {
    const auto size = static_cast<long long>(values.size());
    return onnx_tensor{.known = true, .shape = {size}, .type = wide, .values = std::move(values)};
  };
  if (n.op_type() == "Constant") {
    const auto* one = attribute(n, "value_int");
    if (one != nullptr) return onnx_tensor{.known = true, .type = wide, .values = list{one->i()}};
    if (attribute(n, "value_ints") != nullptr) return row(attribute_list(n, "value_ints"));
    if (const auto* f = attribute(n, "value_float"); f != nullptr)
      return onnx_tensor{.known = true, .type = single, .reals = std::vector<double>{f->f()}};
    const auto* some = attribute(n, "value_floats");
    if (some != nullptr && some->floats_size() <= static_cast<int>(most_folded_data)) {
      return onnx_tensor{.known = true,
                         .shape = {some->floats_size()},
                         .type = single,
                         .reals = std::vector<double>(some->floats().begin(), some->floats().end())};
    }
    const auto* a = attribute(n, "value");
    if (a == nullptr || !a->has_t()) return std::nullopt;
    onnx_tensor t{.known = true, .shape = list(a->t().dims().begin(), a->t().dims().end()), .type = a->t().data_type()};
    if (is_small(t.shape)) read_numbers(a->t(), t);
    return t.is_read() ? std::optional(t) : std::nullopt;
  }
  const onnx_tensor& x = tensor(input_of(n, 0));
  if (!x.known) return std::nullopt;
  if (n.op_type() == "Size") return onnx_tensor{.known = true, .type = wide, .values = list{static_cast<long long>(x.elements())}};
  const auto rank = static_cast<long long>(x.shape.size());
  const auto place = [&](long long i) { return std::clamp(i < 0 ? std::max(i, -rank) + rank : i, 0LL, rank); };
  const long long from = place(attribute_or(n, "start", 0)), to = std::max(from, place(attribute_or(n, "end", rank)));
  return row(list(x.shape.begin() + from, x.shape.begin() + to));
}

/// One number, as often as a shape says.
[[nodiscard]] HETPLAN_INLINE std::optional<onnx_tensor> fold_filled(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  const onnx_tensor& shape = tensor(n.input(0));
  const auto* a = attribute(n, "value");
  onnx_tensor one{.known = true, .shape = {1}, .type = onnx::TensorProto::FLOAT, .reals = std::vector<double>{0}};
  if (a != nullptr) {
    one = {.known = true, .shape = {1}, .type = a->t().data_type()};
    read_numbers(a->t(), one);
  }
  onnx_tensor t{.known = true, .shape = shape.values.value_or(std::vector<long long>{-1}), .type = one.type};
  const auto most = static_cast<double>(one.type == onnx::TensorProto::INT64 ? most_folded_values : most_folded_data);
  if (!is_small(t.shape) || !one.is_read() || t.elements() > most) return std::nullopt;
  const auto count = static_cast<std::size_t>(t.elements());
  if (one.values && one.values->size() == 1) t.values.emplace(count, one.values->front());
  if (one.reals && one.reals->size() == 1) t.reals.emplace(count, one.reals->front());
  return t.is_read() ? std::optional(t) : std::nullopt;
}

/// Where the numbers are that are not 0: an axis a row.
[[nodiscard]] HETPLAN_INLINE onnx_tensor fold_nonzero(const onnx_tensor& x) {
  std::vector<std::size_t> at;
  for (std::size_t i = 0; i < static_cast<std::size_t>(x.elements()); ++i) {
    if (x.values ? (*x.values)[i] != 0 : (*x.reals)[i] != 0) at.push_back(i);
  }
  onnx_tensor t{.known = true,
                .shape = {static_cast<long long>(x.shape.size()), static_cast<long long>(at.size())},
                .type = onnx::TensorProto::INT64,
                .values = std::vector<long long>(x.shape.size() * at.size())};
  for (std::size_t k = 0; k < at.size(); ++k) {
    auto rest = static_cast<long long>(at[k]);
    for (std::size_t axis = x.shape.size(); axis-- > 0; rest /= x.shape[axis]) (*t.values)[axis * at.size() + k] = rest % x.shape[axis];
  }
  return t;
}

HETPLAN_INLINE std::vector<onnx_tensor> fold(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  static const std::set<std::string_view> views{"Unsqueeze", "Squeeze", "Reshape", "Flatten"};
  const std::string& op = n.op_type();
  const auto one = [](std::optional<onnx_tensor> t) { return t ? std::vector{std::move(*t)} : std::vector<onnx_tensor>{}; };
  if (!n.domain().empty()) return {};
  if (op == "Constant" || op == "Shape" || op == "Size") return one(fold_source(n, tensor));
  if (n.input_size() == 0 || n.input(0).empty()) return {};
  for (const auto& name : n.input()) {
    const onnx_tensor& t = tensor(name);
    if (!name.empty() && !(t.known && t.is_read()) && !(op == "CastLike" && name == n.input(n.input_size() - 1))) return {};
    if (t.known && !is_small(t.shape)) return {};
  }
  const onnx_tensor& x = tensor(n.input(0));
  if (!x.is_read()) return {};
  if (op == "Identity") return {picked(x, all_places(x.shape))};
  if (views.contains(op)) return {{.type = x.type, .values = x.values, .reals = x.reals}};
  if (op == "ConstantOfShape") return one(fold_filled(n, tensor));
  if (op == "Concat") return one(fold_concat(n, tensor));
  if (op == "Gather") return one(fold_gather(n, tensor));
  if (op == "Slice") return one(fold_slice(n, tensor));
  if (op == "Split") return fold_split(n, tensor);
  if (op == "Transpose") return one(fold_transpose(n, tensor));
  if (op == "Range") return one(fold_range(n, tensor));
  if (op == "NonZero") return {fold_nonzero(x)};
  if (op == "Expand" && tensor(input_of(n, 1)).values) {
    const std::vector<long long>& wished = *tensor(n.input(1)).values;
    const auto shape = spread_shape({x.shape, wished});
    if (!shape || !is_small(*shape)) return {};
    return {picked(x, spread_places(x.shape, *shape), *shape)};
  }
  if (op == "Tile" && tensor(input_of(n, 1)).values) {
    auto wanted = all_places(x.shape);
    const std::vector<long long>& times = *tensor(n.input(1)).values;
    std::vector<long long> shape = x.shape;
    if (times.size() != shape.size()) return {};
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (times[i] < 0 || times[i] > static_cast<long long>(most_folded_values)) return {};
      shape[i] *= times[i];
    }
    if (!is_small(shape)) return {};
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const std::vector<long long> once = std::exchange(wanted[i], {});
      for (long long k = 0; k < times[i]; ++k) wanted[i].insert(wanted[i].end(), once.begin(), once.end());
    }
    return {picked(x, wanted)};
  }
  if (op.starts_with("Reduce")) return one(fold_reduction(n, tensor));
  return one(fold_elementwise(n, tensor));
}

}  // namespace hetplan::exchange::detail
