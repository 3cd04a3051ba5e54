// SPDX-License-Identifier: BSL-1.0
#pragma once
/// ONNX's own shape inference, one operator at a time.

#include <map>
#include <string>

#include <hetplan/exchange/onnx_newer.hpp>
#include <hetplan/exchange/onnx_values.hpp>

namespace HETPLAN_NAMESPACE::exchange::detail {

/// Asks the library. It trusts ranks, axes and attributes, and some of its versions read beyond them: what could hurt is refused before.
class onnx_inference {
 public:
  onnx_inference() = default;
  explicit onnx_inference(const onnx::ModelProto& model);

  [[nodiscard]] inferred_outputs operator()(const onnx::NodeProto& n, const onnx_lookup& tensor) const;
  /// The version of ONNX's own operators that the file asks for, and the newest that the library knows.
  [[nodiscard]] long long asked() const { return version_of(""); }
  [[nodiscard]] static long long newest();

 private:
  [[nodiscard]] long long version_of(const std::string& domain) const;

  onnx::ModelProto frame_;  ///< a model without nodes
  std::map<std::string, long long> version_;
};

/// Why the library must not see a node; "" where it may.
[[nodiscard]] std::string find_unsafe(const onnx::NodeProto& n, const onnx_lookup& tensor);

}  // namespace HETPLAN_NAMESPACE::exchange::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/exchange/onnx_inference.ipp>
#endif
