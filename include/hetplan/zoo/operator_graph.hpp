// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Writes a planning graph operator by operator: names, sizes, and which tensors carry a gradient.

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/graph/planning_graph_builder.hpp>

namespace hetplan::zoo {

/// The number format of parameters and tensors.
enum class precision { fp32, bf16 };

[[nodiscard]] constexpr double bytes_per_element(precision p) { return p == precision::fp32 ? 4 : 2; }

/// Whether the layers added next learn.
enum class training { trainable, frozen };

/// What an operator hands on: who made it and how large it is for one sample.
struct tensor {
  layer_id from;
  bytes size;
};

/// A model under construction. Operators are added in an order in which inputs come before their readers.
///
/// What training needs follows from the graph, by the rules of automatic differentiation, in build():
///  * a tensor carries a gradient if the layer that made it learns or reads a tensor that carries one;
///    where it carries none, the edge's gradient is 0, and a layer that reads no such tensor has no
///    backward_input work (the first layers of a network, frozen towers);
///  * a layer keeps its output from forward to backward if the output carries a gradient or a layer that
///    learns reads it (its weight gradient is made from it); otherwise it keeps nothing.
/// Traffic is every input plus the output, also where nobody reads the output.
class operator_graph {
 public:
  operator_graph(std::string name, precision dtype, int tokens_per_sample = 1)
      : builder_(std::move(name), bytes_per_element(dtype), tokens_per_sample), element_(bytes_per_element(dtype)) {}

  /// Names of the layers added next start with `prefix`.
  void scope(std::string prefix) { scope_ = std::move(prefix); }
  void set(training mode) { mode_ = mode; }

  /// Elements or parameters in bytes, at the model's precision.
  [[nodiscard]] bytes stored(double elements) const { return bytes(elements * element_); }

  /// Adds a layer: `spec` without the fields that follow from the graph (see above).
  tensor add(layer_spec spec, std::initializer_list<tensor> inputs, bytes output) {
    const layer_id id(nodes_.size());
    for (const tensor& t : inputs) edges_.push_back({t.from, id, t.size, t.size});
    spec.name.insert(0, scope_);
    spec.trainable = mode_ == training::trainable;
    const bool learns = spec.trainable && spec.weight > bytes{};
    nodes_.push_back({std::move(spec), output, learns, learns});
    return {id, output};
  }

  /// Where data enters; it carries no gradient.
  tensor input(std::string name, bytes size) { return add({.name = std::move(name), .kind = "input", .forward_flops = flops{}}, {}, size); }

  /// An operator without weights whose arithmetic does not count (residual add, activation, pooling).
  tensor weightless(std::string name, std::string kind, std::initializer_list<tensor> inputs, double elements) {
    return add({.name = std::move(name), .kind = std::move(kind), .forward_flops = flops{}}, inputs, stored(elements));
  }

  /// A layer with `parameters` and `forward` FLOP whose backward parts cost the same each, the default.
  tensor weighted(std::string name, std::string kind, tensor x, double parameters, double forward, double elements) {
    return add({.name = std::move(name), .kind = std::move(kind), .forward_flops = flops(forward), .weight = stored(parameters)}, {x},
               stored(elements));
  }

  /// rows x in times in x out, `extra` parameters besides the matrix (a bias, a norm of the output).
  tensor linear(std::string name, tensor x, double rows, double in, double out, double extra = 0) {
    return weighted(std::move(name), "linear", x, in * out + extra, 2 * rows * in * out, rows * out);
  }

  /// A table of `entries` rows of `width`, of which one call reads `rows`.
  tensor embedding(std::string name, tensor ids, double entries, double rows, double width, std::string group = "") {
    return add({.name = std::move(name),
                .kind = "embedding",
                .forward_flops = flops{},
                .weight = stored(entries * width),
                .weight_traffic = stored(rows * width),
                .weight_group = std::move(group)},
               {ids}, stored(rows * width));
  }

  [[nodiscard]] planning_graph build() && {
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

 private:
  struct node {
    layer_spec spec;
    bytes output;
    bool learns;
    bool gradient;  ///< the output carries one
    bool input_gradient = false;
    bool kept = false;  ///< a reader needs the output for its weight gradient
    bool read = false;
    bytes read_bytes = {};
  };

  planning_graph_builder builder_;
  double element_;
  std::string scope_;
  training mode_ = training::trainable;
  std::vector<node> nodes_;
  std::vector<layer_edge> edges_;
};

}  // namespace hetplan::zoo
