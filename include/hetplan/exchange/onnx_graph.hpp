// SPDX-License-Identifier: BSL-1.0
#pragma once
/// ONNX files as planning graphs: an operator a layer. Needs libonnx (target hetplan::onnx); this header includes nothing of it.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/exchange/onnx_options.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan::exchange {

/// The largest file that protobuf reads.
inline constexpr std::size_t max_onnx_bytes = 2'147'000'000;

/// A model and what had to be taken for granted.
struct onnx_model {
  planning_graph graph;
  std::vector<std::size_t> node_of = {};       ///< by layer: the operator's place in the file, its functions and branches in place
  std::vector<std::string> not_inferred = {};  ///< tensors and constants whose shape is not known; they count as one element
  std::vector<std::string> assumed = {};       ///< a sentence each
  std::size_t folded = 0;                      ///< operators that compute constants or shapes: no layers
};

/// Reads the text of a .onnx file. A sample is one run of the model as its inputs say, a first axis of no size being 1.
///
/// An operator that computes anything from an input is a layer: kind = its type, name = its own or its type and first output. What is
/// computed from constants alone, or from shapes, is folded: weights are the constants that a layer reads, wherever they stand (in
/// the file, beside it, or behind ConstantOfShape), transposed or not, but for single numbers and for sizes, axes and places; layers that
/// read the same are a weight group. An edge has the bytes of all tensors between its two layers. Graph inputs are where they are read.
/// What gives a tensor another shape alone moves nothing; what looks up rows of a table reads those.
///
/// FLOP: 2 a multiply-add, of Einsum in the cheapest pairs (nine operands or more: from left to right); 1 for an element of simple
/// arithmetic, 2 of BatchNormalization, 4 of Erf, Tanh, Sigmoid, Exp, 5 of Softmax, 8 of LayerNormalization and Gelu, the window for
/// pooling and LRN, one an input element for reductions; attention is counted over all keys, masked or not; moving data is none.
///
/// @param text  of the file.
/// @param file  what messages call it.
/// Complexity   O((nodes + edges) log), and ONNX's shape inference once a node.
/// Functions of the file's own are expanded where they are called. If takes the branch that its condition says where that is a constant,
/// else the one that `conditions` asks for, else the one with more FLOP (or, of as many, more bytes); all that is said.
///
/// Throws       invalid_input `FILE: ...`: no ONNX or cut short, no operator, a tensor made twice or by nobody, a cycle, what is not read
///              (subgraphs, as Loop and Scan have, sparse constants, inputs that are no tensors), a function that calls itself or grows
///              beyond 500 000 operators, an operator that breaks its specification, a dynamic axis without a size, a size named for no
///              axis, a branch for no If, tensors beyond 1e15 bytes.
/// Source       ONNX's operator specifications; FLOP by the usual count of multiply-adds; the rest is ours.
[[nodiscard]] onnx_model read_onnx(std::string_view text, const std::string& file, const onnx_options& options = {});

}  // namespace hetplan::exchange

#ifndef HETPLAN_COMPILED
#include <hetplan/exchange/onnx_graph.ipp>
#endif
