// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/onnx_products.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

namespace hetplan::exchange::detail {

[[nodiscard]] HETPLAN_INLINE double product_of(const std::vector<long long>& v) {
  double p = 1;
  for (const long long x : v) p *= static_cast<double>(x);
  return p;
}

/// An equation of Einsum over its inputs. Axes behind an ellipsis are indices, too, and come first.
struct einsum_equation {
  std::vector<long long> sizes;      ///< by index; 1 where no input says it
  std::vector<std::uint64_t> terms;  ///< by input, a bit for each index along which it is not spread
  std::vector<std::size_t> output;   ///< indices
  std::vector<char> sized;           ///< by index: do all inputs that have it say its size?
  bool counted = true;               ///< is it known how many axes are behind an ellipsis?
  std::string broken;                ///< "", or why it does not fit its inputs
};

constexpr std::size_t most_indices = 64;

/// The first ellipsis of a term; its length where there is none.
[[nodiscard]] HETPLAN_INLINE std::size_t dots_in(const std::string& term) { return std::min(term.find("..."), term.size()); }

/// An equation without blanks: its terms, and what is behind the arrow; nothing where there is none.
[[nodiscard]] HETPLAN_INLINE std::pair<std::vector<std::string>, std::optional<std::string>> parts_of_equation(const operator_view& o) {
  const auto* a = attribute(o.node, "equation");
  std::string left = a == nullptr ? "" : a->s();
  left.erase(std::remove_if(left.begin(), left.end(), [](unsigned char c) { return std::isspace(c) != 0; }), left.end());
  std::pair<std::vector<std::string>, std::optional<std::string>> parts;
  if (const std::size_t arrow = left.find("->"); arrow != std::string::npos) {
    parts.second = left.substr(arrow + 2);
    left.erase(arrow);
  }
  for (std::size_t from = 0; from <= left.size();) {
    const std::size_t comma = std::min(left.find(',', from), left.size());
    parts.first.push_back(left.substr(from, comma - from));
    from = comma + 1;
  }
  return parts;
}

[[nodiscard]] HETPLAN_INLINE einsum_equation read_equation(const operator_view& o) {
  einsum_equation e;
  auto [terms, output] = parts_of_equation(o);
  const auto wrong = [&](std::string what) {
    e.broken = std::move(what);
    return e;
  };
  if (terms.size() != static_cast<std::size_t>(o.node.input_size()))
    return wrong("expected an equation of " + std::to_string(o.node.input_size()) + " terms, as there are inputs, got " +
                 std::to_string(terms.size()));
  std::size_t hidden = 0;
  std::vector<std::size_t> behind;  // an ellipsis: axes, by input
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const std::size_t named = terms[i].size() - (dots_in(terms[i]) < terms[i].size() ? 3 : 0);
    const onnx_tensor& t = o.in(static_cast<int>(i));
    if (t.known && (t.shape.size() < named || (t.shape.size() > named && named == terms[i].size())))
      return wrong("expected input " + std::to_string(i) + " with " + std::to_string(named) + " axes, as \"" + terms[i] + "\" says, got " +
                   std::to_string(t.shape.size()));
    e.counted = e.counted && (t.known || named == terms[i].size());
    behind.push_back(t.known ? t.shape.size() - named : 0);
    hidden = std::max(hidden, behind.back());
  }
  e.sizes.assign(hidden, 1);
  std::map<char, std::size_t> letters;
  const auto indices_of = [&](const std::string& term, std::size_t spread) {
    std::vector<std::size_t> all;
    const std::size_t dots = dots_in(term);
    for (std::size_t i = 0; i < term.size(); ++i) {
      if (i == dots) {
        for (std::size_t k = hidden - spread; k < hidden; ++k) all.push_back(k);
        i += 2;
        continue;
      }
      if (std::isalpha(static_cast<unsigned char>(term[i])) == 0) e.broken = "expected letters in its equation, got \"" + term + "\"";
      const auto [it, is_new] = letters.emplace(term[i], e.sizes.size());
      if (is_new) e.sizes.push_back(1);
      all.push_back(it->second);
    }
    return all;
  };
  std::vector<std::vector<std::size_t>> indices;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const onnx_tensor& t = o.in(static_cast<int>(i));
    indices.push_back(indices_of(terms[i], t.known ? behind[i] : hidden));
    for (std::size_t k = 0; t.known && k < t.shape.size(); ++k) {
      long long& size = e.sizes[indices[i][k]];
      if (size != 1 && t.shape[k] != 1 && t.shape[k] != size)
        return wrong("expected one size of an index, got " + std::to_string(size) + " and " + std::to_string(t.shape[k]) + " in \"" +
                     terms[i] + "\"");
      if (size == 1) size = t.shape[k];
    }
  }
  const std::size_t count = e.sizes.size();
  if (count > most_indices) return wrong("expected at most 64 indices, got " + std::to_string(count));
  e.sized.assign(count, 1);
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const onnx_tensor& t = o.in(static_cast<int>(i));
    e.terms.push_back(0);
    for (std::size_t k = 0; k < indices[i].size(); ++k) {
      const std::size_t index = indices[i][k];
      if (!t.known) e.sized[index] = 0;
      if (!t.known || t.shape[k] == e.sizes[index]) e.terms.back() |= std::uint64_t{1} << index;
    }
  }
  if (!output) {  // without an arrow, what stands there once stays, and what an ellipsis stands for
    std::string all;
    for (const std::string& term : terms) all += term;
    output = dots_in(all) < all.size() ? "..." : "";
    for (const auto& [letter, index] : letters) {
      if (std::count(all.begin(), all.end(), letter) == 1) *output += letter;
    }
  }
  e.output = indices_of(*output, hidden);
  if (e.broken.empty() && e.sizes.size() > count) e.broken = "expected an output of indices that its inputs have, got \"" + *output + "\"";
  return e;
}

HETPLAN_INLINE std::string einsum_fault(const operator_view& o) { return read_equation(o).broken; }

/// Operands of Einsum as sets of indices.
class einsum_contraction {
 public:
  explicit einsum_contraction(const einsum_equation& e) : sizes_(e.sizes.begin(), e.sizes.end()), terms_(e.terms) {
    for (const std::size_t index : e.output) output_ |= std::uint64_t{1} << index;
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

  std::vector<double> sizes_;
  std::vector<std::uint64_t> terms_;
  std::uint64_t output_ = 0;
};

[[nodiscard]] HETPLAN_INLINE double einsum_flops(const operator_view& o) {
  const einsum_equation e = read_equation(o);
  return e.broken.empty() ? einsum_contraction(e).flops() : 0;
}

HETPLAN_INLINE std::vector<onnx_tensor> einsum_shape(const operator_view& o) {
  const einsum_equation e = read_equation(o);
  if (!e.broken.empty() || !e.counted) return {};
  onnx_tensor t{.known = true, .type = o.in(0).type};
  for (const std::size_t index : e.output) {
    if (e.sized[index] == 0 && e.sizes[index] == 1) return {};
    t.shape.push_back(e.sizes[index]);
  }
  return {t};
}

/// LSTM, GRU, RNN: two products a step, biases and functions of each gate.
[[nodiscard]] HETPLAN_INLINE double recurrent_flops(const operator_view& o) {
  const double steps = o.axis(0, 0) * o.axis(0, 1);  // sequence and batch, in either order
  return steps * (2 * o.in(1).elements() + 2 * o.in(2).elements() + 6 * o.axis(1, 0) * o.axis(1, 1));
}

HETPLAN_INLINE double attention_sizes::flops() const { return batch * queries * keys * (2 * (key + value) + 5 * heads); }

/// ONNX's own operator, since version 23: heads are an axis, or packed in the last one.
[[nodiscard]] HETPLAN_INLINE attention_sizes onnx_attention(const operator_view& o) {
  const bool apart = o.in(0).shape.size() == 4;
  const double heads = apart ? o.axis(0, 1) : o.attribute("q_num_heads", 1);
  const double past = o.in(4).shape.size() == 4 ? o.axis(4, 2) : 0;
  const double value = o.in(2).shape.size() == 4 ? o.axis(2, -1) : o.axis(2, -1) / o.attribute("kv_num_heads", 1);
  return {o.axis(0, 0), o.axis(0, -2), past + o.axis(1, -2), heads, apart ? heads * o.axis(0, -1) : o.axis(0, -1), heads * value};
}

HETPLAN_INLINE attention_sizes microsoft_attention(const operator_view& o) {
  const auto rank = [&](int i) { return o.in(i).shape.size(); };
  attention_sizes s{o.axis(0, 0), o.axis(0, 1), o.axis(0, 1), o.attribute("num_heads", 1), o.axis(0, 2), o.axis(0, 2)};
  if (o.type() == "Attention") {  // x, weights of queries, keys and values together, bias, mask, past
    const std::vector<long long> sizes = attribute_list(o.node, "qkv_hidden_sizes");
    s.key = sizes.size() == 3 ? static_cast<double>(sizes[0]) : std::floor(o.axis(1, 1) / 3);
    s.value = sizes.size() == 3 ? static_cast<double>(sizes[2]) : s.key;
    if (rank(4) == 5) s.keys += o.axis(4, 3);
  } else if (o.type() == "GroupQueryAttention") {
    const double packed = s.heads + 2 * o.attribute("kv_num_heads", 1);  // heads of queries, keys and values behind each other
    if (!o.has(1) && packed > 0) s.key = s.value = s.heads * std::floor(o.axis(0, 2) / packed);
    if (rank(3) == 4) s.keys += o.axis(3, 2);
  } else {
    if (rank(0) == 5) s.key = s.value = o.axis(0, 2) * o.axis(0, 4);  // batch x tokens x heads x 3 x width
    if (o.has(1)) s.keys = o.axis(1, rank(1) == 4 ? 2 : 1);
    if (rank(1) == 5) s.value = o.axis(1, 2) * o.axis(1, 4);  // batch x tokens x heads x 2 x width
    else if (o.has(2)) s.value = rank(2) == 4 ? o.axis(2, 1) * o.axis(2, 3) : o.axis(2, 2);
    if (rank(6) == 4) s.keys += o.axis(6, 2);
  }
  return s;
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
  if (attends && is_microsoft(o.node)) {
    const double projected = op == "Attention" ? 2 * o.axis(0, 0) * o.axis(0, 1) * o.in(1).elements() : 0;
    return projected + microsoft_attention(o).flops();
  }
  if (op == "Attention") return onnx_attention(o).flops();
  return std::nullopt;
}

}  // namespace hetplan::exchange::detail
