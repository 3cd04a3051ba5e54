// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/onnx_inference.hpp>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <onnx/defs/schema.h>
#include <onnx/shape_inference/implementation.h>

#include <hetplan/core/error.hpp>
#include <hetplan/exchange/onnx_products.hpp>

namespace HETPLAN_NAMESPACE::exchange::detail {

constexpr double most_axes = 64;

HETPLAN_INLINE long long onnx_inference::newest() { return onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map().at("").second; }

HETPLAN_INLINE onnx_inference::onnx_inference(const onnx::ModelProto& model) {
  frame_.set_ir_version(std::max<std::int64_t>(4, model.ir_version()));
  *frame_.mutable_opset_import() = model.opset_import();
  for (const auto& o : model.opset_import()) version_[o.domain()] = o.version();
}

HETPLAN_INLINE long long onnx_inference::version_of(const std::string& domain) const {
  const auto it = version_.find(domain);
  return it == version_.end() ? 0 : it->second;
}

/// Windows that slide: the library takes the rank for granted.
[[nodiscard]] HETPLAN_INLINE std::string find_unsafe_window(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  static const std::set<std::string_view> sliding{"Conv",    "ConvTranspose", "ConvInteger", "QLinearConv",
                                                  "MaxPool", "AveragePool",   "LpPool",      "MaxUnpool"};
  if (!sliding.contains(n.op_type())) return "";
  const onnx_tensor& first = tensor(input_of(n, 0));
  const onnx_tensor& second = tensor(input_of(n, n.op_type() == "QLinearConv" ? 3 : 1));  // weights, or the places of maxima
  const std::size_t rank = first.shape.size();
  if (first.known && rank < 3) return "expected an input of three axes or more, got " + std::to_string(rank);
  if (n.op_type() == "MaxUnpool" && !second.known) return "expected places of a known shape";
  if (first.known && second.known && second.shape.size() != rank)
    return "expected weights of " + std::to_string(rank) + " axes, got " + std::to_string(second.shape.size());
  for (const auto& [name, times, least] : {std::tuple("kernel_shape", 1U, 1LL), std::tuple("strides", 1U, 1LL),
                                           std::tuple("dilations", 1U, 1LL), std::tuple("pads", 2U, 0LL)}) {
    const std::vector<long long> v = attribute_list(n, name);
    if (attribute(n, name) == nullptr) continue;
    if (std::any_of(v.begin(), v.end(), [least = least](long long x) { return x < least || x > 1'000'000; }))
      return "expected " + std::string(name) + " from " + std::to_string(least) + " to 1000000";
    if (first.known && v.size() != times * (rank - 2))
      return "expected " + std::string(name) + " of " + std::to_string(times * (rank - 2)) + " numbers, got " + std::to_string(v.size());
  }
  return "";
}

/// Ranks and attributes that the library takes for granted, by operator.
[[nodiscard]] HETPLAN_INLINE std::string find_unsafe_rank(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  using ranks = std::vector<std::size_t>;
  static const std::map<std::string_view, ranks> exact{
      {"Gemm", {2, 2}}, {"RNN", {3, 3, 3}}, {"GRU", {3, 3, 3}}, {"LSTM", {3, 3, 3}}, {"STFT", {3}}};
  if (const auto it = exact.find(n.op_type()); it != exact.end()) {
    for (std::size_t i = 0; i < it->second.size(); ++i) {
      const onnx_tensor& t = tensor(input_of(n, static_cast<int>(i)));
      if (t.known && t.shape.size() != it->second[i])
        return "expected input " + std::to_string(i) + " with " + std::to_string(it->second[i]) + " axes, got " +
               std::to_string(t.shape.size());
    }
  }
  const auto given = [&](int i) { return tensor(input_of(n, i)).known && tensor(input_of(n, i)).elements() > 0; };
  if (n.op_type() == "Resize" && given(2) && given(3)) return "expected scales or sizes, got both";
  const onnx_tensor& first = tensor(input_of(n, 0));
  const auto rank = static_cast<long long>(first.shape.size());
  const auto outside = [&](std::string_view name, long long otherwise, long long least, long long most) {
    const long long v = attribute_or(n, name, otherwise);
    return v >= least && v <= most ? ""
                                   : "expected " + std::string(name) + " from " + std::to_string(least) + " to " + std::to_string(most) +
                                         ", got " + std::to_string(v);
  };
  if (n.op_type() == "DepthToSpace" || n.op_type() == "SpaceToDepth") return outside("blocksize", 0, 1, 1'000'000);
  if (n.op_type() == "GatherND" && first.known) return outside("batch_dims", 0, 0, std::max(rank - 1, 0LL));
  if (n.op_type() == "LayerNormalization" && first.known) return outside("axis", -1, -rank, rank - 1);
  if (const auto& sizes = tensor(input_of(n, 1)).values; n.op_type() == "SplitToSequence" && sizes) {
    if (std::any_of(sizes->begin(), sizes->end(), [](long long x) { return x < 1 || x > 1'000'000'000; }))
      return "expected sizes from 1 to 1e9";
  }
  return "";
}

HETPLAN_INLINE std::string find_unsafe(const onnx::NodeProto& n, const onnx_lookup& tensor) {
  // The library makes as many axes as such an input has numbers, whatever their number.
  static const std::set<std::string_view> sized{"ConstantOfShape", "Reshape", "Expand", "Tile",    "Resize",
                                                "Upsample",        "Slice",   "Pad",    "Squeeze", "Unsqueeze"};
  if (sized.contains(n.op_type())) {
    for (int i = n.op_type() == "ConstantOfShape" ? 0 : 1; i < n.input_size(); ++i) {
      const onnx_tensor& t = tensor(n.input(i));
      if (t.known && t.elements() > most_axes) return "expected at most 64 axes, got " + to_text(t.elements());
    }
  }
  if (n.op_type() == "Einsum") return einsum_fault({n, tensor});
  std::string unsafe = find_unsafe_window(n, tensor);
  return unsafe.empty() ? find_unsafe_rank(n, tensor) : unsafe;
}

/// A node of a newer operator set as the newest one that the library knows would have it.
///
/// @return  the attributes that this takes away and that may say something of the shape.
[[nodiscard]] HETPLAN_INLINE std::string take_as_known(onnx::NodeProto& n, const onnx::OpSchema& schema) {
  static const std::set<std::string_view> of_numbers{"saturate", "round_mode", "stash_type", "precision"};
  const auto known = [&](const std::string& name) { return schema.attributes().contains(name); };
  std::string left_out = names_of_others(n, [&](const std::string& name) { return known(name) || of_numbers.contains(name); });
  auto& attributes = *n.mutable_attribute();
  for (int i = attributes.size(); i-- > 0;) {
    if (!known(attributes[i].name())) attributes.DeleteSubrange(i, 1);
  }
  return left_out;
}

HETPLAN_INLINE inferred_outputs onnx_inference::operator()(const onnx::NodeProto& node, const onnx_lookup& tensor) const {
  inferred_outputs found;
  found.outputs.resize(static_cast<std::size_t>(node.output_size()));
  const auto version = static_cast<int>(std::min(version_of(node.domain()), 1'000'000LL));
  const bool newer = node.domain().empty() && version > newest();
  if (newer) {
    found.broken = find_unsafe(node, tensor);
    if (!found.broken.empty()) return found;
    if (auto ours = infer_newer(node, tensor)) return *ours;
  }
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(node.op_type(), version, node.domain());
  if (schema == nullptr) return found;
  onnx::ModelProto one = frame_;
  onnx::GraphProto& g = *one.mutable_graph();
  onnx::NodeProto& n = *g.add_node() = node;
  if (newer) found.left_out = take_as_known(n, *schema);
  if (std::string unsafe = find_unsafe(n, tensor); !unsafe.empty()) {
    found.broken = std::move(unsafe);
    return found;
  }
  std::set<std::string> given;
  for (const auto& input : n.input()) {
    if (input.empty() || !given.insert(input).second) continue;
    const onnx_tensor& t = tensor(input);
    describe(*g.add_input(), input, t);
    if (t.is_read()) put_values(*g.add_initializer(), input, t);  // a shape that was worked out here
  }
  for (const auto& output : n.output()) {
    if (!output.empty()) g.add_output()->set_name(output);
  }
  try {
    schema->Verify(n);
  } catch (const std::exception& e) {
    (newer ? found.reason : found.broken) = std::string("ONNX refuses it: ") + e.what();
    return found;
  }
  if (!newer && node.domain().empty() && attribute_or(node, "ceil_mode", 0) != 0) {
    if (auto ours = infer_newer(node, tensor)) return *ours;
  }
  try {
    onnx::shape_inference::InferShapes(one, onnx::OpSchemaRegistry::Instance(), onnx::ShapeInferenceOptions(false, 1, false));
  } catch (const std::exception& e) {
    found.reason = std::string("ONNX infers no shape: ") + e.what();
  }
  std::map<std::string, const onnx::ValueInfoProto*> info;
  for (const auto& o : g.output()) info[o.name()] = &o;
  for (const auto& o : g.value_info()) info[o.name()] = &o;
  for (int i = 0; i < node.output_size(); ++i) {
    const auto it = info.find(node.output(i));
    if (it != info.end()) found.outputs[static_cast<std::size_t>(i)] = described(*it->second, {});
  }
  return found;
}

}  // namespace HETPLAN_NAMESPACE::exchange::detail
