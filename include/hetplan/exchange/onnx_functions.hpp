// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Functions of an ONNX file's own, put where they are called.

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

// Shapes, and what is computed from them.

/// What a node computes from numbers that are known: shapes, and arithmetic with them, whole or in floating point. By output, with type and
/// shape; where `known` is false their number does not say the shape. Empty where the node computes something else.
///
/// Source  ONNX's operator specifications; its own data propagation stops at Range and at floating point. FLOAT is rounded to single
///         precision after each step, as a runtime rounds it.
[[nodiscard]] std::vector<onnx_tensor> fold(const onnx::NodeProto& n, const onnx_lookup& tensor);

/// Files grow by that much at most: functions that call functions twice grow without bound.
inline constexpr std::size_t most_expanded_nodes = 500'000;
inline constexpr std::size_t most_nested_calls = 256;

/// Replaces every call of a function that the file holds by the function's operators, in the graph, in subgraphs and in functions. Tensors
/// that a function makes for itself are called CALL/NAME; attributes that an operator in it refers to are those of the call, else the
/// function's defaults, else left out. Operators of ONNX's own are found under both of their domains, "" and "ai.onnx", and are in "" then.
///
/// @return      of operators from functions that ask for other versions of operators than the file: that in a sentence, by first output.
/// @param note  is told a sentence of what had to be taken for granted.
/// @param fail  does not return: a function twice, one that calls itself, a call of more than it takes or gives, more than the limits
///              above, an attribute of another type than the function says.
/// Complexity   O(operators of the file as it is then) logarithms.
/// Source       ONNX's specification of FunctionProto, overloads and defaults included, which libraries before 1.13 and 1.16 do not know.
std::map<std::string, std::string> expand_functions(onnx::ModelProto& model, const std::function<void(const std::string&)>& note,
                                                    const std::function<void(const std::string&)>& fail);

}  // namespace hetplan::exchange::detail

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/onnx_functions.ipp>
#endif
