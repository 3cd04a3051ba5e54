// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Writes a planning graph operator by operator: names, sizes, and which tensors carry a gradient.

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/graph/planning_graph.hpp>

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

/// How devices may share an operator's tensors (layer_spec::split and split_units); nothing said: the default.
struct shared_tensors {
  std::optional<layer_split> split = {};
  int units = 0;
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
  operator_graph(std::string name, precision dtype, int tokens_per_sample = 1);

  /// Names of the layers added next start with `prefix`.
  void scope(std::string prefix) { scope_ = std::move(prefix); }
  void set(training mode) { mode_ = mode; }

  /// Elements or parameters in bytes, at the model's precision.
  [[nodiscard]] bytes stored(double elements) const { return bytes(elements * element_); }

  /// Adds a layer: `spec` without the fields that follow from the graph (see above).
  tensor add(layer_spec spec, std::initializer_list<tensor> inputs, bytes output);

  /// Where data enters; it carries no gradient.
  tensor input(std::string name, bytes size) { return add({.name = std::move(name), .kind = "input", .forward_flops = flops{}}, {}, size); }

  /// An operator without weights whose arithmetic does not count (residual add, activation, pooling).
  tensor weightless(std::string name, std::string kind, std::initializer_list<tensor> inputs, double elements, shared_tensors how = {});

  /// A layer with `parameters` and `forward` FLOP whose backward parts cost the same each, the default.
  tensor weighted(std::string name, std::string kind, tensor x, double parameters, double forward, double elements,
                  shared_tensors how = {});

  /// rows x in times in x out, `extra` parameters besides the matrix (a bias, a norm of the output).
  tensor linear(std::string name, tensor x, double rows, double in, double out, double extra = 0, shared_tensors how = {});

  /// A table of `entries` rows of `width`, of which one call reads `rows`.
  tensor embedding(std::string name, tensor ids, double entries, double rows, double width, std::string group = "");

  [[nodiscard]] planning_graph build() &&;

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

#ifndef HETPLAN_COMPILED
#include <hetplan/zoo/operator_graph.ipp>
#endif
