// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Constant folding of shapes, and inlining of functions that an ONNX file defines.

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <onnx/onnx_pb.h>

#include <hetplan/core/version.hpp>
#include <hetplan/exchange/onnx_values.hpp>

namespace hetplan::exchange::detail {

/// Returns a node's outputs if they follow from shapes and constants by integer or floating-point operators. Outputs have types and shapes;
/// where `known` is false the values do not determine the shape. Returns an empty list for other nodes.
///
/// Source  ONNX's operator specifications; its own data propagation stops at Range and at floating point. FLOAT is rounded to single
///         precision after each step, as in a runtime.
[[nodiscard]] std::vector<onnx_tensor> fold(const onnx::NodeProto& n, const onnx_lookup& tensor);

/// Limits on expansion: functions that call functions twice grow exponentially.
inline constexpr std::size_t most_expanded_nodes = 500'000;
inline constexpr std::size_t most_nested_calls = 256;

/// Inlines every call of a function that the file defines, in the graph, in subgraphs and in functions. A function's own tensors are named
/// CALL/NAME. Attribute references in its operators get the value of the call, else the function's default, else are dropped. ONNX's
/// operators are matched under both of their domains, "" and "ai.onnx", and end up in "".
///
/// @return      a sentence by first output, for operators of functions that import another operator version than the file.
/// @param note  gets a sentence for each assumption.
/// @param fail  does not return: a duplicate function, recursion, a call with more inputs or outputs than the function has, exceeded limits
///              (see above), an attribute whose type differs from the function's.
/// Complexity   O(n log n) for n operators of the expanded file.
/// Source       ONNX's specification of FunctionProto, overloads and defaults included, which libraries before 1.13 and 1.16 do not know.
std::map<std::string, std::string> expand_functions(onnx::ModelProto& model, const std::function<void(const std::string&)>& note,
                                                    const std::function<void(const std::string&)>& fail);

}  // namespace hetplan::exchange::detail

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/onnx_functions.ipp>
#endif
