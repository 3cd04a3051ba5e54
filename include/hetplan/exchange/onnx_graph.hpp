// SPDX-License-Identifier: BSL-1.0
#pragma once
/// ONNX files as planning graphs, one layer per operator. Needs libonnx (target hetplan::onnx); this header includes nothing of it.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/exchange/onnx_options.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::exchange {

/// Largest file that protobuf can read.
inline constexpr std::size_t max_onnx_bytes = 2'147'000'000;

/// A model read from an ONNX file, with the reader's assumptions.
struct onnx_model {
  planning_graph graph;
  std::vector<std::size_t> node_of = {};       ///< by layer: position of its operator in the file, functions and branches inlined
  std::vector<std::string> not_inferred = {};  ///< tensors and constants of unknown shape; they count as one element
  std::vector<std::string> assumed = {};       ///< one sentence each
  std::size_t folded = 0;                      ///< operators that compute constants or shapes, which become no layers
};

/// Reads the text of a .onnx file. A sample is one run of the model with inputs of the stated shapes; a first axis without a size is 1.
///
/// Every operator that depends on an input becomes a layer. Its kind is the operator's type, its name the operator's name or else its type
/// and first output. Operators on constants or shapes alone are folded. A layer's weights are the constants that it reads, transposed or
/// not, wherever they are stored: in the file, beside it, or as ConstantOfShape. Single numbers, sizes, axes and indices are no weights.
/// Layers with the same constants form a weight group. An edge carries the bytes of all tensors between its two layers. Graph inputs are
/// local to their readers. Operators that only change a shape move no bytes; table look-ups read the selected rows alone.
///
/// FLOP: 2 per multiply-add, with Einsum contracted in the cheapest pairs (nine operands or more: from left to right); 1 per element of
/// simple arithmetic, 2 of BatchNormalization, 4 of Erf, Tanh, Sigmoid, Exp, 5 of Softmax, 8 of LayerNormalization and Gelu; the window
/// size for pooling and LRN; 1 per input element of reductions; none for moving data. Attention counts all keys, masked or not.
///
/// Calls of functions that the file defines are expanded. If takes the branch of its condition if that is constant, else the one of
/// `conditions`, else the one with more FLOP (on a tie, more bytes); `assumed` reports the choice.
///
/// @param text  the file's text.
/// @param file  the file's name in messages.
/// Complexity   O(n log n) for n nodes and edges, and ONNX's shape inference once per node.
/// Throws       invalid_input `FILE: ...`: another format or a truncated file, no operator, a tensor with two producers or none, a cycle,
///              unsupported content (subgraphs of Loop and Scan, sparse constants, inputs that are no tensors), a recursive function or
///              more than 500 000 operators from functions, an operator that breaks its specification, a dynamic axis without a size, a
///              size for no axis, a branch for no If, tensors beyond 1e15 bytes.
/// Source       ONNX's operator specifications; FLOP by the usual count of multiply-adds; the rest is ours.
[[nodiscard]] onnx_model read_onnx(std::string_view text, const std::string& file, const onnx_options& options = {});

/// A submodel that one device runs without interruption.
struct onnx_part {
  device_id device = {};
  int step = 0;      ///< position in the execution order; parts of the same step are independent
  std::string text;  ///< the .onnx file; its inputs and outputs are tensors of other parts, under their names in the whole model
  std::vector<std::string> beside = {};  ///< external files with the part's constants, as named in the whole model
};

/// Cuts a model into submodels, one per device and step. A device has several parts if its operators wait for other devices in between. The
/// step of an operator is the longest path to it, counted in transfers between devices, so that steps are as few as possible. Constants go
/// with their readers; folded shapes become constants. Parts name the same external weight files as the model. Constant outputs of the
/// model belong to the first part.
///
/// @param text   the file that `model` was read from, with the same options.
/// @param p      a plan of that model in one pipeline, every layer on one device.
/// @return       parts sorted by (step, device).
/// Complexity    O(n log n) for n nodes and edges, and the bytes of the constants for each part that reads them.
/// Throws        invalid_input: a plan that splits a layer or has several pipelines; a tensor between parts, or an output, of unknown
///               shape; what read_onnx throws.
/// Source        ours.
[[nodiscard]] std::vector<onnx_part> cut_onnx(std::string_view text, const std::string& file, const onnx_options& options,
                                              const onnx_model& model, const plan& p);

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/onnx_graph.ipp>
#endif
