// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The few integers in an ONNX file that shapes are computed from.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <onnx/onnx_pb.h>

#include <hetplan/core/linkage.hpp>

namespace HETPLAN_NAMESPACE::exchange::detail {

/// More values than that are no shape.
inline constexpr std::size_t most_folded_values = 4096;

/// What is known of a tensor.
struct onnx_tensor {
  bool known = false;  ///< its shape
  std::vector<long long> shape = {};
  int type = 0;                                       ///< onnx::TensorProto::DataType
  bool constant = false;                              ///< no input of the graph has to do with it
  std::optional<std::vector<long long>> values = {};  ///< of few integers that are known: shapes and axes
  std::optional<std::size_t> producer = {};           ///< node

  /// Is it part of computing shapes, and nothing that a layer holds or moves?
  [[nodiscard]] bool is_shape() const { return values && type != onnx::TensorProto::FLOAT; }
  [[nodiscard]] double elements() const;
  [[nodiscard]] double bytes() const;
};

/// A tensor by its name.
using onnx_lookup = std::function<const onnx_tensor&(const std::string&)>;

/// An attribute of a node; null where it has none of that name.
[[nodiscard]] const onnx::AttributeProto* attribute(const onnx::NodeProto& n, std::string_view name);
[[nodiscard]] long long attribute_or(const onnx::NodeProto& n, std::string_view name, long long otherwise);
[[nodiscard]] std::vector<long long> attribute_list(const onnx::NodeProto& n, std::string_view name);

/// Type and shape of a tensor, as far as they are known; float where the type is not.
void describe(onnx::ValueInfoProto& info, const std::string& name, const onnx_tensor& t);
/// A constant of values that are known.
void put_values(onnx::TensorProto& to, const std::string& name, const onnx_tensor& t);

/// The numbers of a small constant, if they are integers.
[[nodiscard]] std::optional<std::vector<long long>> integers_in(const onnx::TensorProto& t);

/// What a node computes from integers that are known: shapes, and arithmetic with them. Nothing where it computes something else.
///
/// Source  ONNX's operator specifications; its own data propagation stops at Range and at floating point.
[[nodiscard]] std::optional<std::vector<long long>> values_of(const onnx::NodeProto& n, const onnx_lookup& tensor);

/// The shape of those values; nothing where their number does not say it.
[[nodiscard]] std::optional<std::vector<long long>> shape_of_values(const onnx::NodeProto& n, const onnx_lookup& tensor, std::size_t size);

}  // namespace HETPLAN_NAMESPACE::exchange::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/exchange/onnx_values.ipp>
#endif
