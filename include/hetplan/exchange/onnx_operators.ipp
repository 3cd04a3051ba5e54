// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/onnx_operators.hpp>

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace HETPLAN_NAMESPACE::exchange::detail {

/// A node and the tensors that it reads.
struct operator_view {
  const onnx::NodeProto& node;
  const onnx_lookup& tensor;

  [[nodiscard]] const std::string& type() const { return node.op_type(); }
  [[nodiscard]] const onnx_tensor& in(int i) const { return tensor(input_of(node, i)); }
  [[nodiscard]] bool has(int i) const { return !input_of(node, i).empty(); }
  [[nodiscard]] double out() const { return tensor(first_output(node)).elements(); }
  /// Size of an axis of an input, from the back where it is negative; 1 where it is not known.
  [[nodiscard]] double axis(int input, int i) const {
    const auto& s = in(input).shape;
    const int at = i < 0 ? i + static_cast<int>(s.size()) : i;
    return at < 0 || at >= static_cast<int>(s.size()) ? 1 : static_cast<double>(s[static_cast<std::size_t>(at)]);
  }
  [[nodiscard]] double attribute(std::string_view name, long long otherwise) const {
    return static_cast<double>(attribute_or(node, name, otherwise));
  }
};

[[nodiscard]] HETPLAN_INLINE bool is_microsoft(const onnx::NodeProto& n) { return n.domain() == "com.microsoft"; }

[[nodiscard]] HETPLAN_INLINE double product_of(const std::vector<long long>& v) {
  double p = 1;
  for (const long long x : v) p *= static_cast<double>(x);
  return p;
}

/// An equation of Einsum: a size for each index, and the axes behind an ellipsis.
struct einsum_sizes {
  std::map<char, long long> of;
  std::vector<long long> hidden;
  std::string output;  ///< behind the arrow; "" where there is none
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

/// All indices, once each.
[[nodiscard]] HETPLAN_INLINE double einsum_flops(const operator_view& o) {
  const einsum_sizes sizes = read_equation(o);
  double all = product_of(sizes.hidden);
  for (const auto& [index, n] : sizes.of) all *= static_cast<double>(n);
  return (o.node.input_size() > 1 ? 2 : 1) * all;
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

/// Products with keys and with values, and the softmax between.
[[nodiscard]] HETPLAN_INLINE double attention_core(double batch, double queries, double keys, double heads, double hidden) {
  return batch * queries * keys * (4 * hidden + 5 * heads);
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
  if (op == "Resize" || op == "Upsample") {
    const auto* mode = attribute(o.node, "mode");
    const std::string how = mode == nullptr ? "nearest" : mode->s();
    return how == "linear" || how == "bilinear" ? 8 * out : how == "cubic" ? 32 * out : 0;  // two axes
  }
  const bool attends = op == "Attention" || op == "MultiHeadAttention" || op == "GroupQueryAttention";
  if (attends && is_microsoft(o.node)) return attention_flops(o);
  return std::nullopt;
}

using rates = std::map<std::string_view, double>;

/// FLOP an output element.
[[nodiscard]] HETPLAN_INLINE const rates& flops_per_output() {
  static const rates all = [] {
    rates r;
    const auto add = [&](double flop, std::initializer_list<std::string_view> types) {
      for (const auto type : types) r[type] = flop;
    };
    add(1, {"Add", "Sub", "Mul", "Div", "Min", "Max", "Pow", "Sqrt", "Neg", "Abs", "Sign", "Floor", "Ceil", "Round", "Mod", "Reciprocal"});
    add(1, {"Relu", "LeakyRelu", "PRelu", "ThresholdedRelu", "Clip", "Where", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"});
    add(1, {"Not", "And", "Or", "Xor", "BitShift", "IsNaN", "IsInf"});
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

/// FLOP an input element.
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

HETPLAN_INLINE std::optional<double> operator_flops(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  static const std::set<std::string_view> moves{
      "Reshape",         "Transpose",      "Concat",  "Split",    "Slice",        "Gather",       "Unsqueeze",     "Squeeze",
      "Flatten",         "Expand",         "Cast",    "CastLike", "Identity",     "Dropout",      "Pad",           "Tile",
      "Shape",           "Size",           "Range",   "Constant", "DepthToSpace", "SpaceToDepth", "ScatterND",     "GatherND",
      "GatherElements",  "Trilu",          "EyeLike", "OneHot",   "Compress",     "Scatter",      "QLinearConcat", "ConstantOfShape",
      "ScatterElements", "ReverseSequence"};
  if (!n.domain().empty() && !is_microsoft(n)) return std::nullopt;
  const operator_view o{n, tensor};
  const std::string& op = n.op_type();
  if (const auto flop = product_flops(o)) return flop;
  if (const auto it = flops_per_output().find(op); it != flops_per_output().end()) return it->second * o.out();
  if (const auto it = flops_per_input().find(op); it != flops_per_input().end()) return it->second * o.in(0).elements();
  if (op == "Sum" || op == "Mean") return o.out() * std::max(1, n.input_size() - 1);
  if (moves.contains(op)) return 0;
  return std::nullopt;
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

/// Rows times columns, for the last axes; the first ones as the left side has them.
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
  if (like_first.contains(op)) return {like};
  if (op == "Einsum") return einsum_shape(o);
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
  if (op == "Attention" && rank(0) == 3 && rank(1) == 2) {
    like.shape[2] = o.in(1).shape[1] / 3;
    if (const auto sizes = attribute_list(n, "qkv_hidden_sizes"); sizes.size() == 3) like.shape[2] = sizes[2];
    return {like};
  }
  if (op == "MultiHeadAttention" && rank(0) == 3 && rank(2) >= 3) {
    like.shape[2] = rank(2) == 3 ? o.in(2).shape[2] : o.in(2).shape[1] * o.in(2).shape[3];
    return {like};
  }
  if (op == "GroupQueryAttention" && rank(0) == 3 && o.has(1)) {
    const auto heads = static_cast<long long>(o.attribute("kv_num_heads", 1));
    if (rank(1) != 3 || heads < 1) return {like};
    onnx_tensor cache = like;
    const long long past = rank(3) == 4 ? o.in(3).shape[2] : 0;
    cache.shape = {like.shape[0], heads, past + like.shape[1], o.in(1).shape[2] / heads};
    return {like, cache, cache};
  }
  if (op == "EmbedLayerNormalization" && rank(0) == 2 && rank(2) == 2) {
    like.shape.push_back(o.in(2).shape[1]);
    like.type = o.in(2).type;
    return {like};
  }
  return {};
}

}  // namespace HETPLAN_NAMESPACE::exchange::detail
