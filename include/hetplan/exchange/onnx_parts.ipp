// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/onnx_parts.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <hetplan/exchange/onnx_file.hpp>

namespace HETPLAN_NAMESPACE::exchange {

namespace detail {

/// Puts one part together: nodes, then what they need.
class onnx_part_writer {
 public:
  onnx_part_writer(const onnx_file& f, const std::map<std::string, const onnx::TensorProto*>& initializers)
      : file_(f), initializers_(initializers), position_(f.order().size()) {
    for (std::size_t i = 0; i < f.order().size(); ++i) position_[f.order()[i]] = i;
  }

  /// @param nodes  producers first.   @param wanted  tensors that others read.
  [[nodiscard]] std::string write(const std::vector<std::size_t>& nodes, const std::set<std::string>& wanted) {
    onnx::ModelProto part = file_.model();
    part.clear_graph();
    graph_ = part.mutable_graph();
    graph_->set_name(file_.model().graph().name());
    done_.clear();
    std::set<std::string> made;
    for (const std::size_t i : nodes) made.insert(file_.node(i).output().begin(), file_.node(i).output().end());
    for (const std::size_t i : nodes) {
      for (const auto& name : file_.node(i).input()) {
        if (!name.empty() && !made.contains(name)) need(name);
      }
      *graph_->add_node() = file_.node(i);
    }
    for (const std::size_t i : nodes) {
      for (const auto& name : file_.node(i).output()) {
        if (wanted.contains(name)) describe(*graph_->add_output(), name, file_.tensor(name));
      }
    }
    if (graph_->output_size() == 0)
      describe(*graph_->add_output(), file_.node(nodes.back()).output(0), file_.tensor(file_.node(nodes.back()).output(0)));
    return part.SerializeAsString();
  }

 private:
  /// A constant with all that makes it, a folded shape as a constant, or an input.
  void need(const std::string& first) {
    std::vector<std::string> open{first};
    std::vector<std::size_t> constants;
    while (!open.empty()) {
      const std::string name = std::move(open.back());
      open.pop_back();
      if (!done_.insert(name).second) continue;
      const onnx_tensor& t = file_.tensor(name);
      if (const auto it = initializers_.find(name); it != initializers_.end()) {
        *graph_->add_initializer() = *it->second;
        declare(name);
      } else if (t.is_shape()) {
        put_values(*graph_->add_initializer(), name, t);
        declare(name);
      } else if (t.constant && t.producer) {
        constants.push_back(*t.producer);
        for (const auto& input : file_.node(*t.producer).input()) {
          if (!input.empty()) open.push_back(input);
        }
      } else {
        describe(*graph_->add_input(), name, file_.tensor(name));
      }
    }
    std::sort(constants.begin(), constants.end(), [&](std::size_t a, std::size_t b) { return position_[a] < position_[b]; });
    for (const std::size_t i : constants) {
      if (is_new(i)) *graph_->add_node() = file_.node(i);
    }
  }
  /// Until version 4 of the format, constants are inputs, too.
  void declare(const std::string& name) {
    if (file_.model().ir_version() < 4) describe(*graph_->add_input(), name, file_.tensor(name));
  }
  /// Not yet in the part?
  [[nodiscard]] bool is_new(std::size_t node) { return done_.insert("\n" + std::to_string(node)).second; }

  const onnx_file& file_;
  const std::map<std::string, const onnx::TensorProto*>& initializers_;
  std::vector<std::size_t> position_;  ///< by node, in the order of the file
  onnx::GraphProto* graph_ = nullptr;
  std::set<std::string> done_;
};

}  // namespace detail

HETPLAN_INLINE std::vector<onnx_part> cut_onnx(std::string_view text, const std::string& file, const onnx_options& options,
                                               const onnx_model& model, const plan& p) {
  const detail::onnx_file f(text, file, options.dimensions);
  std::map<std::size_t, device_id> device;  // of nodes that are layers
  for (const stage& s : p.stages) {
    if (s.devices.size() != 1) f.fail("expected a plan with every layer on one device, got stage \"" + s.name + "\" on several");
    for (const layer_id l : s.layers) device[model.node_of[l.index()]] = s.devices.front().device;
  }
  std::map<std::string, std::size_t> maker;
  std::map<std::size_t, int> step;
  std::map<std::pair<int, device_id>, std::vector<std::size_t>> parts;
  for (const std::size_t i : f.order()) {
    const auto mine = device.find(i);
    if (mine == device.end()) continue;
    int at = 0;
    for (const auto& name : f.node(i).input()) {
      const auto it = maker.find(name);
      if (it == maker.end()) continue;
      at = std::max(at, step[it->second] + (device[it->second] == mine->second ? 0 : 1));
    }
    step[i] = at;
    parts[{at, mine->second}].push_back(i);
    for (const auto& name : f.node(i).output()) maker[name] = i;
  }
  std::set<std::string> outputs;
  for (const auto& o : f.model().graph().output()) outputs.insert(o.name());
  std::map<std::size_t, std::pair<int, device_id>> part_of;
  for (const auto& [key, nodes] : parts) {
    for (const std::size_t i : nodes) part_of[i] = key;
  }
  for (const auto& [key, nodes] : parts) {
    for (const std::size_t i : nodes) {
      for (const auto& name : f.node(i).input()) {
        const auto it = maker.find(name);
        if (it != maker.end() && part_of[it->second] != key) outputs.insert(name);
      }
    }
  }
  std::map<std::string, const onnx::TensorProto*> initializers;
  for (const auto& t : f.model().graph().initializer()) initializers[t.name()] = &t;
  detail::onnx_part_writer writer(f, initializers);
  std::vector<onnx_part> all;
  for (const auto& [key, nodes] : parts) all.push_back({key.second, key.first, writer.write(nodes, outputs)});
  return all;
}

}  // namespace HETPLAN_NAMESPACE::exchange
