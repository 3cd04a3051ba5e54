// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/zoo/operator_graph.hpp>

namespace hetplan::zoo {

HETPLAN_INLINE operator_graph::operator_graph(std::string name, precision dtype, int tokens_per_sample)
    : builder_(std::move(name), bytes_per_element(dtype), tokens_per_sample), element_(bytes_per_element(dtype)) {}

HETPLAN_INLINE tensor operator_graph::add(layer_spec spec, std::initializer_list<tensor> inputs, bytes output) {
  const layer_id id(nodes_.size());
  for (const tensor& t : inputs) edges_.push_back({t.from, id, t.size, t.size});
  spec.name.insert(0, scope_);
  spec.trainable = mode_ == training::trainable;
  const bool learns = spec.trainable && spec.weight > bytes{};
  nodes_.push_back({std::move(spec), output, learns, learns});
  return {id, output};
}

HETPLAN_INLINE tensor operator_graph::weightless(std::string name, std::string kind, std::initializer_list<tensor> inputs, double elements,
                                                 shared_tensors how) {
  return add({.name = std::move(name), .kind = std::move(kind), .forward_flops = flops{}, .split = how.split, .split_units = how.units},
             inputs, stored(elements));
}

HETPLAN_INLINE tensor operator_graph::weighted(std::string name, std::string kind, tensor x, double parameters, double forward,
                                               double elements, shared_tensors how) {
  return add({.name = std::move(name),
              .kind = std::move(kind),
              .forward_flops = flops(forward),
              .weight = stored(parameters),
              .split = how.split,
              .split_units = how.units},
             {x}, stored(elements));
}

HETPLAN_INLINE tensor operator_graph::linear(std::string name, tensor x, double rows, double in, double out, double extra,
                                             shared_tensors how) {
  return weighted(std::move(name), "linear", x, in * out + extra, 2 * rows * in * out, rows * out, how);
}

HETPLAN_INLINE tensor operator_graph::embedding(std::string name, tensor ids, double entries, double rows, double width,
                                                std::string group) {
  return add({.name = std::move(name),
              .kind = "embedding",
              .forward_flops = flops{},
              .weight = stored(entries * width),
              .weight_traffic = stored(rows * width),
              .weight_group = std::move(group)},
             {ids}, stored(rows * width));
}

HETPLAN_INLINE planning_graph operator_graph::build() && {
  // The edges into a layer follow all edges into its predecessors, so one pass in order settles each rule.
  for (const layer_edge& e : edges_) {
    node& from = nodes_[e.from.index()];
    node& to = nodes_[e.to.index()];
    if (from.gradient) to.gradient = to.input_gradient = true;
    if (to.learns) from.kept = true;
    from.read = true;
    to.read_bytes += e.forward;
  }
  for (node& n : nodes_) {
    if (!n.input_gradient) n.spec.backward_input_flops = flops{};
    if (n.gradient || n.kept) n.spec.activation = n.output;
    if (!n.read) n.spec.traffic = n.read_bytes + n.output;
    builder_.add_layer(std::move(n.spec));
  }
  for (const layer_edge& e : edges_) {
    builder_.add_edge(e.from, e.to, e.forward, nodes_[e.from.index()].gradient ? e.gradient : bytes{});
  }
  return std::move(builder_).build();
}

}  // namespace hetplan::zoo
