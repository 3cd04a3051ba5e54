// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/onnx_checks.hpp>

#include <algorithm>
#include <cstdint>
#include <map>

#include <hetplan/exchange/foreign_model.hpp>
#include <hetplan/exchange/onnx_inference.hpp>
#include <hetplan/exchange/onnx_values.hpp>

namespace hetplan::exchange::detail {

HETPLAN_INLINE std::set<std::string> names_made(const onnx::GraphProto& g) {
  std::set<std::string> all;
  for (const auto& i : g.input()) all.insert(i.name());
  for (const auto& i : g.initializer()) all.insert(i.name());
  for (const auto& n : g.node()) all.insert(n.output().begin(), n.output().end());
  all.erase("");
  return all;
}

HETPLAN_INLINE void collect_names(const onnx::GraphProto& g, std::set<std::string>& all) {
  all.merge(names_made(g));
  for (const auto& n : g.node()) {
    all.insert(n.input().begin(), n.input().end());
    for (const auto& a : n.attribute()) {
      if (a.has_g()) collect_names(a.g(), all);
      for (const auto& inner : a.graphs()) collect_names(inner, all);
    }
  }
}

/// Adds the names of tensors that a nested graph captures from outer graphs.
HETPLAN_INLINE void add_outer_reads(const onnx::GraphProto& g, std::vector<std::string>& all) {
  const std::set<std::string> own = names_made(g);
  const auto add = [&](const std::string& name) {
    if (!own.contains(name)) all.push_back(name);
  };
  for (const auto& n : g.node()) {
    for (const std::string& name : names_read(n)) add(name);
  }
  for (const auto& o : g.output()) add(o.name());
}

HETPLAN_INLINE std::vector<std::string> names_read(const onnx::NodeProto& n) {
  std::vector<std::string> all(n.input().begin(), n.input().end());
  for (const auto& a : n.attribute()) {
    if (a.has_g()) add_outer_reads(a.g(), all);
    for (const auto& g : a.graphs()) add_outer_reads(g, all);
  }
  std::erase(all, "");
  return all;
}

HETPLAN_INLINE void rename_graph(onnx::GraphProto& g, const onnx_renaming& to, const onnx_renaming& own_to) {
  std::map<std::string, std::string> own;
  for (const std::string& name : names_made(g)) own.emplace(name, own_to(name));
  const onnx_renaming inside = [&](const std::string& name) {
    const auto it = own.find(name);
    return it != own.end() ? it->second : name.empty() ? name : to(name);
  };
  for (auto& n : *g.mutable_node()) {
    rename_reads(n, inside, own_to);
    for (auto& o : *n.mutable_output()) o = inside(o);
  }
  for (auto& i : *g.mutable_input()) i.set_name(inside(i.name()));
  for (auto& i : *g.mutable_initializer()) i.set_name(inside(i.name()));
  for (auto& o : *g.mutable_output()) o.set_name(inside(o.name()));
  for (auto& v : *g.mutable_value_info()) v.set_name(inside(v.name()));
}

HETPLAN_INLINE void rename_reads(onnx::NodeProto& n, const onnx_renaming& to, const onnx_renaming& own_to) {
  for (auto& i : *n.mutable_input()) {
    if (!i.empty()) i = to(i);
  }
  for (auto& a : *n.mutable_attribute()) {
    if (a.has_g()) rename_graph(*a.mutable_g(), to, own_to);
    for (auto& g : *a.mutable_graphs()) rename_graph(g, to, own_to);
  }
}

HETPLAN_INLINE std::string free_name(std::set<std::string>& taken, const std::string& wish) {
  std::string name = wish;
  for (int twice = 2; !taken.insert(name).second; ++twice) name = wish + " (" + std::to_string(twice) + ")";
  return name;
}

HETPLAN_INLINE std::string label(const onnx::NodeProto& n) {
  return "operator " + n.op_type() + " \"" + (n.name().empty() ? first_output(n) : n.name()) + "\"";
}

class onnx_name_check {
 public:
  explicit onnx_name_check(const onnx_failure& fail) : fail_(fail) {}

  void operator()(const std::string& name, const std::string& what) const {
    if (!is_utf8(name)) fail_(what + " has a name that is no UTF-8");
  }
  void operator()(const onnx::GraphProto& g) const {
    for (const auto& i : g.input()) (*this)(i.name(), "an input");
    for (const auto& o : g.output()) (*this)(o.name(), "an output");
    for (const auto& i : g.initializer()) (*this)(i.name(), "an initializer");
    (*this)(g.node());
  }
  void operator()(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) const {
    for (int at = 0; at < nodes.size(); ++at) {
      const auto& n = nodes[at];
      const std::string what = "operator " + std::to_string(at) + ", or what it reads or makes,";
      (*this)(n.op_type(), what);
      (*this)(n.domain(), what);
      (*this)(n.name(), what);
      for (const auto& i : n.input()) (*this)(i, what);
      for (const auto& o : n.output()) (*this)(o, what);
      for (const auto& a : n.attribute()) {
        (*this)(a.name(), what);
        (*this)(a.ref_attr_name(), what);
        if (a.has_g()) (*this)(a.g());
        for (const auto& g : a.graphs()) (*this)(g);
      }
    }
  }

 private:
  const onnx_failure& fail_;
};

HETPLAN_INLINE void check_names(const onnx::ModelProto& model, const onnx_failure& fail) {
  const onnx_name_check check(fail);
  check(model.graph());
  for (const auto& f : model.functions()) {
    check(f.name(), "a function");
    check(f.domain(), "a function");
    for (const auto& i : f.input()) check(i, "an input of a function");
    for (const auto& o : f.output()) check(o, "an output of a function");
    check(f.node());
  }
}

HETPLAN_INLINE void check_versions(onnx::ModelProto& model, std::vector<std::string>& assumed, const onnx_failure& fail) {
  std::map<std::string, std::int64_t> domains;
  google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto> imports;
  imports.Swap(model.mutable_opset_import());
  for (auto& o : imports) {
    if (o.domain() == "ai.onnx") o.set_domain("");
    const auto [it, is_new] = domains.emplace(o.domain(), o.version());
    if (it->second != o.version()) {
      fail("expected one version of the operators of \"" + o.domain() + "\", got two: " + std::to_string(it->second) + " and " +
           std::to_string(o.version()));
    }
    if (is_new) *model.add_opset_import() = o;
    if (o.version() < 1) fail("expected a version >= 1 of the operators of \"" + o.domain() + "\", got " + std::to_string(o.version()));
    if (is_new && o.domain().empty() && o.version() > onnx_inference::newest()) {
      assumed.push_back("operators of version " + std::to_string(o.version()) + " count as those of version " +
                        std::to_string(onnx_inference::newest()) + ", the newest that this build's ONNX knows");
    }
  }
  if (domains.contains("")) return;
  const auto& nodes = model.graph().node();
  const bool needed = std::any_of(nodes.begin(), nodes.end(), [](const onnx::NodeProto& n) { return n.domain().empty(); });
  if (needed && model.ir_version() >= 3) fail("expected a version of ONNX's operators (opset_import), got none");
  auto& first = *model.add_opset_import();
  first.set_domain("");
  first.set_version(1);
}

/// Names defined in a graph and in its outer graphs.
struct onnx_scope {
  std::set<std::string> made;
  const onnx_scope* around = nullptr;

  [[nodiscard]] bool has(const std::string& name) const { return made.contains(name) || (around != nullptr && around->has(name)); }
};

HETPLAN_INLINE void check_tensors_in(const onnx::GraphProto& g, const onnx_scope* around, const onnx_failure& fail) {
  onnx_scope scope{{}, around};
  for (const auto& i : g.initializer()) scope.made.insert(i.name());
  for (const auto& i : g.sparse_initializer()) scope.made.insert(i.values().name());  // check_readable refuses sparse initializers later
  for (const auto& i : g.input()) scope.made.insert(i.name());
  for (const auto& n : g.node()) {
    if (n.op_type().empty()) fail("an operator has no type");
    if (first_output(n).empty()) fail(label(n) + " makes nothing");
    for (const auto& o : n.output()) {
      if (!o.empty() && !scope.made.insert(o).second) fail("tensor \"" + o + "\" is made twice, by " + label(n) + " again");
    }
  }
  for (const auto& n : g.node()) {
    for (const auto& i : n.input()) {
      if (!i.empty() && !scope.has(i)) fail(label(n) + " reads tensor \"" + i + "\", which nobody makes");
    }
    if (!is_if(n)) continue;
    for (const auto& a : n.attribute()) {
      if (a.has_g()) check_tensors_in(a.g(), &scope, fail);
    }
  }
  for (const auto& o : g.output()) {
    if (!scope.has(o.name())) fail("nobody makes output \"" + o.name() + "\"");
  }
}

HETPLAN_INLINE void check_tensors(const onnx::GraphProto& g, const onnx_failure& fail) {
  if (g.node_size() == 0) fail("expected at least one operator, got none");
  check_tensors_in(g, nullptr, fail);
}

HETPLAN_INLINE void check_readable(const onnx::NodeProto& n, const onnx_failure& fail) {
  for (const auto& a : n.attribute()) {
    if (a.has_g() || a.graphs_size() > 0) fail(label(n) + " has a subgraph, which is not read");
    if (a.has_sparse_tensor() || a.sparse_tensors_size() > 0) fail(label(n) + " holds a sparse tensor, which is not read");
  }
}

HETPLAN_INLINE void check_readable(const onnx::GraphProto& g, const onnx_failure& fail) {
  for (const auto& i : g.sparse_initializer()) fail("sparse initializers are not read: \"" + i.values().name() + "\"");
  for (const auto& i : g.initializer()) {
    for (const auto d : i.dims()) {
      if (d < 0) fail("initializer \"" + i.name() + "\": expected sizes >= 0, got " + std::to_string(d));
    }
  }
}

}  // namespace hetplan::exchange::detail
