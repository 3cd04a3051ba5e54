// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/onnx_operators.hpp>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <hetplan/exchange/onnx_elementwise.hpp>
#include <hetplan/exchange/onnx_products.hpp>

namespace hetplan::exchange::detail {

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
  if (op == "Resize" || op == "Upsample") return t.constant;  // scales and regions are floating point
  const bool data = op == "Concat" || (op.starts_with("Scatter") && input == 2);
  return t.is_shape() && ((moves_data(n) && !data) || op.starts_with("Reduce") || others.contains(op));
}

HETPLAN_INLINE bool is_random(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  static const std::set<std::string_view> all{"RandomNormal",      "RandomNormalLike", "RandomUniform",
                                              "RandomUniformLike", "Bernoulli",        "Multinomial"};
  if (n.op_type() != "Dropout") return all.contains(n.op_type());
  const std::string& training = input_of(n, 2);
  if (training.empty()) return false;
  const auto& known = tensor(training).values;  // which may be computed when it runs
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
  if (op.starts_with("Skip") && like_first.contains(op)) return {like, {}, {}, like};  // mean, spread, and the sum that is normed
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
