// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/onnx_file.hpp>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <limits>
#include <tuple>
#include <utility>

#include <onnx/shape_inference/implementation.h>

#include <hetplan/core/error.hpp>
#include <hetplan/core/escaped.hpp>
#include <hetplan/graph/topological_order.hpp>

namespace HETPLAN_NAMESPACE::exchange::detail {

constexpr double most_tensor_bytes = 1e15;

HETPLAN_INLINE onnx_file::onnx_file(std::string_view text, std::string file, const std::map<std::string, long long>& dimensions)
    : file_(std::move(file)) {
  if (text.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    fail("expected at most 2 GB, got " + std::to_string(text.size()) + " bytes");
  if (!model_.ParseFromArray(text.data(), static_cast<int>(text.size())) || !model_.has_graph()) {
    fail("expected an ONNX model, got " + std::string(text.empty() ? "nothing" : "something else, or one that is cut short"));
  }
  check_nodes();
  fix_inputs(dimensions);
  sort_nodes();
  read_constants();
  for (const std::size_t n : order_) {
    if (!fold_values(n)) infer(n);
    carry_shape(n);
  }
  mark_folded();
}

HETPLAN_INLINE void onnx_file::fail(const std::string& what) const { throw invalid_input(escaped(file_) + ": " + escaped(what)); }

HETPLAN_INLINE const onnx_tensor& onnx_file::tensor(const std::string& name) const {
  static const onnx_tensor unknown;
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? unknown : it->second;
}

HETPLAN_INLINE void onnx_file::check_nodes() {
  const auto& g = model_.graph();
  if (g.node_size() == 0) fail("expected at least one operator, got none");
  std::set<std::string> made;
  for (const auto& i : g.initializer()) made.insert(i.name());
  for (const auto& i : g.sparse_initializer()) fail("sparse initializers are not read: \"" + i.values().name() + "\"");
  for (const auto& i : g.input()) made.insert(i.name());
  for (const auto& n : g.node()) {
    const std::string name = "operator " + n.op_type() + " \"" + n.name() + "\"";
    if (n.op_type().empty()) fail("an operator has no type");
    for (const auto& a : n.attribute()) {
      if (a.has_g() || a.graphs_size() > 0) fail(name + " has a subgraph, which is not read");
    }
    if (n.output_size() == 0 || n.output(0).empty()) fail(name + " makes nothing");
    for (const auto& o : n.output()) {
      if (!o.empty() && !made.insert(o).second) fail("tensor \"" + o + "\" is made twice, by " + name + " again");
    }
  }
  for (const auto& n : g.node()) {
    for (const auto& i : n.input()) {
      if (!i.empty() && !made.contains(i))
        fail("operator " + n.op_type() + " \"" + n.name() + "\" reads tensor \"" + i + "\", which nobody makes");
    }
  }
}

HETPLAN_INLINE void onnx_file::fix_inputs(const std::map<std::string, long long>& dimensions) {
  auto& g = *model_.mutable_graph();
  std::set<std::string> constants, used;
  for (const auto& i : g.initializer()) constants.insert(i.name());
  std::string missing;
  for (auto& input : *g.mutable_input()) {
    if (constants.contains(input.name())) continue;
    if (!input.type().has_tensor_type()) fail("input \"" + input.name() + "\": expected a tensor");
    if (!input.type().tensor_type().has_shape()) fail("input \"" + input.name() + "\" has no shape");
    auto& shape = *input.mutable_type()->mutable_tensor_type()->mutable_shape();
    for (int axis = 0; axis < shape.dim_size(); ++axis) {
      auto& d = *shape.mutable_dim(axis);
      if (d.has_dim_value()) {
        if (d.dim_value() < 0)
          fail("input \"" + input.name() + "\", axis " + std::to_string(axis) + ": expected a size >= 0, got " +
               std::to_string(d.dim_value()));
        continue;
      }
      const std::string called = d.dim_param();
      const auto given = dimensions.find(called);
      if (!called.empty() && given != dimensions.end()) {
        used.insert(called);
        d.set_dim_value(given->second);
      } else if (axis == 0) {
        assumed_.push_back("the first axis" + (called.empty() ? "" : " \"" + called + "\"") + " of input \"" + input.name() + "\" is 1");
        d.set_dim_value(1);
      } else {
        missing += (missing.empty() ? "" : ", ") + (called.empty() ? "axis " + std::to_string(axis) : "\"" + called + "\"") +
                   " of input \"" + input.name() + "\"";
      }
    }
  }
  if (!missing.empty()) fail("expected a size for each dynamic axis, got none for " + missing);
  for (const auto& [name, size] : dimensions) {
    if (!used.contains(name)) fail("no axis of an input is called \"" + name + "\"");
  }
  // What the file says of shapes in between was written for other sizes.
  if (!dimensions.empty() || !assumed_.empty()) {
    g.clear_value_info();
    for (auto& o : *g.mutable_output()) o.mutable_type()->mutable_tensor_type()->clear_shape();
  }
}

HETPLAN_INLINE void onnx_file::sort_nodes() {
  auto& g = *model_.mutable_graph();
  std::map<std::string, std::size_t> producer;
  for (int i = 0; i < g.node_size(); ++i) {
    for (const auto& o : g.node(i).output()) producer[o] = static_cast<std::size_t>(i);
  }
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  for (int i = 0; i < g.node_size(); ++i) {
    for (const auto& name : g.node(i).input()) {
      const auto it = producer.find(name);
      if (!name.empty() && it != producer.end()) edges.emplace_back(it->second, static_cast<std::size_t>(i));
    }
  }
  const auto n = static_cast<std::size_t>(g.node_size());
  order_ = topological_order(n, edges);
  if (order_.size() < n) {
    const auto [from, to] = edge_on_cycle(n, edges, order_);
    fail("expected no cycle, got one through operators \"" + node(from).output(0) + "\" -> \"" + node(to).output(0) + "\"");
  }
}

HETPLAN_INLINE void onnx_file::read_constants() {
  const auto& g = model_.graph();
  for (const auto& input : g.input()) {
    read_shape(input);
  }
  for (const auto& i : g.initializer()) {
    onnx_tensor t{.known = true,
                  .shape = {i.dims().begin(), i.dims().end()},
                  .type = i.data_type(),
                  .constant = true,
                  .values = integers_in(i),
                  .producer = {}};
    for (const long long d : t.shape) {
      if (d < 0) fail("initializer \"" + i.name() + "\": expected sizes >= 0, got " + std::to_string(d));
    }
    tensors_[i.name()] = std::move(t);
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(g.node_size()); ++i) {
    for (const auto& o : node(i).output()) {
      if (!o.empty()) tensors_[o].producer = i;
    }
  }
}

HETPLAN_INLINE void onnx_file::read_shape(const onnx::ValueInfoProto& info) {
  onnx_tensor& t = tensors_[info.name()];
  if (t.known || !info.type().has_tensor_type()) return;
  const auto& type = info.type().tensor_type();
  t.type = type.elem_type();
  if (!type.has_shape()) return;
  std::vector<long long> shape;
  for (const auto& d : type.shape().dim()) {
    if (!d.has_dim_value() || d.dim_value() < 0) return;
    shape.push_back(d.dim_value());
  }
  t.known = true;
  t.shape = std::move(shape);
  if (!(t.bytes() <= most_tensor_bytes)) fail("tensor \"" + info.name() + "\": expected at most 1e15 bytes, got " + to_text(t.bytes()));
}

HETPLAN_INLINE void onnx_file::check_window(const onnx::NodeProto& n, const std::string& name) const {
  static const std::set<std::string_view> sliding{"Conv",    "ConvTranspose", "ConvInteger", "QLinearConv",
                                                  "MaxPool", "AveragePool",   "LpPool",      "MaxUnpool"};
  if (!sliding.contains(n.op_type()) || n.input_size() == 0 || !tensor(n.input(0)).known) return;
  const std::size_t rank = tensor(n.input(0)).shape.size();
  if (rank < 3) fail(name + ": expected an input of three axes or more, got " + std::to_string(rank));
  const bool weights = n.op_type().find("Conv") != std::string::npos;
  const int at = n.op_type() == "QLinearConv" ? 3 : 1;
  if (weights && n.input_size() > at && tensor(n.input(at)).known && tensor(n.input(at)).shape.size() != rank)
    fail(name + ": expected weights of " + std::to_string(rank) + " axes, got " + std::to_string(tensor(n.input(at)).shape.size()));
  for (const auto& [list, times, least] :
       {std::tuple("kernel_shape", 1, 1LL), std::tuple("strides", 1, 1LL), std::tuple("dilations", 1, 1LL), std::tuple("pads", 2, 0LL)}) {
    const std::vector<long long> v = attribute_list(n, list);
    if (attribute(n, list) == nullptr) continue;
    const bool sizes = v.size() == static_cast<std::size_t>(times) * (rank - 2);
    if (!sizes || std::any_of(v.begin(), v.end(), [&](long long x) { return x < least || x > 1'000'000; }))
      fail(name + ": expected " + list + " of " + std::to_string(static_cast<std::size_t>(times) * (rank - 2)) + " numbers from " +
           std::to_string(least) + " to 1000000");
  }
}

HETPLAN_INLINE void onnx_file::infer(std::size_t at) {
  const onnx::NodeProto& n = node(at);
  const std::string name = "operator " + n.op_type() + " \"" + n.name() + "\"";
  int version = 0;
  for (const auto& o : model_.opset_import()) {
    if (o.domain() == n.domain()) version = static_cast<int>(o.version());
  }
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(n.op_type(), version, n.domain());
  if (schema == nullptr) return;  // not one that ONNX knows: see carry_shape
  // One operator at a time: its inference trusts ranks and attributes, so they are checked first, and a shape that was worked out
  // here goes in as a constant.
  onnx::ModelProto one;
  one.set_ir_version(model_.ir_version() < 4 ? 4 : model_.ir_version());
  *one.mutable_opset_import() = model_.opset_import();
  onnx::GraphProto& g = *one.mutable_graph();
  *g.add_node() = n;
  std::set<std::string> given;
  for (const auto& input : n.input()) {
    if (input.empty() || !given.insert(input).second) continue;
    const onnx_tensor& t = tensor(input);
    describe(*g.add_input(), input, t);
    if (t.values) put_values(*g.add_initializer(), input, t);
  }
  for (const auto& output : n.output()) {
    if (!output.empty()) g.add_output()->set_name(output);
  }
  try {
    schema->Verify(n);
    check_window(n, name);
    onnx::shape_inference::InferShapes(one, onnx::OpSchemaRegistry::Instance(), onnx::ShapeInferenceOptions(false, 0, true));
  } catch (const invalid_input&) {
    throw;
  } catch (const std::exception& e) {
    fail(name + ": ONNX refuses it: " + e.what());
  }
  for (const auto& o : g.output()) read_shape(o);
  for (const auto& o : g.value_info()) read_shape(o);
}

HETPLAN_INLINE bool onnx_file::fold_values(std::size_t at) {
  const onnx::NodeProto& n = node(at);
  if (n.output_size() != 1) return false;
  const onnx_lookup look_up = [this](const std::string& name) -> const onnx_tensor& { return tensor(name); };
  auto values = values_of(n, look_up);
  if (!values || values->size() > most_folded_values) return false;
  onnx_tensor& out = tensors_[n.output(0)];
  const auto shape = shape_of_values(n, look_up, values->size());
  if (shape) {
    out.known = true;
    out.shape = *shape;
    out.type = n.op_type() == "Cast"       ? static_cast<int>(attribute_or(n, "to", 0))
               : n.op_type() == "Constant" ? n.attribute(0).t().data_type()
               : n.op_type() == "Shape"    ? static_cast<int>(onnx::TensorProto::INT64)
                                           : tensor(n.input(0)).type;
  } else {
    infer(at);
    if (!out.known) return true;
  }
  if (out.elements() == static_cast<double>(values->size())) out.values = std::move(values);
  return true;
}

HETPLAN_INLINE void onnx_file::carry_shape(std::size_t at) {
  static const std::set<std::string_view> same{"LayerNormalization", "SimplifiedLayerNormalization", "Gelu", "FastGelu", "BiasGelu"};
  const onnx::NodeProto& n = node(at);
  onnx_tensor& out = tensors_[n.output(0)];
  if (out.known || n.input_size() == 0 || !same.contains(n.op_type()) || !tensor(n.input(0)).known) return;
  out.known = true;
  out.shape = tensor(n.input(0)).shape;
  out.type = tensor(n.input(0)).type;
}

HETPLAN_INLINE void onnx_file::mark_folded() {
  folded_.assign(static_cast<std::size_t>(model_.graph().node_size()), 0);
  for (const std::size_t i : order_) {
    const onnx::NodeProto& n = node(i);
    bool constant = true;
    for (const auto& name : n.input()) constant = constant && (name.empty() || tensor(name).constant);
    if (n.op_type().starts_with("Random")) constant = false;
    for (const auto& o : n.output()) {
      if (!o.empty()) tensors_[o].constant = constant || tensor(o).values.has_value();
    }
    folded_[i] = constant || tensor(n.output(0)).values.has_value();
  }
}

}  // namespace HETPLAN_NAMESPACE::exchange::detail
