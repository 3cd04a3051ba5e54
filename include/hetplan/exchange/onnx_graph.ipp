// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/onnx_graph.hpp>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include <hetplan/exchange/foreign_model.hpp>
#include <hetplan/exchange/onnx_file.hpp>
#include <hetplan/graph/planning_graph_builder.hpp>

namespace HETPLAN_NAMESPACE::exchange {

namespace detail {

[[nodiscard]] HETPLAN_INLINE double product_of(const std::vector<long long>& v) {
  double p = 1;
  for (const long long x : v) p *= static_cast<double>(x);
  return p;
}

/// FLOP of operators that multiply matrices or slide a window; nothing for others.
[[nodiscard]] HETPLAN_INLINE std::optional<double> product_flops(const onnx_file& f, const onnx::NodeProto& n) {
  const std::string& op = n.op_type();
  const auto in = [&](int i) -> const onnx_tensor& { return f.tensor(i < n.input_size() ? n.input(i) : std::string()); };
  const double out = f.tensor(n.output(0)).elements();
  if (op == "Conv" || op == "ConvTranspose") {
    const auto& w = in(1).shape;  // out x in/groups x window, or in x out/groups x window
    if (w.size() < 2) return 0;
    const double taps = product_of({w.begin() + 1, w.end()});
    const double products = op == "Conv" ? out * taps : in(0).elements() * taps;
    return 2 * products + (n.input_size() > 2 ? out : 0);
  }
  if (op == "MatMul") {
    const auto& a = in(0).shape;
    return a.empty() ? 0 : 2 * out * static_cast<double>(a.back());
  }
  if (op == "Gemm") {
    const auto& a = in(0).shape;
    if (a.size() != 2) return 0;
    const bool turned = attribute_or(n, "transA", 0) != 0;
    return 2 * out * static_cast<double>(turned ? a[0] : a[1]) + (n.input_size() > 2 ? out : 0);
  }
  if (op == "MaxPool" || op == "AveragePool") return out * product_of(attribute_list(n, "kernel_shape"));
  if (op == "LRN") return out * (2.0 * static_cast<double>(attribute_or(n, "size", 1)) + 3);
  return std::nullopt;
}

/// FLOP an output element, or an input element; nothing where the type is not known.
[[nodiscard]] HETPLAN_INLINE std::optional<double> elementwise_flops(const onnx_file& f, const onnx::NodeProto& n) {
  static const std::map<std::string_view, double> per_output{{"Add", 1},
                                                             {"Sub", 1},
                                                             {"Mul", 1},
                                                             {"Div", 1},
                                                             {"Min", 1},
                                                             {"Max", 1},
                                                             {"Pow", 1},
                                                             {"Sqrt", 1},
                                                             {"Neg", 1},
                                                             {"Abs", 1},
                                                             {"Relu", 1},
                                                             {"LeakyRelu", 1},
                                                             {"PRelu", 1},
                                                             {"Clip", 1},
                                                             {"Where", 1},
                                                             {"Equal", 1},
                                                             {"Greater", 1},
                                                             {"Less", 1},
                                                             {"Not", 1},
                                                             {"And", 1},
                                                             {"Or", 1},
                                                             {"Reciprocal", 1},
                                                             {"Exp", 4},
                                                             {"Log", 4},
                                                             {"Erf", 4},
                                                             {"Tanh", 4},
                                                             {"Sigmoid", 4},
                                                             {"HardSigmoid", 3},
                                                             {"HardSwish", 4},
                                                             {"BatchNormalization", 2},
                                                             {"InstanceNormalization", 8},
                                                             {"LayerNormalization", 8},
                                                             {"Softmax", 5},
                                                             {"LogSoftmax", 5},
                                                             {"Gelu", 8},
                                                             {"FastGelu", 8},
                                                             {"BiasGelu", 9},
                                                             {"Elu", 4},
                                                             {"Softplus", 4}};
  static const std::map<std::string_view, double> per_input{{"ReduceMean", 1},    {"ReduceSum", 1}, {"ReduceMax", 1},
                                                            {"ReduceMin", 1},     {"ReduceL2", 2},  {"GlobalAveragePool", 1},
                                                            {"GlobalMaxPool", 1}, {"ArgMax", 1}};
  static const std::set<std::string_view> moves{
      "Reshape", "Transpose", "Concat",   "Split",        "Slice",        "Gather",    "Unsqueeze", "Squeeze",       "Flatten",
      "Expand",  "Cast",      "Identity", "Dropout",      "Pad",          "Tile",      "Shape",     "Constant",      "ConstantOfShape",
      "Range",   "Resize",    "Upsample", "DepthToSpace", "SpaceToDepth", "ScatterND", "GatherND",  "GatherElements"};
  const std::string& op = n.op_type();
  const double out = f.tensor(n.output(0)).elements();
  if (const auto it = per_output.find(op); it != per_output.end()) return it->second * out;
  if (const auto it = per_input.find(op); it != per_input.end() && n.input_size() > 0) return it->second * f.tensor(n.input(0)).elements();
  if (op == "Sum" || op == "Mean") return out * std::max(1, n.input_size() - 1);
  if (moves.contains(op)) return 0;
  return std::nullopt;
}

}  // namespace detail

HETPLAN_INLINE onnx_model read_onnx(std::string_view text, const std::string& file, const onnx_options& options) {
  const detail::onnx_file f(text, file, options.dimensions);
  const std::string& given = f.model().graph().name();
  const std::string name = !options.name.empty() ? options.name : !given.empty() && detail::is_utf8(given) ? given : model_name_of(file);
  std::vector<std::string> assumed = f.assumed(), not_inferred;
  planning_graph_builder builder(name, 4);
  std::map<std::string, int> readers;  // of constants, by layers
  const auto weighs = [&](const std::string& tensor) { return f.tensor(tensor).constant && !f.tensor(tensor).is_shape(); };
  std::vector<std::size_t> layers;
  std::set<std::string> used;  // tensors that somebody reads
  for (const auto& o : f.model().graph().output()) used.insert(o.name());
  for (const std::size_t i : f.order()) {
    used.insert(f.node(i).input().begin(), f.node(i).input().end());
    if (f.is_folded(i)) continue;
    layers.push_back(i);
    std::set<std::string> mine;
    for (const auto& t : f.node(i).input()) {
      if (!t.empty() && weighs(t) && mine.insert(t).second) ++readers[t];
    }
  }
  if (layers.empty()) f.fail("no operator reads an input: there is nothing to place");
  std::map<std::string, layer_id> made_by;
  std::vector<std::map<layer_id, double>> inputs;
  std::set<std::string> names, unknown_types;
  for (const std::size_t i : layers) {
    const onnx::NodeProto& n = f.node(i);
    layer_spec spec{.name = n.name().empty() ? n.op_type() + " " + n.output(0) : n.name(), .kind = n.op_type()};
    if (!detail::is_utf8(spec.name)) f.fail("operator " + std::to_string(i) + " has a name that is no UTF-8");
    if (!detail::is_utf8(spec.kind)) f.fail("operator " + std::to_string(i) + " has a type that is no UTF-8");
    for (int twice = 2; names.contains(spec.name); ++twice)
      spec.name = (n.name().empty() ? n.op_type() + " " + n.output(0) : n.name()) + " (" + std::to_string(twice) + ")";
    names.insert(spec.name);
    std::optional<double> flop = detail::product_flops(f, n);
    if (!flop) flop = detail::elementwise_flops(f, n);
    if (!flop) unknown_types.insert(n.op_type());
    spec.forward_flops = flops(flop.value_or(0));
    std::set<std::string> read;
    std::map<layer_id, double> from;
    double traffic = 0, weight = 0, shared = 0;
    std::string group;
    for (const auto& t : n.input()) {
      if (t.empty() || !read.insert(t).second) continue;
      const detail::onnx_tensor& x = f.tensor(t);
      if (weighs(t)) {
        weight += x.bytes();
        if (readers[t] > 1) shared = x.bytes(), group = t;
        continue;
      }
      if (x.is_shape()) continue;
      traffic += x.bytes();
      if (const auto it = made_by.find(t); it != made_by.end()) from[it->second] += x.bytes();
    }
    for (const auto& o : n.output()) {
      if (o.empty() || f.tensor(o).is_shape()) continue;
      if (!f.tensor(o).known && used.contains(o)) not_inferred.push_back(o);
      traffic += f.tensor(o).bytes();
    }
    spec.weight = bytes(weight);
    spec.traffic = bytes(traffic);
    if (!group.empty() && shared == weight) spec.weight_group = group;
    else if (!group.empty())
      assumed.push_back("layer \"" + spec.name + "\" holds a copy of its own of \"" + group + "\", which others read, too");
    const layer_id id = builder.add_layer(std::move(spec));
    for (const auto& [producer, size] : from) builder.add_edge(producer, id, bytes(size));
    for (const auto& o : n.output()) {
      if (!o.empty()) made_by[o] = id;
    }
  }
  for (const std::string& type : unknown_types)
    assumed.push_back("operators of type " + type + " compute nothing that counts: what they cost is their traffic");
  onnx_model m{std::move(builder).build()};
  m.node_of = std::move(layers);
  m.not_inferred = std::move(not_inferred);
  m.assumed = std::move(assumed);
  m.folded = static_cast<std::size_t>(f.model().graph().node_size()) - m.node_of.size();
  return m;
}

}  // namespace HETPLAN_NAMESPACE::exchange
