// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What an operator of an ncnn .param file does: the sizes of what it gives, multiply-adds, weights.

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hetplan::exchange::detail {

/// Sizes of a blob, the outermost first: [w], [h, w], [c, h, w] or [c, d, h, w].
using ncnn_shape = std::vector<long long>;

[[nodiscard]] inline double elements_of(const ncnn_shape& s) {
  double n = 1;
  for (const long long d : s) n *= static_cast<double>(d);
  return n;
}

/// Shapes of an operator's only output. (`std::vector{shape}` would copy the shape.)
[[nodiscard]] inline std::vector<ncnn_shape> one(ncnn_shape s) { return std::vector<ncnn_shape>(1, std::move(s)); }

/// A line of the file: one operator.
struct ncnn_line {
  const std::string* file;
  std::size_t number = 0;
  std::string type, name;
  std::vector<std::string> in, out;
  std::map<int, std::vector<double>> parameters;  ///< of arrays and single numbers alike
};

/// What an operator does, by its rule.
struct ncnn_work {
  std::vector<ncnn_shape> out;  ///< fewer than outputs: the rest is not known
  double multiply_adds = 0;
  double weights = 0, others = 0;  ///< numbers of the operator's precision, and of fp32 beside int8 weights
  double rows = 0;                 ///< of the product; 0: it has none
  double pair_multiply_adds = 0;   ///< attention of each pair of tokens; contained in multiply_adds
  double cached = 0;               ///< numbers that the cache gets for each token
  double looked_up = 0;            ///< numbers of weights that a call reads, if not all
  bool moves = true;               ///< false: changes the shape only
  bool known = true;
};

namespace ncnn {

/// Throws invalid_input that names the file, the line, the operator and its name.
[[noreturn]] void fail(const ncnn_line& l, const std::string& what);

/// Returns an integer parameter of at least `least`, or `otherwise` if the line has none of that key.
/// Throws  invalid_input: no integer, below `least`.
[[nodiscard]] long long size(const ncnn_line& l, int key, long long otherwise, long long least = 1);
[[nodiscard]] long long integer(const ncnn_line& l, int key, long long otherwise);

/// Throws invalid_input for sizes below 1 and tensors of more than 1e15 elements.
void require_sizes(const ncnn_line& l, const ncnn_shape& s);

/// Returns what the operator does to inputs of these shapes.
///
/// Throws  invalid_input: parameters or shapes that the operator cannot have, an unknown shape that its product needs.
/// Source  Tencent/ncnn, docs/developer-guide/operators.md (parameters by key and their defaults).
[[nodiscard]] ncnn_work work_of(const ncnn_line& l, const std::vector<std::optional<ncnn_shape>>& in);

}  // namespace ncnn

}  // namespace hetplan::exchange::detail

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/ncnn_operators.ipp>
#endif
