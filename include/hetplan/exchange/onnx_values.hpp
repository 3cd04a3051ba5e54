// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The few numbers in an ONNX file that shapes are computed from.

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

/// More values than that are no shape.
inline constexpr std::size_t most_folded_values = 4096;
/// More numbers of other types are data, not sizes.
inline constexpr std::size_t most_folded_data = 16;

/// Bytes of an element of an onnx::TensorProto::DataType; nothing where the type is not known, as that of texts: they count as 4.
[[nodiscard]] std::optional<double> bytes_of_type(int type);

/// What is known of a tensor.
struct onnx_tensor {
  bool known = false;  ///< its shape
  std::vector<long long> shape = {};
  int type = 0;                                       ///< onnx::TensorProto::DataType
  bool constant = false;                              ///< no input of the graph has to do with it
  std::optional<std::vector<long long>> values = {};  ///< of few integers and truth values that are known, as shapes and axes are
  std::optional<std::vector<double>> reals = {};      ///< of few numbers that are known, where they are floating point
  std::optional<std::size_t> producer = {};           ///< node

  /// May it be part of computing shapes?
  [[nodiscard]] bool is_shape() const { return values.has_value(); }
  /// Are its numbers known?
  [[nodiscard]] bool is_read() const { return values || reals; }
  [[nodiscard]] double elements() const;
  [[nodiscard]] double bytes() const;
};

/// A tensor by its name; one of which nothing is known where there is none.
using onnx_lookup = std::function<const onnx_tensor&(const std::string&)>;

/// The name of an input; "" where the node has none there.
[[nodiscard]] const std::string& input_of(const onnx::NodeProto& n, int i);
/// The first output that has a name.
[[nodiscard]] const std::string& first_output(const onnx::NodeProto& n);

/// An attribute of a node; null where it has none of that name.
[[nodiscard]] const onnx::AttributeProto* attribute(const onnx::NodeProto& n, std::string_view name);
[[nodiscard]] long long attribute_or(const onnx::NodeProto& n, std::string_view name, long long otherwise);
[[nodiscard]] std::vector<long long> attribute_list(const onnx::NodeProto& n, std::string_view name);

/// What a file says of a tensor; an axis of a name has its size from `sizes`. Known only if all of them are.
[[nodiscard]] onnx_tensor described(const onnx::ValueInfoProto& info, const std::map<std::string, long long>& sizes);
/// Type and shape of a tensor, as far as they are known; float where the type is not.
void describe(onnx::ValueInfoProto& info, const std::string& name, const onnx_tensor& t);
/// A constant of values that are known.
void put_values(onnx::TensorProto& to, const std::string& name, const onnx_tensor& t);

/// A type in which shapes are computed in floating point?
[[nodiscard]] bool is_real(int type);

/// Gives a tensor the numbers of a small constant; leaves it without where they are many, in another file or of other types.
void read_numbers(const onnx::TensorProto& from, onnx_tensor& t);

}  // namespace hetplan::exchange::detail

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/onnx_values.ipp>
#endif
