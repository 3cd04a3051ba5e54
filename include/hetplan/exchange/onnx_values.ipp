// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/onnx_values.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <set>

namespace HETPLAN_NAMESPACE::exchange::detail {

[[nodiscard]] HETPLAN_INLINE double bytes_of_type(int type) {
  switch (type) {
    case onnx::TensorProto::INT8:
    case onnx::TensorProto::UINT8:
    case onnx::TensorProto::BOOL: return 1;
    case onnx::TensorProto::FLOAT16:
    case onnx::TensorProto::BFLOAT16:
    case onnx::TensorProto::INT16:
    case onnx::TensorProto::UINT16: return 2;
    case onnx::TensorProto::DOUBLE:
    case onnx::TensorProto::INT64:
    case onnx::TensorProto::UINT64:
    case onnx::TensorProto::COMPLEX64: return 8;
    case onnx::TensorProto::COMPLEX128: return 16;
    default: return 4;
  }
}

HETPLAN_INLINE double onnx_tensor::elements() const {
  double n = 1;
  for (const long long d : shape) n *= static_cast<double>(d);
  return n;
}
HETPLAN_INLINE double onnx_tensor::bytes() const { return elements() * bytes_of_type(type); }

HETPLAN_INLINE void describe(onnx::ValueInfoProto& info, const std::string& name, const onnx_tensor& t) {
  info.set_name(name);
  auto& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(t.type == 0 ? static_cast<int>(onnx::TensorProto::FLOAT) : t.type);
  if (!t.known) return;
  type.mutable_shape();
  for (const long long d : t.shape) type.mutable_shape()->add_dim()->set_dim_value(d);
}

HETPLAN_INLINE void put_values(onnx::TensorProto& to, const std::string& name, const onnx_tensor& t) {
  to.set_name(name);
  to.set_data_type(t.type);
  for (const long long d : t.shape) to.add_dims(d);
  for (const long long v : *t.values) {
    if (t.type == onnx::TensorProto::FLOAT) to.add_float_data(static_cast<float>(v));
    else if (t.type == onnx::TensorProto::INT32) to.add_int32_data(static_cast<std::int32_t>(v));
    else to.add_int64_data(v);
  }
}

HETPLAN_INLINE std::optional<std::vector<long long>> integers_in(const onnx::TensorProto& t) {
  double n = 1;
  for (const auto d : t.dims()) n *= static_cast<double>(d);
  if (!(n >= 0 && n <= static_cast<double>(most_folded_values))) return std::nullopt;
  const auto count = static_cast<std::size_t>(n);
  std::vector<long long> v;
  if (t.data_type() == onnx::TensorProto::INT64) {
    v.assign(t.int64_data().begin(), t.int64_data().end());
    if (v.empty() && t.raw_data().size() == 8 * count) {
      v.resize(count);
      if (count > 0) std::memcpy(v.data(), t.raw_data().data(), 8 * count);
    }
  } else if (t.data_type() == onnx::TensorProto::INT32) {
    v.assign(t.int32_data().begin(), t.int32_data().end());
    if (v.empty() && t.raw_data().size() == 4 * count) {
      for (std::size_t i = 0; i < count; ++i) {
        std::int32_t x = 0;
        std::memcpy(&x, t.raw_data().data() + 4 * i, 4);
        v.push_back(x);
      }
    }
  } else if (t.data_type() == onnx::TensorProto::FLOAT && count <= 16) {  // exporters compute shapes in floating point, too
    std::vector<float> x(t.float_data().begin(), t.float_data().end());
    if (x.empty() && t.raw_data().size() == 4 * count) {
      x.resize(count);
      if (count > 0) std::memcpy(x.data(), t.raw_data().data(), 4 * count);
    }
    for (const float value : x) {
      if (!(std::abs(value) <= 1e9F) || value != std::floor(value)) return std::nullopt;
      v.push_back(static_cast<long long>(value));
    }
  } else {
    return std::nullopt;
  }
  if (v.size() != count) return std::nullopt;
  return v;
}

HETPLAN_INLINE const onnx::AttributeProto* attribute(const onnx::NodeProto& n, std::string_view name) {
  for (const auto& a : n.attribute()) {
    if (a.name() == name) return &a;
  }
  return nullptr;
}
HETPLAN_INLINE long long attribute_or(const onnx::NodeProto& n, std::string_view name, long long otherwise) {
  const auto* a = attribute(n, name);
  return a != nullptr && a->has_i() ? a->i() : otherwise;
}
HETPLAN_INLINE std::vector<long long> attribute_list(const onnx::NodeProto& n, std::string_view name) {
  const auto* a = attribute(n, name);
  return a == nullptr ? std::vector<long long>{} : std::vector<long long>(a->ints().begin(), a->ints().end());
}

HETPLAN_INLINE std::optional<std::vector<long long>> shape_of_values(const onnx::NodeProto& n, const onnx_lookup& tensor,
                                                                     std::size_t size) {
  using list = std::vector<long long>;
  const std::string& op = n.op_type();
  const auto in = [&](int i) -> const onnx_tensor& { return tensor(i < n.input_size() ? n.input(i) : std::string()); };
  const list row{static_cast<long long>(size)};
  if (op == "Constant") return list(n.attribute(0).t().dims().begin(), n.attribute(0).t().dims().end());
  if (op == "Shape" || op == "Concat" || op == "Slice" || op == "Range") return row;
  if (op == "Gather") return in(1).shape;
  if (op == "Squeeze") return size == 1 ? std::optional(list{}) : std::nullopt;
  if (op == "Unsqueeze") return in(0).shape.empty() ? std::optional(row) : std::nullopt;
  if (op == "Reshape") return std::nullopt;
  if (n.input_size() == 1) return in(0).shape;
  return in(0).shape.size() > in(1).shape.size() || in(0).values->size() == size ? in(0).shape : in(1).shape;
}

HETPLAN_INLINE std::optional<std::vector<long long>> values_of(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  using list = std::vector<long long>;
  const std::string& op = n.op_type();
  const auto in = [&](int i) -> const onnx_tensor& { return tensor(i < n.input_size() ? n.input(i) : std::string()); };
  const auto has = [&](int i) { return i < n.input_size() && !n.input(i).empty(); };
  if (op == "Constant") {
    const auto* a = attribute(n, "value");
    return a != nullptr && a->has_t() ? integers_in(a->t()) : std::nullopt;
  }
  if (op == "Shape") {
    if (n.attribute_size() > 0 || !in(0).known) return std::nullopt;
    return in(0).shape;
  }
  if (!has(0) || !in(0).values) return std::nullopt;
  const list& x = *in(0).values;
  if (op == "Identity" || op == "Unsqueeze" || op == "Squeeze" || op == "Cast" || op == "Reshape") {
    static const std::set<long long> kept{onnx::TensorProto::INT64, onnx::TensorProto::INT32, onnx::TensorProto::FLOAT};
    if (op == "Cast" && !kept.contains(attribute_or(n, "to", 0))) return std::nullopt;
    return x;
  }
  for (int i = 1; i < n.input_size(); ++i) {
    if (has(i) && !in(i).values) return std::nullopt;
  }
  if (op == "Concat") {
    list all;
    for (int i = 0; i < n.input_size(); ++i) all.insert(all.end(), in(i).values->begin(), in(i).values->end());
    return all;
  }
  if (op == "Gather") {
    if (in(0).shape.size() != 1 || attribute_or(n, "axis", 0) != 0) return std::nullopt;
    list picked;
    const auto size = static_cast<long long>(x.size());
    for (long long i : *in(1).values) {
      if (i < 0) i += size;
      if (i < 0 || i >= size) return std::nullopt;
      picked.push_back(x[static_cast<std::size_t>(i)]);
    }
    return picked;
  }
  if (op == "Slice") {
    if (in(0).shape.size() != 1) return std::nullopt;
    const auto one = [&](int i, std::string_view old, long long otherwise) {
      if (has(i)) return in(i).values->empty() ? otherwise : in(i).values->front();
      const list l = attribute_list(n, old);
      return l.empty() ? otherwise : l.front();
    };
    const auto size = static_cast<long long>(x.size());
    if (one(4, "steps", 1) != 1) return std::nullopt;
    long long from = one(1, "starts", 0), to = one(2, "ends", size);
    if (from < 0) from += size;
    if (to < 0) to += size;
    from = std::clamp(from, 0LL, size);
    to = std::clamp(to, from, size);
    return list(x.begin() + from, x.begin() + to);
  }
  if (op == "Range") {
    if (!has(2) || x.size() != 1 || in(1).values->size() != 1 || in(2).values->size() != 1) return std::nullopt;
    const long long step = in(2).values->front();
    list all;
    if (step <= 0) return std::nullopt;
    for (long long v = x.front(); v < in(1).values->front() && all.size() <= most_folded_values; v += step) all.push_back(v);
    return all;
  }
  if (!has(1)) return std::nullopt;
  const list& y = *in(1).values;
  const std::size_t size = std::max(x.size(), y.size());
  if (x.empty() || y.empty() || (x.size() != size && x.size() != 1) || (y.size() != size && y.size() != 1)) return std::nullopt;
  list result;
  for (std::size_t i = 0; i < size; ++i) {
    const long long a = x[x.size() == 1 ? 0 : i], b = y[y.size() == 1 ? 0 : i];
    constexpr long long most = 1LL << 31;
    if (a > most || b > most || a < -most || b < -most) return std::nullopt;
    if (op == "Add") result.push_back(a + b);
    else if (op == "Sub") result.push_back(a - b);
    else if (op == "Mul") result.push_back(a * b);
    else if (op == "Div" && b != 0 && a % b == 0) result.push_back(a / b);
    else if (op == "Min") result.push_back(std::min(a, b));
    else if (op == "Max") result.push_back(std::max(a, b));
    else return std::nullopt;
  }
  return result;
}

}  // namespace HETPLAN_NAMESPACE::exchange::detail
