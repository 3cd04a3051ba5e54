// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/onnx_products.hpp>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace HETPLAN_NAMESPACE::exchange::detail {

[[nodiscard]] HETPLAN_INLINE double product_of(const std::vector<long long>& v) {
  double p = 1;
  for (const long long x : v) p *= static_cast<double>(x);
  return p;
}

/// An equation of Einsum: a size for each index, and the axes behind an ellipsis.
struct einsum_sizes {
  std::map<char, long long> of;
  std::vector<long long> hidden;
  std::string output;              ///< behind the arrow; "" where there is none
  std::vector<std::string> terms;  ///< by input
};

/// The first ellipsis of a term; its length where there is none.
[[nodiscard]] HETPLAN_INLINE std::size_t dots_in(const std::string& term) { return std::min(term.find("..."), term.size()); }

[[nodiscard]] HETPLAN_INLINE einsum_sizes read_equation(const operator_view& o) {
  einsum_sizes sizes;
  const auto* a = attribute(o.node, "equation");
  std::string terms = a == nullptr ? "" : a->s();
  terms.erase(std::remove_if(terms.begin(), terms.end(), [](unsigned char c) { return std::isspace(c) != 0; }), terms.end());
  if (const std::size_t arrow = terms.find("->"); arrow != std::string::npos) {
    sizes.output = terms.substr(arrow + 2);
    terms.erase(arrow);
  }
  for (int input = 0; input < o.node.input_size(); ++input) {
    const std::string term = terms.substr(0, terms.find(','));
    terms.erase(0, term.size() + 1);
    sizes.terms.push_back(term);
    const auto& shape = o.in(input).shape;
    const std::size_t dots = dots_in(term), named = dots < term.size() ? term.size() - 3 : term.size();
    if (shape.size() < named) continue;
    const std::size_t hidden = shape.size() - named;
    for (std::size_t i = 0; i < term.size(); ++i) {
      if (i < dots) sizes.of[term[i]] = shape[i];
      else if (i >= dots + 3) sizes.of[term[i]] = shape[i - 3 + hidden];
    }
    if (dots < term.size() && hidden >= sizes.hidden.size())
      sizes.hidden.assign(shape.begin() + static_cast<long>(dots), shape.begin() + static_cast<long>(dots + hidden));
  }
  return sizes;
}

/// Operands of Einsum as sets of indices, a bit each.
class einsum_contraction {
 public:
  /// @param sizes  of at most 64 different indices, all that an ellipsis stands for being one.
  explicit einsum_contraction(const einsum_sizes& sizes) {
    for (const auto& [index, n] : sizes.of) add(index, static_cast<double>(n));
    add('.', product_of(sizes.hidden));
    std::string all;
    for (const std::string& term : sizes.terms) {
      terms_.push_back(bits_of(term));
      all += term;
    }
    output_ = bits_of(sizes.output);
    if (!sizes.output.empty()) return;
    for (const char c : all) {  // without an arrow, what stands there once stays, and what an ellipsis stands for
      if (c == '.' || std::count(all.begin(), all.end(), c) == 1) output_ |= bits_of(std::string(1, c));
    }
  }

  /// The fewest FLOP of contractions in pairs, two for each combination of a pair's indices; of many operands, from left to right.
  [[nodiscard]] double flops() const {
    if (terms_.size() == 1) return product(terms_[0]);
    const std::size_t all = (std::size_t{1} << std::min(terms_.size(), most_tried)) - 1;
    if (terms_.size() > most_tried) return left_to_right();
    std::vector<double> least(all + 1);
    std::vector<std::uint64_t> left(all + 1);
    for (std::size_t set = 1; set <= all; ++set) {
      left[set] = indices_after(set);
      if ((set & (set - 1)) == 0) continue;  // one operand
      least[set] = std::numeric_limits<double>::infinity();
      for (std::size_t part = (set - 1) & set; part > (set ^ part); part = (part - 1) & set)
        least[set] = std::min(least[set], least[part] + least[set ^ part] + 2 * product(left[part] | left[set ^ part]));
    }
    return least[all];
  }

 private:
  static constexpr std::size_t most_tried = 8;

  void add(char index, double size) {
    bit_.emplace(index, sizes_.size());
    sizes_.push_back(size);
  }
  [[nodiscard]] std::uint64_t bits_of(const std::string& term) const {
    std::uint64_t bits = 0;
    for (const char c : term) {
      if (const auto it = bit_.find(c); it != bit_.end()) bits |= std::uint64_t{1} << it->second;
    }
    return bits;
  }
  [[nodiscard]] double product(std::uint64_t indices) const {
    double p = 1;
    for (std::size_t i = 0; i < sizes_.size(); ++i) p *= (indices >> i & 1) != 0 ? sizes_[i] : 1;
    return p;
  }
  /// What is left of a set of operands when they are one: what the output or other operands want.
  [[nodiscard]] std::uint64_t indices_after(std::size_t set) const {
    std::uint64_t inside = 0, outside = output_;
    for (std::size_t i = 0; i < terms_.size(); ++i) (set >> i & 1 ? inside : outside) |= terms_[i];
    return (set & (set - 1)) == 0 ? inside : inside & outside;
  }
  [[nodiscard]] double left_to_right() const {
    std::vector<std::uint64_t> later(terms_.size(), output_);  // what is wanted behind an operand
    for (std::size_t i = terms_.size() - 1; i-- > 0;) later[i] = later[i + 1] | terms_[i + 1];
    double sum = 0;
    std::uint64_t so_far = terms_[0];
    for (std::size_t i = 1; i < terms_.size(); ++i) {
      sum += 2 * product(so_far | terms_[i]);
      so_far = (so_far | terms_[i]) & later[i];
    }
    return sum;
  }

  std::map<char, std::size_t> bit_;
  std::vector<double> sizes_;
  std::vector<std::uint64_t> terms_;
  std::uint64_t output_ = 0;
};

[[nodiscard]] HETPLAN_INLINE double einsum_flops(const operator_view& o) {
  const einsum_sizes sizes = read_equation(o);
  return sizes.terms.empty() || sizes.of.size() > 63 ? 0 : einsum_contraction(sizes).flops();
}

[[nodiscard]] HETPLAN_INLINE std::vector<onnx_tensor> einsum_shape(const operator_view& o) {
  const einsum_sizes sizes = read_equation(o);
  const std::size_t dots = dots_in(sizes.output);
  onnx_tensor t{.known = !sizes.output.empty(), .type = o.in(0).type};
  for (std::size_t i = 0; i < sizes.output.size(); ++i) {
    if (i == dots) {
      t.shape.insert(t.shape.end(), sizes.hidden.begin(), sizes.hidden.end());
      i += 2;
      continue;
    }
    const auto it = sizes.of.find(sizes.output[i]);
    if (it == sizes.of.end()) return {};
    t.shape.push_back(it->second);
  }
  return {t};
}

/// LSTM, GRU, RNN: two products a step, biases and functions of each gate.
[[nodiscard]] HETPLAN_INLINE double recurrent_flops(const operator_view& o) {
  const double steps = o.axis(0, 0) * o.axis(0, 1);  // sequence and batch, in either order
  return steps * (2 * o.in(1).elements() + 2 * o.in(2).elements() + 6 * o.axis(1, 0) * o.axis(1, 1));
}

/// Products with keys and with values, and the softmax between: the full square, whatever is masked.
[[nodiscard]] HETPLAN_INLINE double attention_core(double batch, double queries, double keys, double heads, double hidden) {
  return batch * queries * keys * (4 * hidden + 5 * heads);
}

/// ONNX's own operator, since version 23: heads are an axis, or packed in the last one.
[[nodiscard]] HETPLAN_INLINE double onnx_attention_flops(const operator_view& o) {
  const bool apart = o.in(0).shape.size() == 4;
  const double heads = apart ? o.axis(0, 1) : o.attribute("q_num_heads", 1), queries = o.axis(0, -2);
  const double past = o.in(4).shape.size() == 4 ? o.axis(4, 2) : 0;
  const double key = apart ? o.axis(0, -1) : o.axis(0, -1) / heads;
  const double value = o.in(2).shape.size() == 4 ? o.axis(2, -1) : o.axis(2, -1) / o.attribute("kv_num_heads", 1);
  return attention_core(o.axis(0, 0), queries, past + o.axis(1, -2), heads, heads * (key + value) / 2);
}

[[nodiscard]] HETPLAN_INLINE double attention_flops(const operator_view& o) {
  const double batch = o.axis(0, 0), queries = o.axis(0, 1), heads = o.attribute("num_heads", 1);
  if (o.type() == "Attention") {  // x, weights of queries, keys and values together, bias, mask, past
    const double past = o.has(4) && o.in(4).shape.size() == 5 ? o.axis(4, 3) : 0;
    return 2 * batch * queries * o.in(1).elements() + attention_core(batch, queries, queries + past, heads, o.out() / (batch * queries));
  }
  const bool grouped = o.type() == "GroupQueryAttention";
  const bool packed = o.in(0).shape.size() == 5;
  double keys = queries;
  if (!grouped && o.has(1)) keys = o.axis(1, o.in(1).shape.size() == 4 ? 2 : 1);
  const int past = grouped ? 3 : 6;
  if (o.has(past) && o.in(past).shape.size() == 4) keys += o.axis(past, 2);
  return attention_core(batch, queries, keys, heads, packed ? o.axis(0, 2) * o.axis(0, 4) : o.out() / (batch * queries));
}

/// Each output is a sum over a window along every axis that changes: two or four wide, wider where antialiasing shrinks.
[[nodiscard]] HETPLAN_INLINE double resize_flops(const operator_view& o) {
  const auto* mode = attribute(o.node, "mode");
  const std::string how = mode == nullptr ? "nearest" : mode->s();
  const double width = how == "linear" || how == "bilinear" ? 2 : how == "cubic" ? 4 : 0;
  const auto& from = o.in(0).shape;
  const auto& to = o.tensor(first_output(o.node)).shape;
  if (width == 0 || from.size() != to.size()) return 0;
  double taps = 1;
  bool changes = false;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] == to[i]) continue;
    changes = true;
    const double shrinks = to[i] > 0 ? static_cast<double>(from[i]) / static_cast<double>(to[i]) : 1;
    taps *= width * (o.attribute("antialias", 0) != 0 ? std::max(1.0, shrinks) : 1);
  }
  return changes ? 2 * taps * o.out() : 0;
}

/// FLOP of operators that multiply matrices or slide a window; nothing for others.
[[nodiscard]] HETPLAN_INLINE std::optional<double> product_flops(const operator_view& o) {
  const std::string& op = o.type();
  const double out = o.out();
  if (op == "Conv" || op == "FusedConv" || op == "ConvInteger" || op == "QLinearConv" || op == "ConvTranspose") {
    const bool linear = op == "QLinearConv";
    const auto& w = o.in(linear ? 3 : 1).shape;  // out x in/groups x window, or in x out/groups x window
    if (w.size() < 2) return 0;
    const double taps = product_of({w.begin() + 1, w.end()});
    const bool bias = op != "ConvInteger" && o.has(linear ? 8 : 2);
    return 2 * (op == "ConvTranspose" ? o.in(0).elements() : out) * taps + (bias ? out : 0);
  }
  if (op == "MatMul" || op == "MatMulInteger" || op == "QLinearMatMul") return 2 * out * o.axis(0, -1);
  if (op == "FusedMatMul") return 2 * out * o.axis(0, o.attribute("transA", 0) != 0 ? -2 : -1);
  if (op == "MatMulNBits") return 2 * out * o.axis(0, -1);
  if (op == "MatMulIntegerToFloat" || op == "DynamicQuantizeMatMul") return 2 * out * o.axis(0, -1) + out;
  if (op == "Gemm" || op == "FusedGemm") {
    if (o.in(0).shape.size() != 2) return 0;
    return 2 * out * o.axis(0, o.attribute("transA", 0) != 0 ? 0 : 1) + (o.has(2) ? out : 0);
  }
  if (op == "Einsum") return einsum_flops(o);
  if (op == "LSTM" || op == "GRU" || op == "RNN") return recurrent_flops(o);
  if (op == "MaxPool" || op == "AveragePool" || op == "LpPool") return out * product_of(attribute_list(o.node, "kernel_shape"));
  if (op == "LRN") return out * (2 * o.attribute("size", 1) + 3);
  if (op == "Resize" || op == "Upsample") return resize_flops(o);
  const bool attends = op == "Attention" || op == "MultiHeadAttention" || op == "GroupQueryAttention";
  if (attends && is_microsoft(o.node)) return attention_flops(o);
  if (op == "Attention") return onnx_attention_flops(o);
  return std::nullopt;
}

}  // namespace HETPLAN_NAMESPACE::exchange::detail
