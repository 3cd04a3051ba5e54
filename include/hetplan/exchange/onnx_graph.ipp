// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/onnx_graph.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <hetplan/core/error.hpp>
#include <hetplan/exchange/foreign_model.hpp>
#include <hetplan/exchange/onnx_checks.hpp>
#include <hetplan/exchange/onnx_file.hpp>
#include <hetplan/exchange/onnx_operators.hpp>

namespace hetplan::exchange {

namespace detail {

constexpr double most_flops = 1e30;

class onnx_graph_reader {
 public:
  onnx_graph_reader(const onnx_file& f, std::string name, int tokens) : file_(f), name_(std::move(name)), tokens_(tokens) {}

  [[nodiscard]] onnx_model read() && {
    for (const auto& o : file_.model().graph().output()) used_.insert(o.name());
    for (const std::size_t i : file_.order()) {
      used_.insert(file_.node(i).input().begin(), file_.node(i).input().end());
      if (file_.is_folded(i)) continue;
      layers_.push_back(i);
      held_.push_back(constants_of(file_.node(i)));
    }
    if (layers_.empty()) file_.fail("no operator reads an input: there is nothing to place");
    share_constants();
    planning_graph_builder builder(name_, bytes_per_parameter(), tokens_);
    for (std::size_t l = 0; l < layers_.size(); ++l) add_layer(builder, l);
    onnx_model m{std::move(builder).build()};
    m.assumed = file_.assumed();
    for (const std::string& type : unknown_types_)
      m.assumed.push_back("operators of type " + type + " compute nothing that counts: what they cost is their traffic");
    for (const auto& [type, name] : odd_types_)
      m.assumed.push_back("elements of type " + (type == onnx::TensorProto::STRING ? "STRING" : std::to_string(type)) + ", as tensor \"" +
                          name + "\" has them, count 4 bytes each");
    if (copied_bytes_ > 0.01 * m.graph.parameters() * m.graph.bytes_per_parameter())
      m.assumed.push_back(std::to_string(copied_) + " constants count several times, " + to_text(copied_bytes_) +
                          " bytes more, as layers that share them read different others, too");
    if (!empty_.empty()) {
      m.assumed.push_back("tensor \"" + empty_.front() + "\"" +
                          (empty_.size() == 1 ? " has" : " and " + std::to_string(empty_.size() - 1) + " more have") +
                          " an axis of size 0: what makes them costs nothing");
    }
    m.not_inferred = std::move(not_inferred_);
    m.folded = file_.order().size() - layers_.size();
    m.node_of = std::move(layers_);
    return m;
  }

 private:
  /// Adds the stored tensors behind a constant: itself, the source of a view, or packed numbers with their scales and zero points.
  void add_stored(const std::string& constant, std::set<std::string>& all) const {
    std::vector<std::string> open{constant};
    std::set<std::string> seen;
    while (!open.empty()) {
      const std::string name = std::move(open.back());
      open.pop_back();
      if (name.empty() || !seen.insert(name).second) continue;
      const onnx_tensor& t = file_.tensor(name);
      const onnx::NodeProto* n = t.producer ? &file_.node(*t.producer) : nullptr;
      if (n != nullptr && keeps_constant(*n) && !input_of(*n, 0).empty()) {
        const int stored = n->op_type() == "DequantizeLinear" ? n->input_size() : 1;
        open.insert(open.end(), n->input().begin(), n->input().begin() + stored);
      } else if (t.elements() > 1) {
        all.insert(name);
      }
    }
  }
  /// Returns the constants that count as a node's weights: no sizes, no single numbers.
  [[nodiscard]] std::set<std::string> constants_of(const onnx::NodeProto& n) const {
    std::set<std::string> all;
    for (int i = 0; i < n.input_size(); ++i) {
      const onnx_tensor& t = file_.tensor(n.input(i));
      if (t.constant && !is_size(n, i, file_.tensors()) && (!t.known || t.elements() > 1)) add_stored(n.input(i), all);
    }
    return all;
  }

  /// Groups layers with equal sets of constants. A constant in several such sets counts once in each.
  void share_constants() {
    std::map<std::set<std::string>, std::vector<std::size_t>> sharers;
    std::map<std::string, std::size_t> sets_with;
    for (std::size_t l = 0; l < layers_.size(); ++l) sharers[held_[l]].push_back(l);
    groups_.resize(layers_.size());
    std::set<std::string> names;
    for (const auto& [constants, mine] : sharers) {
      for (const auto& constant : constants) ++sets_with[constant];
      if (constants.empty() || mine.size() == 1) continue;
      const std::string name = free_name(names, *constants.begin());
      for (const std::size_t l : mine) groups_[l] = name;
    }
    for (const auto& [constant, sets] : sets_with) {
      if (sets > 1) ++copied_, copied_bytes_ += static_cast<double>(sets - 1) * file_.tensor(constant).bytes();
    }
  }

  /// Returns the bytes of the data type that most weights have.
  [[nodiscard]] double bytes_per_parameter() const {
    std::map<int, double> elements;
    std::set<std::string> all;
    for (const auto& mine : held_) all.insert(mine.begin(), mine.end());
    for (const auto& name : all) elements[file_.tensor(name).type] += file_.tensor(name).elements();
    const auto most = std::max_element(elements.begin(), elements.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    return most == elements.end() ? 4 : onnx_tensor{.type = most->first}.bytes();
  }

  void add_layer(planning_graph_builder& builder, std::size_t l) {
    const onnx::NodeProto& n = file_.node(layers_[l]);
    layer_spec spec{.name = free_name(names_, n.name().empty() ? n.op_type() + " " + first_output(n) : n.name()),
                    .kind = n.op_type(),
                    .weight_group = groups_[l]};
    const std::optional<double> flop = operator_flops(n, file_.tensors());
    if (!flop) unknown_types_.insert((n.domain().empty() ? "" : n.domain() + ".") + n.op_type());
    spec.forward_flops = flops(flop.value_or(0));
    if (!(spec.forward_flops->value() >= 0 && spec.forward_flops->value() <= most_flops))
      file_.fail("layer \"" + spec.name + "\": expected 0 to 1e30 FLOP, got " + to_text(spec.forward_flops->value()));
    double traffic = 0, weight = 0, weight_read = 0;
    for (const auto& name : held_[l]) weight += file_.tensor(name).bytes();
    std::set<std::string> read;
    std::map<layer_id, double> from;
    const auto need_type = [&](const std::string& name) {
      const int type = file_.tensor(name).type;
      if (type != 0 && !bytes_of_type(type)) odd_types_.emplace(type, name);
    };
    for (const auto& name : held_[l]) need_type(name);
    for (int i = 0; i < n.input_size(); ++i) {
      const std::string& name = n.input(i);
      const onnx_tensor& t = file_.tensor(name);
      if (name.empty() || is_size(n, i, file_.tensors()) || !read.insert(name).second) continue;
      need_type(name);
      if (t.constant && !t.known && unknown_constants_.insert(name).second) not_inferred_.push_back(name);
      (t.constant ? weight_read : traffic) += bytes_read(n, i, file_.tensors());
      if (const auto it = made_by_.find(name); it != made_by_.end()) from[it->second] += t.bytes();
    }
    for (const auto& name : n.output()) {
      if (name.empty()) continue;
      need_type(name);
      if (!file_.tensor(name).known && used_.contains(name)) not_inferred_.push_back(name);
      if (file_.tensor(name).elements() == 0 && used_.contains(name)) empty_.push_back(name);
      if (!is_view(n)) traffic += file_.tensor(name).bytes();
    }
    spec.weight = bytes(weight);
    spec.weight_traffic = bytes(std::min(weight, weight_read));
    spec.traffic = bytes(traffic);
    const layer_id id = builder.add_layer(std::move(spec));
    for (const auto& [producer, size] : from) builder.add_edge(producer, id, bytes(size));
    for (const auto& name : n.output()) {
      if (!name.empty()) made_by_[name] = id;
    }
  }

  const onnx_file& file_;
  std::string name_;
  int tokens_;                               ///< per sample
  std::vector<std::size_t> layers_;          ///< node of each layer
  std::vector<std::set<std::string>> held_;  ///< constants of each layer
  std::vector<std::string> groups_;          ///< weight group of each layer
  std::map<std::string, layer_id> made_by_;  ///< producing layer of each tensor
  std::set<std::string> names_, unknown_types_;
  std::set<std::string> unknown_constants_;
  std::map<int, std::string> odd_types_;  ///< element types of unknown size, with the first tensor of each
  std::set<std::string> used_;            ///< tensors with a reader
  std::vector<std::string> not_inferred_, empty_;
  std::size_t copied_ = 0;
  double copied_bytes_ = 0;
};

}  // namespace detail

HETPLAN_INLINE onnx_model read_onnx(std::string_view text, const std::string& file, const onnx_options& options) {
  const detail::onnx_file f(text, file, options);
  return detail::onnx_graph_reader(f, options.name.empty() ? model_name_of(file) : options.name, options.tokens_per_sample.value_or(1))
      .read();
}

namespace detail {

/// Step and device of a part.
using onnx_part_key = std::pair<int, device_id>;

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

  /// @param nodes   in topological order.
  /// @param wanted  tensors that other parts read; tensors without a producing node are constants.
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
  /// Adds a tensor from outside of the part: as an initializer, as the constant nodes that compute it, or as an input.
  void need(const std::string& first) {
    std::vector<std::string> open{first};
    std::set<std::pair<std::size_t, std::size_t>> makers;  // by position in the topological order
    while (!open.empty()) {
      const std::string name = std::move(open.back());
      open.pop_back();
      if (name.empty() || !done_.insert(name).second) continue;
      const onnx_tensor& t = file_.tensor(name);
      const auto it = initializers_.find(name);
      if (it != initializers_.end() || t.is_shape()) {
        if (it != initializers_.end()) *graph_->add_initializer() = *it->second;
        else put_values(*graph_->add_initializer(), name, t);
        if (frame_.ir_version() < 4)
          describe(*graph_->add_input(), name, t);  // before version 4 of the format, constants must be inputs, too
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

  /// Declares an input or output, with the shape stated in the file if none is inferred.
  void declare(onnx::ValueInfoProto& info, const std::string& name) {
    const onnx_tensor& t = file_.tensor(name);
    const auto stated = outputs_.find(name);
    if (t.known) describe(info, name, t);
    else if (stated != outputs_.end() && stated->second->type().tensor_type().has_shape()) info = *stated->second;
    else file_.fail("tensor \"" + name + "\": expected a known shape of what goes in or out of a part");
  }

  const onnx_file& file_;
  onnx::ModelProto frame_;             ///< fields shared by all parts
  std::vector<std::size_t> position_;  ///< by node: position in the topological order
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
  std::map<std::size_t, device_id> device;  // by node that is a layer
  for (const stage& s : p.stages) {
    if (const std::string more = beyond_plain(s); !more.empty())
      f.fail("expected a plan with every layer on one device, got stage \"" + s.name + "\", which is " + more);
    if (s.devices.size() != 1) f.fail("expected a plan with every layer on one device, got stage \"" + s.name + "\" on several");
    if (!s.offload.empty()) f.fail("expected a plan with weights in the devices' memory, got stage \"" + s.name + "\" with some in tiers");
    for (const layer_id l : s.layers) device[model.node_of[l.index()]] = s.devices.front().device;
  }
  std::map<std::string, detail::onnx_part_key> made_in;  // producing part of each tensor
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
    if (out.empty()) out.push_back(detail::first_output(f.node(nodes.back())));  // a part needs an output even if nothing reads it
    const onnx::ModelProto part = writer.write(nodes, out);
    all.push_back({key.second, key.first, part.SerializeAsString(), detail::files_beside(part.graph())});
  }
  return all;
}

}  // namespace hetplan::exchange
