// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/onnx_scopes.hpp>

#include <map>

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

/// What a graph within a graph takes from around it.
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

}  // namespace hetplan::exchange::detail
