// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Network definitions of ncnn (`.param`) as planning graphs, one layer per operator.

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/exchange/foreign_model.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan::exchange {

struct ncnn_options {
  std::map<std::string, std::vector<long long>> shapes = {};  ///< of inputs without sizes, by blob: width, height, channels
  int tokens_per_sample = 1;                                  ///< of a language model: rows of inputs without sizes
  double element_bytes = 4;                                   ///< of activations and of weights that are not int8
};

/// A model read from a `.param` file, with what the reader does not know.
struct ncnn_model {
  planning_graph graph;
  std::map<std::string, std::size_t> unknown = {};             ///< operators without a rule, and how often each occurs: 0 FLOP
  std::map<std::string, std::vector<long long>> assumed = {};  ///< inputs whose sizes come from their readers
};

/// Reads the text of a `.param` file. A sample is one run. Weights are counted by what the file says of them; the `.bin` is not needed.
///
/// Every operator is a layer of its name, with its type as kind, but `Input`, `Split`, `Noop` and `MemoryData` (whose bytes its readers
/// hold). FLOP: 2 per multiply-add of convolutions, inner products, Gemm, MatMul, attention and recurrent layers; all others cost their
/// traffic, and those that only change a shape none. Weights of operators with int8 scales take 1 byte, their biases 4. Shapes are inferred
/// from those of `Input` by ncnn's rules; where there is no rule, the hint in the file (`-23330`) counts. An input without sizes takes
/// those of the options; or else the width that its first reader needs, and `tokens_per_sample` rows. `SDPA` with a cache is causal
/// attention, and the cache has all heads of its keys and values.
///
/// @param file  the file's name in messages.
/// Complexity   O(n log n) for n blobs.
/// Throws       invalid_input `FILE: line N: expected X, got Y`: another format, counts that differ from the file's (but for `Noop` at its
/// end), a
///              blob that no earlier layer gives or two give, parameters that are no numbers, sizes that do not fit the operator, a product
///              whose input has no known shape, tensors beyond 1e15 elements, no operator; sizes for an unknown input.
/// Source       ncnn's docs/developer-guide (operators, param-and-model-file-structure); FLOP by the usual count of multiply-adds.
[[nodiscard]] ncnn_model read_ncnn(std::string_view text, const std::string& file, const ncnn_options& options = {});

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/ncnn_param.ipp>
#endif
