// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Tensors of an ONNX file: shapes, types, and the small constants from which shapes are computed.

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <onnx/onnx_pb.h>

#include <hetplan/core/version.hpp>

namespace hetplan::exchange::detail {

/// Most elements of a folded tensor: longer ones are no shapes.
inline constexpr std::size_t most_folded_values = 4096;
/// Most elements of a folded tensor that is not INT64: longer ones are data.
inline constexpr std::size_t most_folded_data = 16;

/// Returns the bytes per element of an onnx::TensorProto::DataType, none for unknown types and strings, which count as 4.
[[nodiscard]] std::optional<double> bytes_of_type(int type);

/// Known facts of a tensor.
struct onnx_tensor {
  bool known = false;  ///< true if the shape is known
  std::vector<long long> shape = {};
  int type = 0;                                       ///< onnx::TensorProto::DataType
  bool constant = false;                              ///< true if independent of the graph's inputs
  std::optional<std::vector<long long>> values = {};  ///< elements of a small tensor of integers or truth values, such as a shape or axes
  std::optional<std::vector<double>> reals = {};      ///< elements of a small floating-point tensor
  std::optional<std::size_t> producer = {};           ///< index of the node

  /// True if the tensor may take part in computing shapes.
  [[nodiscard]] bool is_shape() const { return values.has_value(); }
  /// True if its elements are known.
  [[nodiscard]] bool is_read() const { return values || reals; }
  [[nodiscard]] double elements() const;
  [[nodiscard]] double bytes() const;
};

/// Returns a tensor by name; for an unknown name, one without known facts.
using onnx_lookup = std::function<const onnx_tensor&(const std::string&)>;

/// Returns the name of an input, "" for a missing one.
[[nodiscard]] const std::string& input_of(const onnx::NodeProto& n, int i);
/// Returns the name of the first output with a name.
[[nodiscard]] const std::string& first_output(const onnx::NodeProto& n);

/// Returns an attribute of a node, null if there is none of that name.
[[nodiscard]] const onnx::AttributeProto* attribute(const onnx::NodeProto& n, std::string_view name);
[[nodiscard]] long long attribute_or(const onnx::NodeProto& n, std::string_view name, long long otherwise);
[[nodiscard]] std::vector<long long> attribute_list(const onnx::NodeProto& n, std::string_view name);

/// Returns a tensor as declared in the file, with sizes of named axes from `sizes`. Its shape is known only if all sizes are.
[[nodiscard]] onnx_tensor described(const onnx::ValueInfoProto& info, const std::map<std::string, long long>& sizes);
/// Declares the known type and shape of a tensor. The default type is float.
void describe(onnx::ValueInfoProto& info, const std::string& name, const onnx_tensor& t);
/// Stores the known elements of a tensor as a constant.
void put_values(onnx::TensorProto& to, const std::string& name, const onnx_tensor& t);

/// True for floating-point types in which shapes are computed.
[[nodiscard]] bool is_real(int type);

/// Reads the elements of a small constant; leaves the tensor without them if they are many, stored externally, or of other types.
void read_numbers(const onnx::TensorProto& from, onnx_tensor& t);

}  // namespace hetplan::exchange::detail

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/onnx_values.ipp>
#endif
