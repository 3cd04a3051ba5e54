// SPDX-License-Identifier: BSL-1.0
#pragma once
/// ONNX's own shape inference, one operator at a time.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <hetplan/exchange/onnx_values.hpp>

namespace hetplan::exchange::detail {

// Shapes of operators of newer versions than the library may know.

/// What is inferred of a node.
struct inferred_outputs {
  std::vector<onnx_tensor> outputs;  ///< by output; `known` where it has inferred the shape
  std::string broken;                ///< "", or why the node breaks its operator's specification
  std::string reason;                ///< "", or why there is no shape
  std::string left_out;              ///< attributes that may say more of the shape than what is known of the operator
};

/// Attributes of a node that are not known, for a message; "" for none.
[[nodiscard]] std::string names_of_others(const onnx::NodeProto& n, const std::function<bool(const std::string&)>& known);

/// What operators make whose shapes follow other rules since version 18, with inputs or attributes that were not there before: pooling,
/// Pad, Resize, Split, reductions, (de)quantization, DFT, GridSample, CenterCropPad, Attention. Nothing for other operators. Pooling: a
/// window that would begin behind the input and its first padding is none, in any version.
///
/// @param n  of a version that the library does not know, or one that pools with ceil_mode; find_unsafe has let it pass, and for pooling of
///           a version that is known the library's check of inputs and attributes.
/// Source    ONNX's operator specifications of versions 18 to 24.
[[nodiscard]] std::optional<inferred_outputs> infer_newer(const onnx::NodeProto& n, const onnx_lookup& tensor);

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

}  // namespace hetplan::exchange::detail

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/onnx_inference.ipp>
#endif
