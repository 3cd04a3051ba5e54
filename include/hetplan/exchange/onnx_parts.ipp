// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/onnx_parts.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <hetplan/exchange/onnx_file.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::exchange {

namespace detail {

/// Where a node runs: its part.
using onnx_part_key = std::pair<int, device_id>;

/// Puts parts together: nodes, what they need, what others want of them.
class onnx_part_writer {
 public:
  explicit onnx_part_writer(const onnx_file& f) : file_(f), position_(f.order().size()) {
    const onnx::ModelProto& whole = f.model();
    frame_.set_ir_version(whole.ir_version());
    *frame_.mutable_opset_import() = whole.opset_import();
    *frame_.mutable_metadata_props() = whole.metadata_props();
    frame_.set_producer_name("hetplan");
    frame_.mutable_graph()->set_name(whole.graph().name().empty() ? "graph" : whole.graph().name());
    for (std::size_t i = 0; i < f.order().size(); ++i) position_[f.order()[i]] = i;
    for (const auto& t : whole.graph().initializer()) initializers_[t.name()] = &t;
    for (const auto& o : whole.graph().output()) outputs_[o.name()] = &o;
  }

  /// @param nodes  producers first.   @param wanted  tensors that others read; those that no node makes are constants.
  [[nodiscard]] onnx::ModelProto write(const std::vector<std::size_t>& nodes, const std::vector<std::string>& wanted) {
    onnx::ModelProto part = frame_;
    graph_ = part.mutable_graph();
    done_.clear();
    std::set<std::string> made;
    for (const std::size_t i : nodes) made.insert(file_.node(i).output().begin(), file_.node(i).output().end());
    for (const std::size_t i : nodes) {
      for (const auto& name : file_.node(i).input()) {
        if (!name.empty() && !made.contains(name)) need(name);
      }
      *graph_->add_node() = file_.node(i);
    }
    for (const auto& name : wanted) {
      if (!made.contains(name)) need(name);
      declare(*graph_->add_output(), name);
    }
    return part;
  }

 private:
  /// A constant with all that makes it, a folded shape as a constant, or an input.
  void need(const std::string& first) {
    std::vector<std::string> open{first};
    std::set<std::pair<std::size_t, std::size_t>> makers;  // constant nodes by position
    while (!open.empty()) {
      const std::string name = std::move(open.back());
      open.pop_back();
      if (name.empty() || !done_.insert(name).second) continue;
      const onnx_tensor& t = file_.tensor(name);
      const auto it = initializers_.find(name);
      if (it != initializers_.end() || t.is_shape()) {
        if (it != initializers_.end()) *graph_->add_initializer() = *it->second;
        else put_values(*graph_->add_initializer(), name, t);
        if (frame_.ir_version() < 4) describe(*graph_->add_input(), name, t);  // constants are inputs, too
      } else if (t.constant && t.producer) {
        makers.emplace(position_[*t.producer], *t.producer);
        const onnx::NodeProto& n = file_.node(*t.producer);
        open.insert(open.end(), n.input().begin(), n.input().end());
        done_.insert(n.output().begin(), n.output().end());
      } else {
        declare(*graph_->add_input(), name);
      }
    }
    for (const auto& [position, node] : makers) *graph_->add_node() = file_.node(node);
  }

  /// An input or output: as the file has it where nothing better is known.
  void declare(onnx::ValueInfoProto& info, const std::string& name) {
    const onnx_tensor& t = file_.tensor(name);
    const auto stated = outputs_.find(name);
    if (t.known) describe(info, name, t);
    else if (stated != outputs_.end() && stated->second->type().tensor_type().has_shape()) info = *stated->second;
    else file_.fail("tensor \"" + name + "\": expected a known shape of what goes in or out of a part");
  }

  const onnx_file& file_;
  onnx::ModelProto frame_;             ///< what all parts have
  std::vector<std::size_t> position_;  ///< by node, in the order of the file
  std::map<std::string, const onnx::TensorProto*> initializers_;
  std::map<std::string, const onnx::ValueInfoProto*> outputs_;
  onnx::GraphProto* graph_ = nullptr;
  std::set<std::string> done_;
};

[[nodiscard]] HETPLAN_INLINE std::vector<std::string> files_beside(const onnx::GraphProto& g) {
  std::set<std::string> all;
  const auto look = [&](const onnx::TensorProto& t) {
    for (const auto& entry : t.external_data()) {
      if (t.data_location() == onnx::TensorProto::EXTERNAL && entry.key() == "location") all.insert(entry.value());
    }
  };
  for (const auto& t : g.initializer()) look(t);
  for (const auto& n : g.node()) {
    for (const auto& a : n.attribute()) look(a.t());
  }
  return {all.begin(), all.end()};
}

}  // namespace detail

HETPLAN_INLINE std::vector<onnx_part> cut_onnx(std::string_view text, const std::string& file, const onnx_options& options,
                                               const onnx_model& model, const plan& p) {
  const detail::onnx_file f(text, file, options);
  if (p.pipeline_count() > 1) f.fail("expected a plan with one pipeline, got " + std::to_string(p.pipeline_count()));
  std::map<std::size_t, device_id> device;  // of nodes that are layers
  for (const stage& s : p.stages) {
    if (const std::string more = beyond_plain(s); !more.empty())
      f.fail("expected a plan with every layer on one device, got stage \"" + s.name + "\", which is " + more);
    if (s.devices.size() != 1) f.fail("expected a plan with every layer on one device, got stage \"" + s.name + "\" on several");
    for (const layer_id l : s.layers) device[model.node_of[l.index()]] = s.devices.front().device;
  }
  std::map<std::string, detail::onnx_part_key> made_in;  // tensors
  std::map<detail::onnx_part_key, std::vector<std::size_t>> parts;
  for (const std::size_t i : f.order()) {
    const auto mine = device.find(i);
    if (mine == device.end()) continue;
    detail::onnx_part_key key{0, mine->second};
    for (const auto& name : f.node(i).input()) {
      if (const auto it = made_in.find(name); it != made_in.end())
        key.first = std::max(key.first, it->second.first + (it->second.second == key.second ? 0 : 1));
    }
    parts[key].push_back(i);
    for (const auto& name : f.node(i).output()) {
      if (!name.empty()) made_in[name] = key;
    }
  }
  std::map<detail::onnx_part_key, std::set<std::string>> wanted;
  std::vector<std::string> constant_outputs;
  for (const auto& o : f.model().graph().output()) {
    if (const auto it = made_in.find(o.name()); it != made_in.end()) wanted[it->second].insert(o.name());
    else if (f.tensor(o.name()).constant || f.tensor(o.name()).is_shape()) constant_outputs.push_back(o.name());
  }
  for (const auto& [key, nodes] : parts) {
    for (const std::size_t i : nodes) {
      for (const auto& name : f.node(i).input()) {
        if (const auto it = made_in.find(name); it != made_in.end() && it->second != key) wanted[it->second].insert(name);
      }
    }
  }
  detail::onnx_part_writer writer(f);
  std::vector<onnx_part> all;
  for (const auto& [key, nodes] : parts) {
    std::vector<std::string> out;
    for (const std::size_t i : nodes) {
      for (const auto& name : f.node(i).output()) {
        if (wanted[key].contains(name)) out.push_back(name);
      }
    }
    if (all.empty()) out.insert(out.end(), constant_outputs.begin(), constant_outputs.end());
    if (out.empty()) out.push_back(detail::first_output(f.node(nodes.back())));  // what nobody reads
    const onnx::ModelProto part = writer.write(nodes, out);
    all.push_back({key.second, key.first, part.SerializeAsString(), detail::files_beside(part.graph())});
  }
  return all;
}

}  // namespace hetplan::exchange
