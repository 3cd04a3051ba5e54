// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/onnx_file.hpp>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include <hetplan/core/error.hpp>
#include <hetplan/core/escaped.hpp>
#include <hetplan/exchange/foreign_model.hpp>
#include <hetplan/exchange/onnx_folding.hpp>
#include <hetplan/exchange/onnx_operators.hpp>
#include <hetplan/graph/topological_order.hpp>

namespace HETPLAN_NAMESPACE::exchange::detail {

constexpr double most_tensor_bytes = 1e15;
constexpr std::size_t most_reasons = 5;

HETPLAN_INLINE onnx_file::onnx_file(std::string_view text, std::string file, const std::map<std::string, long long>& dimensions)
    : file_(std::move(file)), look_up_([this](const std::string& name) -> const onnx_tensor& { return tensor(name); }) {
  if (text.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    fail("expected at most 2 GB, got " + std::to_string(text.size()) + " bytes");
  if (!model_.ParseFromArray(text.data(), static_cast<int>(text.size())) || !model_.has_graph()) {
    fail("expected an ONNX model, got " + std::string(text.empty() ? "nothing" : "something else, or one that is cut short"));
  }
  check_names();
  check_versions();
  check_nodes();
  size_inputs(dimensions);
  sort_nodes();
  read_constants();
  inference_ = onnx_inference(model_);
  for (const std::size_t n : order_) {
    if (!fold_values(n)) infer(n);
  }
  if (without_shape_ > most_reasons)
    assumed_.push_back("so it is with " + std::to_string(without_shape_ - most_reasons) + " more operators");
  if (!believed_.empty()) {
    assumed_.push_back("no rule gives the shape of tensor \"" + believed_.front() + "\"" +
                       (believed_.size() == 1 ? "" : " and of " + std::to_string(believed_.size() - 1) + " more") +
                       ": it counts as the file says");
  }
  mark_folded();
}

HETPLAN_INLINE void onnx_file::fail(const std::string& what) const { throw invalid_input(escaped(file_) + ": " + escaped(what)); }

HETPLAN_INLINE const onnx_tensor& onnx_file::tensor(const std::string& name) const {
  static const onnx_tensor unknown;
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? unknown : it->second;
}

HETPLAN_INLINE std::string onnx_file::label(const onnx::NodeProto& n) {
  return "operator " + n.op_type() + " \"" + (n.name().empty() ? first_output(n) : n.name()) + "\"";
}

HETPLAN_INLINE void onnx_file::check_names() const {
  const auto check = [&](const std::string& name, const std::string& what) {
    if (!is_utf8(name)) fail(what + " has a name that is no UTF-8");
  };
  const auto& g = model_.graph();
  for (const auto& i : g.input()) check(i.name(), "an input");
  for (const auto& o : g.output()) check(o.name(), "an output");
  for (const auto& i : g.initializer()) check(i.name(), "an initializer");
  for (int at = 0; at < g.node_size(); ++at) {
    const auto& n = g.node(at);
    const std::string what = "operator " + std::to_string(at) + ", or what it reads or makes,";
    check(n.op_type(), what);
    check(n.domain(), what);
    check(n.name(), what);
    for (const auto& i : n.input()) check(i, what);
    for (const auto& o : n.output()) check(o, what);
  }
}

HETPLAN_INLINE void onnx_file::check_versions() {
  for (auto& n : *model_.mutable_graph()->mutable_node()) {
    if (n.domain() == "ai.onnx") n.clear_domain();  // two names for ONNX's own operators
  }
  std::set<std::string> domains;
  for (auto& o : *model_.mutable_opset_import()) {
    if (o.domain() == "ai.onnx") o.set_domain("");
    if (!domains.insert(o.domain()).second) fail("expected one version of the operators of \"" + o.domain() + "\", got two");
    if (o.version() < 1) fail("expected a version >= 1 of the operators of \"" + o.domain() + "\", got " + std::to_string(o.version()));
    if (o.domain().empty() && o.version() > onnx_inference::newest()) {
      assumed_.push_back("operators of version " + std::to_string(o.version()) + " count as those of version " +
                         std::to_string(onnx_inference::newest()) + ", the newest that this build's ONNX knows");
    }
  }
  if (domains.contains("")) return;
  const auto& nodes = model_.graph().node();
  const bool needed = std::any_of(nodes.begin(), nodes.end(), [](const onnx::NodeProto& n) { return n.domain().empty(); });
  if (needed && model_.ir_version() >= 3) fail("expected a version of ONNX's operators (opset_import), got none");
  auto& first = *model_.add_opset_import();
  first.set_domain("");
  first.set_version(1);
}

HETPLAN_INLINE void onnx_file::check_nodes() const {
  const auto& g = model_.graph();
  if (g.node_size() == 0) fail("expected at least one operator, got none");
  std::set<std::string> made;
  std::set<std::pair<std::string, std::string>> functions;
  for (const auto& f : model_.functions()) functions.emplace(f.domain() == "ai.onnx" ? "" : f.domain(), f.name());
  for (const auto& i : g.initializer()) made.insert(i.name());
  for (const auto& i : g.sparse_initializer()) fail("sparse initializers are not read: \"" + i.values().name() + "\"");
  for (const auto& i : g.input()) made.insert(i.name());
  for (const auto& n : g.node()) {
    if (n.op_type().empty()) fail("an operator has no type");
    for (const auto& a : n.attribute()) {
      if (a.has_g() || a.graphs_size() > 0) fail(label(n) + " has a subgraph, which is not read");
    }
    if (functions.contains({n.domain(), n.op_type()})) fail(label(n) + " is a function of the file's own, which is not read");
    if (first_output(n).empty()) fail(label(n) + " makes nothing");
    for (const auto& o : n.output()) {
      if (!o.empty() && !made.insert(o).second) fail("tensor \"" + o + "\" is made twice, by " + label(n) + " again");
    }
  }
  for (const auto& n : g.node()) {
    for (const auto& i : n.input()) {
      if (!i.empty() && !made.contains(i)) fail(label(n) + " reads tensor \"" + i + "\", which nobody makes");
    }
  }
  for (const auto& o : g.output()) {
    if (!made.contains(o.name())) fail("nobody makes output \"" + o.name() + "\"");
  }
}

HETPLAN_INLINE void onnx_file::size_inputs(const std::map<std::string, long long>& dimensions) {
  auto& g = *model_.mutable_graph();
  std::set<std::string> constants, used;
  for (const auto& i : g.initializer()) constants.insert(i.name());
  struct free_axis {  // that has no size in the file
    onnx::TensorShapeProto::Dimension* size;
    std::string name, place, input;
    bool first;
  };
  std::vector<free_axis> axes;
  for (auto& input : *g.mutable_input()) {
    if (constants.contains(input.name())) continue;
    if (!input.type().has_tensor_type()) fail("input \"" + input.name() + "\": expected a tensor");
    if (!input.type().tensor_type().has_shape()) fail("input \"" + input.name() + "\" has no shape");
    auto& shape = *input.mutable_type()->mutable_tensor_type()->mutable_shape();
    for (int axis = 0; axis < shape.dim_size(); ++axis) {
      auto& d = *shape.mutable_dim(axis);
      const std::string place = input.name() + "[" + std::to_string(axis) + "]";
      if (!d.has_dim_value() || d.dim_value() < 0) axes.push_back({&d, d.dim_param(), place, input.name(), axis == 0});
      else if (dimensions.contains(place)) fail("axis \"" + place + "\" is " + std::to_string(d.dim_value()) + " in the file");
    }
  }
  sizes_ = dimensions;
  for (const free_axis& a : axes) {
    if (!a.first || sizes_.contains(a.place) || (!a.name.empty() && sizes_.contains(a.name))) continue;
    const std::string& called = a.name.empty() ? a.place : a.name;
    sizes_[called] = 1;
    assumed_.push_back("axis \"" + called + "\" of the inputs is 1");
  }
  std::string missing;
  for (const free_axis& a : axes) {
    const auto given = sizes_.contains(a.place) ? sizes_.find(a.place) : a.name.empty() ? sizes_.end() : sizes_.find(a.name);
    if (given == sizes_.end()) {
      missing += (missing.empty() ? "\"" : ", \"") + (a.name.empty() ? a.place + "\"" : a.name + "\" of input \"" + a.input + "\"");
      continue;
    }
    used.insert(given->first);
    a.size->set_dim_value(given->second);
  }
  if (!missing.empty()) fail("expected a size for each dynamic axis, got none for " + missing);
  for (const auto& [name, size] : dimensions) {
    if (!used.contains(name)) fail("no dynamic axis of an input is called \"" + name + "\"");
  }
}

HETPLAN_INLINE void onnx_file::sort_nodes() {
  const auto n = static_cast<std::size_t>(model_.graph().node_size());
  std::map<std::string, std::size_t> producer;
  for (std::size_t i = 0; i < n; ++i) {
    for (const auto& o : node(i).output()) producer[o] = i;
  }
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  for (std::size_t i = 0; i < n; ++i) {
    for (const auto& name : node(i).input()) {
      const auto it = producer.find(name);
      if (!name.empty() && it != producer.end()) edges.emplace_back(it->second, i);
    }
  }
  order_ = topological_order(n, edges);
  if (order_.size() < n) {
    const auto [from, to] = edge_on_cycle(n, edges, order_);
    fail("expected no cycle, got one through operators \"" + first_output(node(from)) + "\" -> \"" + first_output(node(to)) + "\"");
  }
  for (const auto& [name, at] : producer) {
    if (!name.empty()) tensors_[name].producer = at;
  }
}

HETPLAN_INLINE void onnx_file::read_constants() {
  const auto& g = model_.graph();
  for (const auto& input : g.input()) set_shape(input.name(), described(input, sizes_));
  for (const auto& i : g.initializer()) {
    onnx_tensor t{.known = true, .shape = {i.dims().begin(), i.dims().end()}, .type = i.data_type()};
    for (const long long d : t.shape) {
      if (d < 0) fail("initializer \"" + i.name() + "\": expected sizes >= 0, got " + std::to_string(d));
    }
    set_shape(i.name(), t);
    tensors_[i.name()].constant = true;
    tensors_[i.name()].values = integers_in(i);
  }
  for (const auto& info : g.output()) stated_[info.name()] = &info;
  for (const auto& info : g.value_info()) stated_[info.name()] = &info;
}

HETPLAN_INLINE void onnx_file::set_shape(const std::string& name, const onnx_tensor& t) {
  onnx_tensor& mine = tensors_[name];
  mine.known = t.known;
  mine.type = t.type;
  if (!t.known) return;
  mine.shape = t.shape;
  if (!(mine.bytes() <= most_tensor_bytes)) fail("tensor \"" + name + "\": expected at most 1e15 bytes, got " + to_text(mine.bytes()));
}

HETPLAN_INLINE void onnx_file::infer(std::size_t at) {
  const onnx::NodeProto& n = node(at);
  const inferred_outputs found = inference_(n, look_up_);
  if (!found.broken.empty()) fail(label(n) + ": " + found.broken);
  const std::vector<onnx_tensor> ours = shapes_beyond_onnx(n, inference_.asked(), look_up_);
  bool unknown = false;
  for (std::size_t i = 0; i < found.outputs.size(); ++i) {
    const std::string& name = n.output(static_cast<int>(i));
    if (name.empty()) continue;
    onnx_tensor t = found.outputs[i];
    if (!t.known && i < ours.size()) t = ours[i];
    if (const auto it = stated_.find(name); !t.known && it != stated_.end()) {
      t = described(*it->second, sizes_);
      if (t.known) believed_.push_back(name);
    }
    unknown = unknown || !t.known;
    set_shape(name, t);
  }
  if (unknown && !found.reason.empty() && ++without_shape_ <= most_reasons) assumed_.push_back(label(n) + ": " + found.reason);
}

HETPLAN_INLINE bool onnx_file::fold_values(std::size_t at) {
  const onnx::NodeProto& n = node(at);
  if (n.output_size() != 1) return false;
  std::optional<folded_values> folded = fold(n, look_up_);
  if (!folded || folded->values.size() > most_folded_values) return false;
  if (folded->shape) set_shape(n.output(0), {.known = true, .shape = *folded->shape, .type = folded->type});
  else infer(at);
  onnx_tensor& out = tensors_[n.output(0)];
  if (out.known && out.elements() == static_cast<double>(folded->values.size())) out.values = std::move(folded->values);
  return true;
}

HETPLAN_INLINE void onnx_file::mark_folded() {
  folded_.assign(order_.size(), 0);
  for (const std::size_t i : order_) {
    const onnx::NodeProto& n = node(i);
    const auto known = [&](const std::string& name) { return name.empty() || tensor(name).constant; };
    const bool constant = !n.op_type().starts_with("Random") && std::all_of(n.input().begin(), n.input().end(), known);
    folded_[i] = constant || tensor(first_output(n)).values.has_value();
    for (const auto& o : n.output()) {
      if (!o.empty()) tensors_[o].constant = folded_[i] != 0;
    }
  }
}

}  // namespace HETPLAN_NAMESPACE::exchange::detail
