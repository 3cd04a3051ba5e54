// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/onnx_elementwise.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace hetplan::exchange::detail {

/// What 64 bits hold, with room for the rounding of the test.
constexpr double most_whole = 9.2e18;

HETPLAN_INLINE std::optional<std::vector<long long>> spread_shape(const std::vector<std::vector<long long>>& shapes) {
  std::vector<long long> wide;
  for (const auto& s : shapes) {
    if (s.size() > wide.size()) wide.insert(wide.begin(), s.size() - wide.size(), 1);
    for (std::size_t i = 0; i < s.size(); ++i) {
      long long& w = wide[wide.size() - s.size() + i];
      if (w == 1) w = s[i];
      else if (s[i] != 1 && s[i] != w) return std::nullopt;
    }
  }
  return wide;
}

HETPLAN_INLINE std::vector<std::size_t> spread_places(const std::vector<long long>& narrow, const std::vector<long long>& wide) {
  std::vector<std::size_t> at{0};
  const std::size_t before = wide.size() - narrow.size();
  for (std::size_t axis = 0; axis < wide.size(); ++axis) {
    const auto size = static_cast<std::size_t>(axis < before ? 1 : narrow[axis - before]);
    std::vector<std::size_t> deeper;
    for (const std::size_t base : at) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(wide[axis]); ++i) deeper.push_back(base * size + (size == 1 ? 0 : i));
    }
    at = std::move(deeper);
  }
  return at;
}

HETPLAN_INLINE std::optional<double> rounded(double v, int type) {
  switch (type) {
    case onnx::TensorProto::FLOAT: v = std::abs(v) <= std::numeric_limits<float>::max() ? static_cast<float>(v) : std::nan(""); break;
    case onnx::TensorProto::DOUBLE: break;
    case onnx::TensorProto::BOOL: return v != 0 ? 1 : 0;
    default: v = std::trunc(v);
  }
  const double most = type == onnx::TensorProto::INT32 ? 2147483647.0 : type == onnx::TensorProto::INT64 ? most_whole : 1e308;
  return std::abs(v) <= most ? std::optional(v) : std::nullopt;
}

/// Integers, where nothing may be lost.
[[nodiscard]] HETPLAN_INLINE std::optional<long long> calculate(const std::string& op, long long a, long long b, bool truncated) {
  const auto fits = [](double v) { return std::abs(v) <= most_whole; };
  const auto x = static_cast<double>(a), y = static_cast<double>(b);
  if (op == "Add" || op == "Sum") return fits(x + y) ? std::optional(a + b) : std::nullopt;
  if (op == "Sub") return fits(x - y) ? std::optional(a - b) : std::nullopt;
  if (op == "Mul") return fits(x * y) ? std::optional(a * b) : std::nullopt;
  if (op == "Div") return b != 0 && fits(x) ? std::optional(a / b) : std::nullopt;
  if (op == "Mod" && b != 0 && fits(x)) {
    const long long rest = a % b;
    return rest != 0 && !truncated && (rest < 0) != (b < 0) ? rest + b : rest;
  }
  if (op == "Pow" && b >= 0 && (b < 64 || a == 0 || a == 1)) {
    long long p = 1;
    for (long long i = 0; i < std::min(b, 64LL); ++i) {
      if (!fits(static_cast<double>(p) * x)) return std::nullopt;
      p *= a;
    }
    return p;
  }
  if (op == "Min") return std::min(a, b);
  if (op == "Max") return std::max(a, b);
  if (op == "Equal") return a == b ? 1 : 0;
  if (op == "Less") return a < b ? 1 : 0;
  if (op == "LessOrEqual") return a <= b ? 1 : 0;
  if (op == "Greater") return a > b ? 1 : 0;
  if (op == "GreaterOrEqual") return a >= b ? 1 : 0;
  if (op == "And") return a != 0 && b != 0 ? 1 : 0;
  if (op == "Or") return a != 0 || b != 0 ? 1 : 0;
  if (op == "Xor") return (a != 0) != (b != 0) ? 1 : 0;
  return std::nullopt;
}

/// Floating point, but for functions that libraries round differently.
[[nodiscard]] HETPLAN_INLINE std::optional<double> calculate_real(const std::string& op, double a, double b) {
  if (op == "Add" || op == "Sum") return a + b;
  if (op == "Sub") return a - b;
  if (op == "Mul") return a * b;
  if (op == "Div") return b != 0 ? std::optional(a / b) : std::nullopt;
  if (op == "Mod") return b != 0 ? std::optional(std::fmod(a, b)) : std::nullopt;
  if (op == "Pow" && b == 0.5 && a >= 0) return std::sqrt(a);
  if (op == "Pow" && b == std::floor(b) && std::abs(b) <= 8) {
    double p = 1;
    for (int i = 0; i < static_cast<int>(std::abs(b)); ++i) p *= a;
    return b >= 0 ? std::optional(p) : a != 0 ? std::optional(1 / p) : std::nullopt;
  }
  if (op == "Min") return std::min(a, b);
  if (op == "Max") return std::max(a, b);
  if (op == "Equal") return a == b ? 1 : 0;
  if (op == "Less") return a < b ? 1 : 0;
  if (op == "LessOrEqual") return a <= b ? 1 : 0;
  if (op == "Greater") return a > b ? 1 : 0;
  if (op == "GreaterOrEqual") return a >= b ? 1 : 0;
  return std::nullopt;
}

/// Of one number. Halves are rounded to even.
[[nodiscard]] HETPLAN_INLINE std::optional<double> calculate_one(const std::string& op, double v) {
  if (op == "Neg") return -v;
  if (op == "Abs") return std::abs(v);
  if (op == "Sign") return v > 0 ? 1 : v < 0 ? -1 : 0;
  if (op == "Floor") return std::floor(v);
  if (op == "Ceil") return std::ceil(v);
  if (op == "Round") return v - std::remainder(v, 1.0);
  if (op == "Sqrt") return v >= 0 ? std::optional(std::sqrt(v)) : std::nullopt;
  if (op == "Reciprocal") return v != 0 ? std::optional(1 / v) : std::nullopt;
  if (op == "Not") return v == 0 ? 1 : 0;
  return std::nullopt;
}

/// Puts numbers together in the form that the type has.
class number_list {
 public:
  explicit number_list(int type) : type_(type) {}
  [[nodiscard]] bool add(std::optional<long long> v) {
    if (v && type_ != onnx::TensorProto::INT64) return add_real(static_cast<double>(*v));
    if (v) whole_.push_back(*v);
    return v.has_value();
  }
  [[nodiscard]] bool add_real(std::optional<double> v) {
    if (v) v = rounded(*v, type_);
    if (!v) return false;
    if (is_real(type_)) reals_.push_back(*v);
    else whole_.push_back(static_cast<long long>(*v));
    return true;
  }
  [[nodiscard]] onnx_tensor in(std::vector<long long> shape) && {
    onnx_tensor t{.known = true, .shape = std::move(shape), .type = type_};
    if (is_real(type_)) t.reals = std::move(reals_);
    else t.values = std::move(whole_);
    return t;
  }

 private:
  int type_;
  std::vector<long long> whole_;
  std::vector<double> reals_;
};

[[nodiscard]] HETPLAN_INLINE double number_at(const onnx_tensor& t, std::size_t i) {
  return t.reals ? (*t.reals)[i] : static_cast<double>((*t.values)[i]);
}

HETPLAN_INLINE std::optional<onnx_tensor> fold_elementwise(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  static const std::set<std::string_view> truths{"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or", "Xor", "Not"};
  static const std::set<int> types{onnx::TensorProto::INT64, onnx::TensorProto::INT32, onnx::TensorProto::BOOL, onnx::TensorProto::FLOAT,
                                   onnx::TensorProto::DOUBLE};
  const std::string& op = n.op_type();
  if (attribute(n, "axis") != nullptr) return std::nullopt;  // how operators before version 7 are spread
  std::vector<onnx_tensor> in;
  std::vector<std::vector<long long>> shapes;
  std::vector<std::string> steps;  // by input: how it joins those before it
  for (int i = 0; i < n.input_size(); ++i) {
    const std::string& name = n.input(i);
    const bool bound = op == "Clip" && i > 0;
    if (bound && name.empty()) continue;
    if (name.empty() || (bound && (i > 2 || !tensor(name).shape.empty()))) return std::nullopt;
    in.push_back(tensor(name));
    shapes.push_back(in.back().shape);
    steps.push_back(!bound ? op : i == 1 ? "Max" : "Min");
  }
  const bool chooses = op == "Where", casts = op == "Cast" || op == "CastLike";
  if (op == "CastLike" && in.size() == 2) in.pop_back(), shapes.pop_back();
  const auto shape = spread_shape(shapes);
  if (!shape || (chooses && in.size() != 3)) return std::nullopt;
  double size = 1, most = 1;
  for (const long long d : *shape) size *= static_cast<double>(d), most *= static_cast<double>(std::max(d, 1LL));
  if (most > most_folded_values) return std::nullopt;
  int type = in[chooses ? 1 : 0].type;
  if (truths.contains(op)) type = onnx::TensorProto::BOOL;
  if (op == "Cast") type = static_cast<int>(attribute_or(n, "to", 0));
  if (op == "CastLike") type = tensor(input_of(n, 1)).type;
  if (!types.contains(type)) return std::nullopt;
  const bool whole = std::none_of(in.begin(), in.end(), [](const onnx_tensor& t) { return t.reals.has_value(); });
  if (op == "Mod" && !whole && attribute_or(n, "fmod", 0) == 0) return std::nullopt;
  std::vector<std::vector<std::size_t>> at;
  for (const onnx_tensor& t : in) at.push_back(spread_places(t.shape, *shape));
  number_list list(type);
  const auto take = [&](const onnx_tensor& t, std::size_t i) { return t.values ? list.add((*t.values)[i]) : list.add_real((*t.reals)[i]); };
  for (std::size_t i = 0; i < static_cast<std::size_t>(size); ++i) {
    if (chooses) {
      const std::size_t chosen = number_at(in[0], at[0][i]) != 0 ? 1 : 2;
      if (!take(in[chosen], at[chosen][i])) return std::nullopt;
    } else if (casts) {
      if (!take(in[0], at[0][i])) return std::nullopt;
    } else if (in.size() == 1 && op != "Min" && op != "Max" && op != "Sum") {
      const double v = number_at(in[0], at[0][i]);
      if ((whole && std::abs(v) > 1e15) || !list.add_real(calculate_one(op, v))) return std::nullopt;
    } else if (whole) {
      std::optional<long long> v = (*in[0].values)[at[0][i]];
      for (std::size_t k = 1; k < in.size() && v; ++k)
        v = calculate(steps[k], *v, (*in[k].values)[at[k][i]], attribute_or(n, "fmod", 0) != 0);
      if (!list.add(v)) return std::nullopt;
    } else {
      std::optional<double> v = number_at(in[0], at[0][i]);
      for (std::size_t k = 1; k < in.size() && v; ++k) {
        v = calculate_real(steps[k], *v, number_at(in[k], at[k][i]));
        if (v) v = rounded(*v, is_real(type) ? type : in[0].type);
      }
      if (!list.add_real(v)) return std::nullopt;
    }
  }
  return std::move(list).in(*shape);
}

HETPLAN_INLINE std::optional<onnx_tensor> fold_reduction(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  static const std::set<std::string_view> known{"ReduceProd", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean"};
  if (!known.contains(n.op_type())) return std::nullopt;
  const onnx_tensor& x = tensor(n.input(0));
  const auto rank = static_cast<long long>(x.shape.size());
  const std::string& second = input_of(n, 1);
  const std::vector<long long> axes = second.empty() ? attribute_list(n, "axes") : tensor(second).values.value_or(std::vector<long long>{});
  const bool keeps = attribute_or(n, "keepdims", 1) != 0, all = axes.empty() && attribute_or(n, "noop_with_empty_axes", 0) == 0;
  std::vector<char> reduced(x.shape.size(), all ? 1 : 0);
  for (const long long axis : axes) {
    if (axis < -rank || axis >= rank) return std::nullopt;
    reduced[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)] = 1;
  }
  std::vector<long long> shape, spread = x.shape;
  for (std::size_t i = 0; i < reduced.size(); ++i) {
    if (reduced[i] != 0) spread[i] = 1;
    if (reduced[i] == 0 || keeps) shape.push_back(spread[i]);
  }
  const std::vector<std::size_t> to = spread_places(spread, x.shape);
  onnx_tensor out{.known = true, .shape = shape, .type = x.type};
  const auto size = static_cast<std::size_t>(out.elements());
  const bool mean = n.op_type() == "ReduceMean";
  const std::string op = n.op_type() == "ReduceProd" ? "Mul" : mean || n.op_type() == "ReduceSum" ? "Add" : n.op_type().substr(6);
  if (size == 0 || to.size() < size) return std::nullopt;  // of nothing
  const auto count = static_cast<double>(to.size() / size);
  std::vector<std::optional<double>> real(size);
  std::vector<std::optional<long long>> whole(size);
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (x.reals) {
      auto& sum = real[to[i]];
      const double v = (*x.reals)[i];
      sum = sum ? calculate_real(op, *sum, v) : v;
      sum = rounded(sum.value_or(std::nan("")), x.type);
      if (!sum) return std::nullopt;
    } else {
      auto& sum = whole[to[i]];
      sum = sum ? calculate(op, *sum, (*x.values)[i], false) : (*x.values)[i];
      if (!sum) return std::nullopt;
    }
  }
  number_list list(x.type);
  for (std::size_t i = 0; i < size; ++i) {
    const bool added = x.reals ? list.add_real(mean ? *real[i] / count : *real[i])
                               : list.add(mean ? *whole[i] / static_cast<long long>(count) : *whole[i]);
    if (!added) return std::nullopt;
  }
  return std::move(list).in(shape);
}

}  // namespace hetplan::exchange::detail
