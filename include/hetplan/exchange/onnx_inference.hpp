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

/// Inferred outputs of a node.
struct inferred_outputs {
  std::vector<onnx_tensor> outputs;  ///< one per output; `known` if its shape is inferred
  std::string broken;                ///< why the node breaks its operator's specification, or ""
  std::string reason;                ///< why no shape is inferred, or ""
  std::string left_out;              ///< unknown attributes that may affect the shape
};

/// Returns the quoted names of a node's unknown attributes for a message, "" for none.
[[nodiscard]] std::string names_of_others(const onnx::NodeProto& n, const std::function<bool(const std::string&)>& known);

/// Infers outputs of operators whose shape rules, inputs or attributes have changed since version 18: pooling, Pad, Resize, Split,
/// reductions, (de)quantization, DFT, GridSample, CenterCropPad, Attention. Returns none for other operators. In pooling of any version, a
/// window that would begin after the input and its leading padding does not count.
///
/// @param n  a node of a version newer than the library's, or pooling with ceil_mode. It has passed find_unsafe and, for pooling of a known
///           version, the library's check of inputs and attributes.
/// Source    ONNX's operator specifications of versions 18 to 24.
[[nodiscard]] std::optional<inferred_outputs> infer_newer(const onnx::NodeProto& n, const onnx_lookup& tensor);

/// Runs ONNX's shape inference on single nodes. The library trusts ranks, axes and attributes, and some of its versions read out of bounds;
/// unsafe nodes are refused beforehand.
class onnx_inference {
 public:
  onnx_inference() = default;
  explicit onnx_inference(const onnx::ModelProto& model);

  [[nodiscard]] inferred_outputs operator()(const onnx::NodeProto& n, const onnx_lookup& tensor) const;
  /// Returns the version of ONNX's operators that the file imports.
  [[nodiscard]] long long asked() const { return version_of(""); }
  [[nodiscard]] static long long newest();

 private:
  [[nodiscard]] long long version_of(const std::string& domain) const;

  onnx::ModelProto frame_;  ///< without nodes
  std::map<std::string, long long> version_;
};

/// Returns why a node must not be passed to the library, "" if it may.
[[nodiscard]] std::string find_unsafe(const onnx::NodeProto& n, const onnx_lookup& tensor);

}  // namespace hetplan::exchange::detail

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/onnx_inference.ipp>
#endif
