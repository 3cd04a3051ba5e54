// SPDX-License-Identifier: BSL-1.0
#pragma once
/// ONNX files as planning graphs: an operator a layer. Needs libonnx (target hetplan::onnx); this header includes nothing of it.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/exchange/onnx_options.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>

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

// One ONNX file for each device: a model cut where a plan's transfers are. Needs libonnx (target hetplan::onnx).

/// What one device runs in one go.
struct onnx_part {
  device_id device = {};
  int step = 0;      ///< parts run in the order of steps; those of one step do not wait for each other
  std::string text;  ///< of the file: what other parts make or read are its inputs and outputs, by their names in the whole
  std::vector<std::string> beside = {};  ///< files beside it that hold constants of it, as the whole names them
};

/// Cuts a model. A device whose operators wait for another one's in between has several parts, as few as steps: an operator's step is the
/// least that is not before its producers' and, where a producer is on another device, behind it. Constants go with their readers; shapes
/// that were folded are constants in the parts. Weights beside the file stay where they are: parts name the same files. Outputs that are
/// constant are those of the first part.
///
/// @param text   the file that `model` was read from, with the same options.
/// @param p      a plan of that model in one pipeline, every layer on one device.
/// @return       by (step, device).
/// Complexity    O(nodes + edges) logarithms, and the bytes of the constants for each part that reads them.
/// Throws        invalid_input: a plan that splits a layer or has several pipelines; a tensor between parts, or an output, of unknown
///               shape; what read_onnx throws.
/// Source        ours.
[[nodiscard]] std::vector<onnx_part> cut_onnx(std::string_view text, const std::string& file, const onnx_options& options,
                                              const onnx_model& model, const plan& p);

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/onnx_graph.ipp>
#endif
