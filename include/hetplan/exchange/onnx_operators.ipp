// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/onnx_operators.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace hetplan::exchange::detail {

[[nodiscard]] HETPLAN_INLINE double product_of(const std::vector<long long>& v) {
  double p = 1;
  for (const long long x : v) p *= static_cast<double>(x);
  return p;
}

/// An equation of Einsum with its inputs. Axes of an ellipsis are indices, too, and come first.
struct einsum_equation {
  std::vector<long long> sizes;      ///< by index; 1 if no input tells
  std::vector<std::uint64_t> terms;  ///< by input: a bit for each index along which it is not broadcast
  std::vector<std::size_t> output;   ///< indices
  std::vector<char> sized;           ///< by index: true if every input with the index has a known shape
  bool counted = true;               ///< true if the number of axes of every ellipsis is known
  std::string broken;                ///< why the equation does not fit its inputs, or ""
};

constexpr std::size_t most_indices = 64;

/// Returns the position of a term's ellipsis, the term's length if it has none.
[[nodiscard]] HETPLAN_INLINE std::size_t dots_in(const std::string& term) { return std::min(term.find("..."), term.size()); }

/// Splits an equation, without blanks, into its terms and the output after the arrow, if any.
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
  std::vector<std::size_t> behind;  // by input: number of axes of its ellipsis
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
  if (!output) {  // without an arrow, the output has the ellipsis and the letters that occur once
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

/// Contraction of Einsum's operands, each a set of indices.
class einsum_contraction {
 public:
  explicit einsum_contraction(const einsum_equation& e) : sizes_(e.sizes.begin(), e.sizes.end()), terms_(e.terms) {
    for (const std::size_t index : e.output) output_ |= std::uint64_t{1} << index;
  }

  /// Returns the least FLOP over all orders of pairwise contractions, 2 per combination of a pair's indices. Many operands: left to right.
  [[nodiscard]] double flops() const {
    if (terms_.size() == 1) return product(terms_[0]);
    const std::size_t all = (std::size_t{1} << std::min(terms_.size(), most_tried)) - 1;
    if (terms_.size() > most_tried) return left_to_right();
    std::vector<double> least(all + 1);
    std::vector<std::uint64_t> left(all + 1);
    for (std::size_t set = 1; set <= all; ++set) {
      left[set] = indices_after(set);
      if ((set & (set - 1)) == 0) continue;
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
  /// Returns the indices left after contracting a set of operands: those of the output or of other operands.
  [[nodiscard]] std::uint64_t indices_after(std::size_t set) const {
    std::uint64_t inside = 0, outside = output_;
    for (std::size_t i = 0; i < terms_.size(); ++i) (set >> i & 1 ? inside : outside) |= terms_[i];
    return (set & (set - 1)) == 0 ? inside : inside & outside;
  }
  [[nodiscard]] double left_to_right() const {
    std::vector<std::uint64_t> later(terms_.size(), output_);  // by operand: indices used by later operands or the output
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

/// Returns the FLOP of LSTM, GRU, RNN: two products per step, biases and activations of each gate.
[[nodiscard]] HETPLAN_INLINE double recurrent_flops(const operator_view& o) {
  const double steps = o.axis(0, 0) * o.axis(0, 1);  // sequence and batch, in either order
  return steps * (2 * o.in(1).elements() + 2 * o.in(2).elements() + 6 * o.axis(1, 0) * o.axis(1, 1));
}

HETPLAN_INLINE double attention_sizes::flops() const { return batch * queries * keys * (2 * (key + value) + 5 * heads); }

/// Returns the sizes of ONNX's Attention (since version 23), whose heads are an axis of their own or packed into the last one.
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
  if (o.type() == "Attention") {  // x, packed weights of queries, keys and values, bias, mask, past
    const std::vector<long long> sizes = attribute_list(o.node, "qkv_hidden_sizes");
    s.key = sizes.size() == 3 ? static_cast<double>(sizes[0]) : std::floor(o.axis(1, 1) / 3);
    s.value = sizes.size() == 3 ? static_cast<double>(sizes[2]) : s.key;
    if (rank(4) == 5) s.keys += o.axis(4, 3);
  } else if (o.type() == "GroupQueryAttention") {
    const double packed = s.heads + 2 * o.attribute("kv_num_heads", 1);  // packed heads of queries, keys and values
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

/// Counts a sum over a window along every resized axis: two or four wide, wider for antialiased downsampling.
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

/// Largest integer that fits in 64 bits, less a margin for rounding in the check.
constexpr double most_whole = 9.2e18;

HETPLAN_INLINE std::optional<std::vector<long long>> spread_shape(const std::vector<std::vector<long long>>& shapes) {
  std::vector<long long> wide;
  for (const auto& s : shapes) {
    if (s.size() > wide.size()) wide.insert(wide.begin(), s.size() - wide.size(), 1);
    for (std::size_t i = 0; i < s.size(); ++i) {
      long long& w = wide[wide.size() - s.size() + i];
      if (w == 1) w = s[i];
      else if (s[i] != 1 && s[i] != w) return std::nullopt;
    }
  }
  return wide;
}

HETPLAN_INLINE std::vector<std::size_t> spread_places(const std::vector<long long>& narrow, const std::vector<long long>& wide) {
  std::vector<std::size_t> at{0};
  const std::size_t before = wide.size() - narrow.size();
  for (std::size_t axis = 0; axis < wide.size(); ++axis) {
    const auto size = static_cast<std::size_t>(axis < before ? 1 : narrow[axis - before]);
    std::vector<std::size_t> deeper;
    for (const std::size_t base : at) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(wide[axis]); ++i) deeper.push_back(base * size + (size == 1 ? 0 : i));
    }
    at = std::move(deeper);
  }
  return at;
}

HETPLAN_INLINE std::optional<double> rounded(double v, int type) {
  switch (type) {
    case onnx::TensorProto::FLOAT: v = std::abs(v) <= std::numeric_limits<float>::max() ? static_cast<float>(v) : std::nan(""); break;
    case onnx::TensorProto::DOUBLE: break;
    case onnx::TensorProto::BOOL: return v != 0 ? 1 : 0;
    default: v = std::trunc(v);
  }
  const double most = type == onnx::TensorProto::INT32 ? 2147483647.0 : type == onnx::TensorProto::INT64 ? most_whole : 1e308;
  return std::abs(v) <= most ? std::optional(v) : std::nullopt;
}

/// What whole and real numbers have alike: the smaller, the larger, comparisons.
template <class Number>
[[nodiscard]] std::optional<Number> compare(const std::string& op, Number a, Number b) {
  if (op == "Min") return std::min(a, b);
  if (op == "Max") return std::max(a, b);
  if (op == "Equal") return Number(a == b ? 1 : 0);
  if (op == "Less") return Number(a < b ? 1 : 0);
  if (op == "LessOrEqual") return Number(a <= b ? 1 : 0);
  if (op == "Greater") return Number(a > b ? 1 : 0);
  if (op == "GreaterOrEqual") return Number(a >= b ? 1 : 0);
  return std::nullopt;
}

/// Integer arithmetic. None on overflow.
[[nodiscard]] HETPLAN_INLINE std::optional<long long> calculate(const std::string& op, long long a, long long b, bool truncated) {
  const auto fits = [](double v) { return std::abs(v) <= most_whole; };
  const auto x = static_cast<double>(a), y = static_cast<double>(b);
  if (op == "Add" || op == "Sum") return fits(x + y) ? std::optional(a + b) : std::nullopt;
  if (op == "Sub") return fits(x - y) ? std::optional(a - b) : std::nullopt;
  if (op == "Mul") return fits(x * y) ? std::optional(a * b) : std::nullopt;
  if (op == "Div") return b != 0 && fits(x) ? std::optional(a / b) : std::nullopt;
  if (op == "Mod" && b != 0 && fits(x)) {
    const long long rest = a % b;
    return rest != 0 && !truncated && (rest < 0) != (b < 0) ? rest + b : rest;
  }
  if (op == "Pow" && b >= 0 && (b < 64 || a == 0 || a == 1)) {
    long long p = 1;
    for (long long i = 0; i < std::min(b, 64LL); ++i) {
      if (!fits(static_cast<double>(p) * x)) return std::nullopt;
      p *= a;
    }
    return p;
  }
  if (op == "And") return a != 0 && b != 0 ? 1 : 0;
  if (op == "Or") return a != 0 || b != 0 ? 1 : 0;
  if (op == "Xor") return (a != 0) != (b != 0) ? 1 : 0;
  return compare(op, a, b);
}

/// Floating-point arithmetic. None for functions that libraries round differently.
[[nodiscard]] HETPLAN_INLINE std::optional<double> calculate_real(const std::string& op, double a, double b) {
  if (op == "Add" || op == "Sum") return a + b;
  if (op == "Sub") return a - b;
  if (op == "Mul") return a * b;
  if (op == "Div") return b != 0 ? std::optional(a / b) : std::nullopt;
  if (op == "Mod") return b != 0 ? std::optional(std::fmod(a, b)) : std::nullopt;
  if (op == "Pow" && b == 0.5 && a >= 0) return std::sqrt(a);
  if (op == "Pow" && b == std::floor(b) && std::abs(b) <= 8) {
    double p = 1;
    for (int i = 0; i < static_cast<int>(std::abs(b)); ++i) p *= a;
    return b >= 0 ? std::optional(p) : a != 0 ? std::optional(1 / p) : std::nullopt;
  }
  return compare(op, a, b);
}

/// Functions of one number. Halves round to even.
[[nodiscard]] HETPLAN_INLINE std::optional<double> calculate_one(const std::string& op, double v) {
  if (op == "Neg") return -v;
  if (op == "Abs") return std::abs(v);
  if (op == "Sign") return v > 0 ? 1 : v < 0 ? -1 : 0;
  if (op == "Floor") return std::floor(v);
  if (op == "Ceil") return std::ceil(v);
  if (op == "Round") return v - std::remainder(v, 1.0);
  if (op == "Sqrt") return v >= 0 ? std::optional(std::sqrt(v)) : std::nullopt;
  if (op == "Reciprocal") return v != 0 ? std::optional(1 / v) : std::nullopt;
  if (op == "Not") return v == 0 ? 1 : 0;
  return std::nullopt;
}

/// Collects the elements of a tensor of a given type.
class number_list {
 public:
  explicit number_list(int type) : type_(type) {}
  [[nodiscard]] bool add(std::optional<long long> v) {
    if (v && type_ != onnx::TensorProto::INT64) return add_real(static_cast<double>(*v));
    if (v) whole_.push_back(*v);
    return v.has_value();
  }
  [[nodiscard]] bool add_real(std::optional<double> v) {
    if (v) v = rounded(*v, type_);
    if (!v) return false;
    if (is_real(type_)) reals_.push_back(*v);
    else whole_.push_back(static_cast<long long>(*v));
    return true;
  }
  [[nodiscard]] onnx_tensor in(std::vector<long long> shape) && {
    onnx_tensor t{.known = true, .shape = std::move(shape), .type = type_};
    if (is_real(type_)) t.reals = std::move(reals_);
    else t.values = std::move(whole_);
    return t;
  }

 private:
  int type_;
  std::vector<long long> whole_;
  std::vector<double> reals_;
};

[[nodiscard]] HETPLAN_INLINE double number_at(const onnx_tensor& t, std::size_t i) {
  return t.reals ? (*t.reals)[i] : static_cast<double>((*t.values)[i]);
}

HETPLAN_INLINE std::optional<onnx_tensor> fold_elementwise(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  static const std::set<std::string_view> truths{"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or", "Xor", "Not"};
  static const std::set<int> types{onnx::TensorProto::INT64, onnx::TensorProto::INT32, onnx::TensorProto::BOOL, onnx::TensorProto::FLOAT,
                                   onnx::TensorProto::DOUBLE};
  const std::string& op = n.op_type();
  if (attribute(n, "axis") != nullptr) return std::nullopt;  // old broadcasting, before version 7
  std::vector<onnx_tensor> in;
  std::vector<std::vector<long long>> shapes;
  std::vector<std::string> steps;  // by input: operator that combines it with those before
  for (int i = 0; i < n.input_size(); ++i) {
    const std::string& name = n.input(i);
    const bool bound = op == "Clip" && i > 0;
    if (bound && name.empty()) continue;
    if (name.empty() || (bound && (i > 2 || !tensor(name).shape.empty()))) return std::nullopt;
    in.push_back(tensor(name));
    shapes.push_back(in.back().shape);
    steps.push_back(!bound ? op : i == 1 ? "Max" : "Min");
  }
  const bool chooses = op == "Where", casts = op == "Cast" || op == "CastLike";
  if (op == "CastLike" && in.size() == 2) in.pop_back(), shapes.pop_back();
  const auto shape = spread_shape(shapes);
  if (!shape || (chooses && in.size() != 3)) return std::nullopt;
  double size = 1, most = 1;
  for (const long long d : *shape) size *= static_cast<double>(d), most *= static_cast<double>(std::max(d, 1LL));
  if (most > most_folded_values) return std::nullopt;
  int type = in[chooses ? 1 : 0].type;
  if (truths.contains(op)) type = onnx::TensorProto::BOOL;
  if (op == "Cast") type = static_cast<int>(attribute_or(n, "to", 0));
  if (op == "CastLike") type = tensor(input_of(n, 1)).type;
  if (!types.contains(type)) return std::nullopt;
  const bool whole = std::none_of(in.begin(), in.end(), [](const onnx_tensor& t) { return t.reals.has_value(); });
  if (op == "Mod" && !whole && attribute_or(n, "fmod", 0) == 0) return std::nullopt;
  std::vector<std::vector<std::size_t>> at;
  for (const onnx_tensor& t : in) at.push_back(spread_places(t.shape, *shape));
  number_list list(type);
  const auto take = [&](const onnx_tensor& t, std::size_t i) { return t.values ? list.add((*t.values)[i]) : list.add_real((*t.reals)[i]); };
  for (std::size_t i = 0; i < static_cast<std::size_t>(size); ++i) {
    if (chooses) {
      const std::size_t chosen = number_at(in[0], at[0][i]) != 0 ? 1 : 2;
      if (!take(in[chosen], at[chosen][i])) return std::nullopt;
    } else if (casts) {
      if (!take(in[0], at[0][i])) return std::nullopt;
    } else if (in.size() == 1 && op != "Min" && op != "Max" && op != "Sum") {
      const double v = number_at(in[0], at[0][i]);
      if ((whole && std::abs(v) > 1e15) || !list.add_real(calculate_one(op, v))) return std::nullopt;
    } else if (whole) {
      std::optional<long long> v = (*in[0].values)[at[0][i]];
      for (std::size_t k = 1; k < in.size() && v; ++k)
        v = calculate(steps[k], *v, (*in[k].values)[at[k][i]], attribute_or(n, "fmod", 0) != 0);
      if (!list.add(v)) return std::nullopt;
    } else {
      std::optional<double> v = number_at(in[0], at[0][i]);
      for (std::size_t k = 1; k < in.size() && v; ++k) {
        v = calculate_real(steps[k], *v, number_at(in[k], at[k][i]));
        if (v) v = rounded(*v, is_real(type) ? type : in[0].type);
      }
      if (!list.add_real(v)) return std::nullopt;
    }
  }
  return std::move(list).in(*shape);
}

HETPLAN_INLINE std::optional<onnx_tensor> fold_reduction(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  static const std::set<std::string_view> known{"ReduceProd", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean"};
  if (!known.contains(n.op_type())) return std::nullopt;
  const onnx_tensor& x = tensor(n.input(0));
  const auto rank = static_cast<long long>(x.shape.size());
  const std::string& second = input_of(n, 1);
  const std::vector<long long> axes = second.empty() ? attribute_list(n, "axes") : tensor(second).values.value_or(std::vector<long long>{});
  const bool keeps = attribute_or(n, "keepdims", 1) != 0, all = axes.empty() && attribute_or(n, "noop_with_empty_axes", 0) == 0;
  std::vector<char> reduced(x.shape.size(), all ? 1 : 0);
  for (const long long axis : axes) {
    if (axis < -rank || axis >= rank) return std::nullopt;
    reduced[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)] = 1;
  }
  std::vector<long long> shape, spread = x.shape;
  for (std::size_t i = 0; i < reduced.size(); ++i) {
    if (reduced[i] != 0) spread[i] = 1;
    if (reduced[i] == 0 || keeps) shape.push_back(spread[i]);
  }
  const std::vector<std::size_t> to = spread_places(spread, x.shape);
  onnx_tensor out{.known = true, .shape = shape, .type = x.type};
  const auto size = static_cast<std::size_t>(out.elements());
  const bool mean = n.op_type() == "ReduceMean";
  const std::string op = n.op_type() == "ReduceProd" ? "Mul" : mean || n.op_type() == "ReduceSum" ? "Add" : n.op_type().substr(6);
  if (size == 0 || to.size() < size) return std::nullopt;
  const auto count = static_cast<double>(to.size() / size);
  std::vector<std::optional<double>> real(size);
  std::vector<std::optional<long long>> whole(size);
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (x.reals) {
      auto& sum = real[to[i]];
      const double v = (*x.reals)[i];
      sum = sum ? calculate_real(op, *sum, v) : v;
      sum = rounded(sum.value_or(std::nan("")), x.type);
      if (!sum) return std::nullopt;
    } else {
      auto& sum = whole[to[i]];
      sum = sum ? calculate(op, *sum, (*x.values)[i], false) : (*x.values)[i];
      if (!sum) return std::nullopt;
    }
  }
  number_list list(x.type);
  for (std::size_t i = 0; i < size; ++i) {
    const bool added = x.reals ? list.add_real(mean ? *real[i] / count : *real[i])
                               : list.add(mean ? *whole[i] / static_cast<long long>(count) : *whole[i]);
    if (!added) return std::nullopt;
  }
  return std::move(list).in(shape);
}

using rates = std::map<std::string_view, double>;

[[nodiscard]] HETPLAN_INLINE const rates& flops_per_output() {
  static const rates all = [] {
    rates r;
    const auto add = [&](double flop, std::initializer_list<std::string_view> types) {
      for (const auto type : types) r[type] = flop;
    };
    add(1, {"Add", "Sub", "Mul", "Div", "Min", "Max", "Pow", "Sqrt", "Neg", "Abs", "Sign", "Floor", "Ceil", "Round", "Mod", "Reciprocal"});
    add(1, {"Relu", "LeakyRelu", "PRelu", "ThresholdedRelu", "Clip", "Where", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"});
    add(1, {"Not", "And", "Or", "Xor", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "IsNaN", "IsInf"});
    add(2, {"BatchNormalization", "DequantizeLinear", "QuantizeLinear"});
    add(3, {"HardSigmoid", "Softsign", "RotaryEmbedding", "QLinearAdd", "QLinearMul"});
    add(4, {"Exp", "Log", "Erf", "Tanh", "Sigmoid", "HardSwish", "Elu", "Selu", "Celu", "Softplus", "Sin", "Cos", "Tan"});
    add(4, {"Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "DynamicQuantizeLinear"});
    add(5, {"Softmax", "LogSoftmax", "Hardmax", "QuickGelu", "Swish", "LpNormalization"});
    add(6, {"RMSNormalization", "SimplifiedLayerNormalization", "Mish", "QLinearSigmoid"});
    add(7, {"SkipSimplifiedLayerNormalization"});
    add(8, {"LayerNormalization", "InstanceNormalization", "GroupNormalization", "MeanVarianceNormalization", "Gelu", "FastGelu"});
    add(9, {"BiasGelu", "SkipLayerNormalization"});
    add(10, {"EmbedLayerNormalization"});
    return r;
  }();
  return all;
}

[[nodiscard]] HETPLAN_INLINE const rates& flops_per_input() {
  static const rates all{{"ReduceMean", 1},
                         {"ReduceSum", 1},
                         {"ReduceMax", 1},
                         {"ReduceMin", 1},
                         {"ReduceProd", 1},
                         {"ReduceL1", 2},
                         {"ReduceL2", 2},
                         {"ReduceSumSquare", 2},
                         {"ReduceLogSum", 1},
                         {"ReduceLogSumExp", 5},
                         {"ArgMax", 1},
                         {"ArgMin", 1},
                         {"GlobalAveragePool", 1},
                         {"GlobalMaxPool", 1},
                         {"GlobalLpPool", 2},
                         {"CumSum", 1},
                         {"QLinearGlobalAveragePool", 1}};
  return all;
}

[[nodiscard]] HETPLAN_INLINE bool moves_data(const onnx::NodeProto& n) {
  static const std::set<std::string_view> all{
      "Reshape",         "Transpose",      "Concat",  "Split",    "Slice",        "Gather",       "Unsqueeze",     "Squeeze",
      "Flatten",         "Expand",         "Cast",    "CastLike", "Identity",     "Dropout",      "Pad",           "Tile",
      "Shape",           "Size",           "Range",   "Constant", "DepthToSpace", "SpaceToDepth", "ScatterND",     "GatherND",
      "GatherElements",  "Trilu",          "EyeLike", "OneHot",   "Compress",     "Scatter",      "QLinearConcat", "ConstantOfShape",
      "ScatterElements", "ReverseSequence"};
  return all.contains(n.op_type());
}

HETPLAN_INLINE std::optional<double> operator_flops(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  if (!n.domain().empty() && !is_microsoft(n)) return std::nullopt;
  const operator_view o{n, tensor};
  const std::string& op = n.op_type();
  if (const auto flop = product_flops(o)) return flop;
  if (const auto it = flops_per_output().find(op); it != flops_per_output().end()) return it->second * o.out();
  if (const auto it = flops_per_input().find(op); it != flops_per_input().end()) return it->second * o.in(0).elements();
  if (op == "Sum" || op == "Mean") return o.out() * std::max(1, n.input_size() - 1);
  if (moves_data(n)) return 0;
  return std::nullopt;
}

HETPLAN_INLINE bool is_size(const onnx::NodeProto& n, int input, const onnx_lookup& tensor) {
  static const std::set<std::string_view> others{"TopK", "CumSum", "DFT", "MaxUnpool", "CenterCropPad", "Col2Im", "AffineGrid"};
  const std::string& op = n.op_type();
  const onnx_tensor& t = tensor(n.input(input));
  if (t.is_shape() && t.elements() <= 1) return true;
  if (input == 0 || !n.domain().empty()) return false;
  if (op == "Resize" || op == "Upsample") return t.constant;  // scales and regions are floating-point
  const bool data = op == "Concat" || (op.starts_with("Scatter") && input == 2);
  return t.is_shape() && ((moves_data(n) && !data) || op.starts_with("Reduce") || others.contains(op));
}

HETPLAN_INLINE bool is_random(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  static const std::set<std::string_view> all{"RandomNormal",      "RandomNormalLike", "RandomUniform",
                                              "RandomUniformLike", "Bernoulli",        "Multinomial"};
  if (n.op_type() != "Dropout") return all.contains(n.op_type());
  const std::string& training = input_of(n, 2);
  if (training.empty()) return false;
  const auto& known = tensor(training).values;  // may be unknown until run time
  return !known || known->empty() || known->front() != 0;
}

HETPLAN_INLINE bool is_view(const onnx::NodeProto& n) {
  static const std::set<std::string_view> all{"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout"};
  return n.domain().empty() && all.contains(n.op_type());
}

HETPLAN_INLINE bool keeps_constant(const onnx::NodeProto& n) {
  return is_view(n) || n.op_type() == "Transpose" || n.op_type() == "DequantizeLinear";
}

HETPLAN_INLINE double bytes_read(const onnx::NodeProto& n, int input, const onnx_lookup& tensor) {
  static const std::set<std::string_view> picks{"Gather", "GatherND", "GatherElements", "Slice"};
  if (is_view(n) || n.op_type() == "Shape" || n.op_type() == "Size") return 0;
  const double all = tensor(n.input(input)).bytes();
  const bool table = n.op_type() == "EmbedLayerNormalization" ? input >= 2 && input <= 4 : input == 0 && picks.contains(n.op_type());
  return table ? std::min(all, tensor(first_output(n)).bytes()) : all;
}

/// Returns the shape of a matrix product over the last two axes; leading axes are those of the left operand.
[[nodiscard]] HETPLAN_INLINE std::vector<onnx_tensor> product_shape(const operator_view& o, long long columns, int type,
                                                                    bool turned = false) {
  onnx_tensor t{.known = true, .shape = o.in(0).shape, .type = type};
  if (t.shape.size() < 2) return {};
  if (turned) std::swap(t.shape[t.shape.size() - 1], t.shape[t.shape.size() - 2]);
  t.shape.back() = columns;
  return {t};
}

HETPLAN_INLINE std::vector<onnx_tensor> shapes_beyond_onnx(const onnx::NodeProto& n, long long version, const onnx_lookup& tensor) {
  static const std::set<std::string_view> like_first{"LayerNormalization",
                                                     "SimplifiedLayerNormalization",
                                                     "SkipLayerNormalization",
                                                     "SkipSimplifiedLayerNormalization",
                                                     "RMSNormalization",
                                                     "GroupNormalization",
                                                     "RotaryEmbedding",
                                                     "Gelu",
                                                     "FastGelu",
                                                     "QuickGelu",
                                                     "BiasGelu",
                                                     "Mish",
                                                     "Swish",
                                                     "QLinearAdd",
                                                     "QLinearMul",
                                                     "QLinearSigmoid"};
  const operator_view o{n, tensor};
  const std::string& op = n.op_type();
  if ((!n.domain().empty() && !is_microsoft(n)) || !o.in(0).known) return {};
  onnx_tensor like = {.known = true, .shape = o.in(0).shape, .type = o.in(0).type};
  if (op.starts_with("Skip") && like_first.contains(op)) return {like, {}, {}, like};  // mean, deviation, and the normalized sum
  if (like_first.contains(op)) return {like};
  if (op == "Einsum") return einsum_shape(o);
  if (op == "BitwiseNot") return {like};
  if (op.starts_with("Bitwise") && o.in(1).known) {
    if (const auto shape = spread_shape({like.shape, o.in(1).shape})) like.shape = *shape;
    return {like};
  }
  if (!is_microsoft(n)) return version < 7 && flops_per_output().contains(op) ? std::vector{like} : std::vector<onnx_tensor>{};
  constexpr int real = onnx::TensorProto::FLOAT;
  const auto rank = [&](int i) { return o.in(i).known ? o.in(i).shape.size() : 0; };
  if (op == "MatMulNBits") return product_shape(o, attribute_or(n, "N", 1), like.type);
  const bool to_float = op == "MatMulIntegerToFloat" || op == "DynamicQuantizeMatMul";
  if ((op == "FusedMatMul" || to_float) && rank(0) >= rank(1) && rank(1) >= 2) {
    const bool turned = op == "FusedMatMul" && o.attribute("transB", 0) != 0;
    return product_shape(o, static_cast<long long>(o.axis(1, turned ? -2 : -1)), to_float ? real : like.type,
                         op == "FusedMatMul" && o.attribute("transA", 0) != 0);
  }
  const bool grouped = op == "GroupQueryAttention";
  const auto heads = attribute_or(n, "kv_num_heads", 1);
  const bool many = op == "MultiHeadAttention" && (rank(0) == 5 || (rank(0) == 3 && (rank(1) == 5 || (rank(1) >= 3 && rank(2) >= 3))));
  if (many || (grouped && rank(0) == 3) || (op == "Attention" && rank(0) == 3 && rank(1) == 2)) {
    const attention_sizes sizes = microsoft_attention(o);
    like.shape = {like.shape[0], like.shape[1], static_cast<long long>(sizes.value)};
    if (!grouped || heads < 1 || sizes.heads < 1) return {like};
    onnx_tensor cache = like;
    cache.shape = {like.shape[0], heads, static_cast<long long>(sizes.keys), static_cast<long long>(sizes.key / sizes.heads)};
    return {like, cache, cache};
  }
  if (op == "EmbedLayerNormalization" && rank(0) == 2 && rank(2) == 2) {
    like.shape.push_back(o.in(2).shape[1]);
    like.type = o.in(2).type;
    return {like};
  }
  return {};
}

}  // namespace hetplan::exchange::detail
