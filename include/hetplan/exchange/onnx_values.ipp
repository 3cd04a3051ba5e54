// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/onnx_values.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace hetplan::exchange::detail {

HETPLAN_INLINE std::optional<double> bytes_of_type(int type) {
  switch (type) {  // literal numbers: types newer than the headers
    case 25:       // UINT2, INT2
    case 26: return 0.25;
    case 21:  // UINT4, INT4, FLOAT4E2M1
    case 22:
    case 23: return 0.5;
    case 17:  // the four FLOAT8 types, FLOAT8E8M0
    case 18:
    case 19:
    case 20:
    case 24:
    case onnx::TensorProto::INT8:
    case onnx::TensorProto::UINT8:
    case onnx::TensorProto::BOOL: return 1;
    case onnx::TensorProto::FLOAT16:
    case onnx::TensorProto::BFLOAT16:
    case onnx::TensorProto::INT16:
    case onnx::TensorProto::UINT16: return 2;
    case onnx::TensorProto::FLOAT:
    case onnx::TensorProto::INT32:
    case onnx::TensorProto::UINT32: return 4;
    case onnx::TensorProto::DOUBLE:
    case onnx::TensorProto::INT64:
    case onnx::TensorProto::UINT64:
    case onnx::TensorProto::COMPLEX64: return 8;
    case onnx::TensorProto::COMPLEX128: return 16;
    default: return std::nullopt;
  }
}

HETPLAN_INLINE double onnx_tensor::elements() const {
  double n = 1;
  for (const long long d : shape) n *= static_cast<double>(d);
  return n;
}
HETPLAN_INLINE double onnx_tensor::bytes() const { return elements() * bytes_of_type(type).value_or(4); }

HETPLAN_INLINE onnx_tensor described(const onnx::ValueInfoProto& info, const std::map<std::string, long long>& sizes) {
  onnx_tensor t;
  if (!info.type().has_tensor_type()) return t;
  const auto& type = info.type().tensor_type();
  t.type = type.elem_type();
  for (const auto& d : type.shape().dim()) {
    const auto named = sizes.find(d.dim_param());
    if (d.has_dim_value() && d.dim_value() >= 0) t.shape.push_back(d.dim_value());
    else if (!d.dim_param().empty() && named != sizes.end()) t.shape.push_back(named->second);
    else return t;
  }
  t.known = type.has_shape();
  return t;
}

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
  for (const long long v : t.values.value_or(std::vector<long long>{})) {
    if (t.type == onnx::TensorProto::INT64) to.add_int64_data(v);
    else to.add_int32_data(static_cast<std::int32_t>(v));  // INT32 and BOOL
  }
  for (const double v : t.reals.value_or(std::vector<double>{})) {
    if (t.type == onnx::TensorProto::DOUBLE) to.add_double_data(v);
    else to.add_float_data(static_cast<float>(v));
  }
}

/// Returns a tensor's elements from their own field or from raw bytes, none unless there are exactly `count`.
template <class Number, class Field>
[[nodiscard]] std::optional<std::vector<Number>> numbers_in(const onnx::TensorProto& t, const Field& field, std::size_t count) {
  std::vector<Number> v;
  for (const auto x : field) v.push_back(static_cast<Number>(x));
  if (v.empty() && count > 0 && t.raw_data().size() == sizeof(Number) * count) {
    v.resize(count);
    std::memcpy(v.data(), t.raw_data().data(), sizeof(Number) * count);
  }
  if (v.size() != count) return std::nullopt;
  return v;
}

HETPLAN_INLINE bool is_real(int type) { return type == onnx::TensorProto::FLOAT || type == onnx::TensorProto::DOUBLE; }

HETPLAN_INLINE void read_numbers(const onnx::TensorProto& from, onnx_tensor& t) {
  double n = 1;
  for (const auto d : from.dims()) n *= static_cast<double>(d);
  // Shapes are usually INT64. Longer constants of other types are data, such as the biases of quantized convolutions.
  const int type = from.data_type();
  if (!(n >= 0 && n <= static_cast<double>(type == onnx::TensorProto::INT64 ? most_folded_values : most_folded_data))) return;
  const auto count = static_cast<std::size_t>(n);
  const auto take = [](const auto& found, auto& as) {
    if (found) as.emplace(found->begin(), found->end());
  };
  if (type == onnx::TensorProto::INT64) take(numbers_in<long long>(from, from.int64_data(), count), t.values);
  if (type == onnx::TensorProto::INT32) take(numbers_in<std::int32_t>(from, from.int32_data(), count), t.values);
  if (type == onnx::TensorProto::BOOL) take(numbers_in<std::uint8_t>(from, from.int32_data(), count), t.values);
  if (type == onnx::TensorProto::FLOAT) take(numbers_in<float>(from, from.float_data(), count), t.reals);
  if (type == onnx::TensorProto::DOUBLE) take(numbers_in<double>(from, from.double_data(), count), t.reals);
}

HETPLAN_INLINE const std::string& input_of(const onnx::NodeProto& n, int i) {
  static const std::string none;
  return i < n.input_size() ? n.input(i) : none;
}
HETPLAN_INLINE const std::string& first_output(const onnx::NodeProto& n) {
  for (const auto& name : n.output()) {
    if (!name.empty()) return name;
  }
  static const std::string none;
  return none;
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

}  // namespace hetplan::exchange::detail
