// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Planning graphs: immutable DAGs of layers, numbered topologically.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/keyed.hpp>
#include <hetplan/core/precision.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/core/version.hpp>

namespace hetplan {

// Layers: their specification for the builder, and the resolved node of the planning graph.

/// Measured seconds of one layer on one kind of device, by batch size (ascending, >= 1). `backward_s` is the whole
/// backward (input and weight gradient); empty if only inference was measured.
struct layer_profile {
  std::string device_kind;
  std::vector<double> batch;
  std::vector<double> forward_s;
  std::vector<double> backward_s;

  friend bool operator==(const layer_profile&, const layer_profile&) = default;
};

/// Cut of a layer's weights where devices share tensors (the columns of a grid).
/// Source  DeepCEE, section 3.3.3; the pair columns, rows is Megatron's.
enum class layer_split {
  none,     ///< every device runs the whole layer
  rows,     ///< the output is summed over the columns by an all-reduce
  columns,  ///< the output stays split
  along     ///< no weights; works on split tensors
};

/// How often a layer runs: for every token, or once for each request (audio and vision towers, encoders), never in a decoding step.
enum class layer_scope { token, request };

/// Which tokens a token sees: those before it and itself, or all.
enum class attention_kind { causal, full };

/// Mixture of experts: each token passes `active` of `total` experts, which have `weight` bytes together, part of the layer's weight.
struct expert_weights {
  int total = 1;
  int active = 1;
  bytes weight = {};

  friend bool operator==(const expert_weights&, const expert_weights&) = default;
};

/// What a layer does with the tokens of a sequence. The defaults are those of a layer without attention.
/// Source  semantics, section 2.
struct token_work {
  layer_scope per = layer_scope::token;
  flops attention_flops = {};  ///< for each pair (new token, token that it sees); contained in forward_flops
  attention_kind attention = attention_kind::causal;
  std::optional<int> window = {};  ///< tokens that a token sees at most, itself included; the cache holds no more; default: all
  bool last_token = false;         ///< in a prompt only the last token of a sequence is computed
  std::optional<expert_weights> experts = {};
  bytes attention_traffic = {};  ///< moved for each pair: 0 with flash attention, more where scores are written out

  /// Returns the pairs (new token, token that it sees) of `added` tokens behind `cached` ones.
  [[nodiscard]] double pairs(double added, double cached) const;
  /// Returns how many of so many tokens of a sequence the cache holds.
  [[nodiscard]] double kept(double tokens) const;

  friend bool operator==(const token_work&, const token_work&) = default;
};

/// Specification of a layer, per sample unless stated. Defaults are those of model files.
/// Source  semantics, section 2. SI units; 1 MAC = 2 FLOP.
struct layer_spec {
  std::string name;
  std::string kind = "";
  std::optional<flops> forward_flops = {};           ///< required unless profiled
  std::optional<flops> backward_input_flops = {};    ///< default: forward_flops
  std::optional<flops> backward_weight_flops = {};   ///< default: forward_flops if it has trainable weights, else 0
  bytes weight = {};                                 ///< parameters, held once by each device that runs the layer
  bool trainable = true;                             ///< false: no gradient, optimizer state or all-reduce
  std::optional<bytes> weight_traffic = {};          ///< weight bytes that one call reads; default: weight
  std::string weight_group = "";                     ///< layers of a group share one tensor; empty: no group
  bytes activation = {};                             ///< kept from a sample's forward until its backward
  std::optional<bytes> forward_activation = {};      ///< outside training, until the end of the forward; default: activation
  std::optional<bytes> activation_for_weights = {};  ///< part of `activation` that a separate backward_weight needs; default: all
  std::optional<bytes> traffic = {};                 ///< device-memory bytes besides weights; default: in-edges + largest out-edge
  std::optional<bytes> backward_traffic = {};        ///< those of backward_input; default: traffic if that has FLOP, else 0
  bytes kv_bytes_per_token = {};                     ///< key/value cache per token of context
  std::optional<layer_split> split = {};             ///< default: rows if it has weights, else none
  int split_units = 0;                               ///< number of indivisible units (heads, experts): parts are whole units; 0: any part
  std::vector<layer_profile> profiles = {};
  token_work sequence = {};
  std::vector<int> degrees = {};    ///< of tensor parallelism that are allowed beside 1, e.g. divisors of the heads; empty: any
  int calls = 1;                    ///< kernels that a runtime launches for the layer
  std::optional<double> rows = {};  ///< of the layer's product in a sample (a request, if it runs per request); default: its tokens
  bytes workspace = {};             ///< training: temporary bytes per token of a sample, e.g. the gradient of logits
  bytes scratch = {};               ///< training: temporary bytes whatever the tokens, e.g. the gradient of the weights
  bytes forward_workspace = {};     ///< outside training: temporary bytes per token of a pass, e.g. the tensors that are alive
  std::optional<int> block = {};    ///< layers of a block, which follow each other, can be run again together (recomputation::blocks)
};

/// Layer of a planning graph: every default resolved, numbered topologically.
struct layer {
  layer_id id;
  std::string name;
  std::string kind;
  flops forward_flops;
  flops backward_input_flops;
  flops backward_weight_flops;
  bytes weight;
  bool trainable = true;
  bytes weight_traffic;
  std::int32_t weight_group = -1;  ///< index into planning_graph::weight_groups(), -1 = none
  bytes activation;
  bytes forward_activation;
  bytes activation_for_weights;  ///< <= activation
  bytes traffic;
  bytes backward_traffic;  ///< of backward_input
  bytes largest_output;    ///< largest out-edge, which tensor parallelism gathers
  bytes kv_bytes_per_token;
  layer_split split = layer_split::none;
  int split_units = 0;
  bool has_flops = true;  ///< false: only the profiles tell its time
  std::vector<layer_profile> profiles;
  token_work sequence;
  std::vector<int> degrees;
  int calls = 1;
  double rows = 1;  ///< of the product in a sample (a request): tokens, or the positions of a convolution's output
  bytes workspace;
  bytes scratch;
  bytes forward_workspace;
  std::int32_t block = -1;         ///< number of the block; -1: none
  int tokens_per_sample = 1;       ///< tokens to which the amounts belong: the model's, 1 if the layer runs per request
  double bytes_per_parameter = 4;  ///< the model's
  hetplan::precision precision = hetplan::precision::fp32;  ///< the model's
  std::string weight_format;                                ///< the model's

  /// Returns the bytes that have gradients, optimizer state and an all-reduce.
  [[nodiscard]] bytes trainable_weight() const { return trainable ? weight : bytes{}; }

  [[nodiscard]] bool is_split() const { return split != layer_split::none; }
  [[nodiscard]] bool runs_per_request() const { return sequence.per == layer_scope::request; }
  /// Does it run in every pass of a prompt, rather than in the first or the last alone?
  [[nodiscard]] bool runs_in_every_chunk() const { return !runs_per_request() && !sequence.last_token; }
  /// Is this degree of tensor parallelism allowed?
  [[nodiscard]] bool allows(int degree) const;

  /// Returns the profile for a kind of device, or null.
  [[nodiscard]] const layer_profile* profile_for(const std::string& device_kind) const {
    for (const layer_profile& p : profiles) {
      if (p.device_kind == device_kind) return &p;
    }
    return nullptr;
  }

  friend bool operator==(const layer&, const layer&) = default;
};

/// Returns the degrees of tensor parallelism that layers of both lists allow; an empty list, also returned, allows any.
[[nodiscard]] std::vector<int> common_degrees(std::span<const int> a, std::span<const int> b);

[[nodiscard]] constexpr std::string_view to_string(layer_split s) {
  return s == layer_split::none ? "none" : s == layer_split::rows ? "rows" : s == layer_split::columns ? "columns" : "along";
}

/// Returns nodes 0 ... n-1 in a stable topological order: always the smallest ready node, so that a numbering that is
/// topological stays as it is. Nodes on or behind a cycle are missing.
///
/// Complexity  O(n log n + edges).
/// Rationale   boost::topological_sort is not stable in this sense, and its header alone costs two thirds of what `hetplan.hpp` does in
///             the compiled build.
[[nodiscard]] std::vector<std::size_t> topological_order(std::size_t n, std::span<const std::pair<std::size_t, std::size_t>> edges);

/// Returns an edge of a cycle, given an incomplete topological order.
[[nodiscard]] std::pair<std::size_t, std::size_t> edge_on_cycle(std::size_t n, std::span<const std::pair<std::size_t, std::size_t>> edges,
                                                                std::span<const std::size_t> order);

/// Tensor sent from one layer to another, per sample.
struct layer_edge {
  layer_id from;
  layer_id to;
  bytes forward;   ///< activation bytes, `from` to `to`
  bytes gradient;  ///< gradient bytes, `to` to `from`; 0: no backward transfer

  friend bool operator==(const layer_edge&, const layer_edge&) = default;
};

/// What holds for all layers of a model.
struct model_facts {
  double bytes_per_parameter = 4;
  int tokens_per_sample = 1;                         ///< tokens of a sample, to which the amounts of a layer belong
  std::optional<hetplan::precision> precision = {};  ///< in which it computes; default: fp32 from 4 bytes per parameter on, else bf16
  std::string weight_format = "";                    ///< e.g. f16, q8, q4: devices attain other shares of their peaks; empty: not told

  friend bool operator==(const model_facts&, const model_facts&) = default;
};

/// Planning graph G_M = (V, E), made and validated by `planning_graph_builder`. Layers are numbered so that every edge
/// goes from a smaller to a larger id. With `graph/bgl.hpp` it is a Boost graph.
class planning_graph {
 public:
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::size_t size() const { return layers_.size(); }
  [[nodiscard]] std::span<const layer> layers() const { return layers_; }
  [[nodiscard]] const layer& operator[](layer_id l) const { return layers_[l.index()]; }

  /// Returns all edges, ordered by (from, to).
  [[nodiscard]] std::span<const layer_edge> edges() const { return edges_; }
  /// Returns the edges that leave a layer, ordered by target.
  [[nodiscard]] std::span<const layer_edge> out_edges(layer_id l) const;
  /// Returns the indices into edges() of the edges that enter a layer, ordered by source.
  [[nodiscard]] std::span<const std::uint32_t> in_edges(layer_id l) const;

  /// Returns the names of the weight groups, indexed by layer::weight_group.
  [[nodiscard]] std::span<const std::string> weight_groups() const { return weight_groups_; }

  /// Returns the layer of that name. Throws invalid_input if there is none.
  [[nodiscard]] layer_id find(std::string_view name) const;
  [[nodiscard]] bool contains(std::string_view name) const { return by_name_.contains(parts_of(name)); }

  [[nodiscard]] const model_facts& facts() const { return facts_; }
  [[nodiscard]] double bytes_per_parameter() const { return facts_.bytes_per_parameter; }
  [[nodiscard]] int tokens_per_sample() const { return facts_.tokens_per_sample; }

  /// Returns the number of parameters; a tensor shared by a weight group counts once.
  [[nodiscard]] double parameters() const;
  [[nodiscard]] flops forward_flops() const;

  /// Compares contents; the derived indices follow from them.
  friend bool operator==(const planning_graph& a, const planning_graph& b) {
    return a.name_ == b.name_ && a.layers_ == b.layers_ && a.edges_ == b.edges_ && a.weight_groups_ == b.weight_groups_ &&
           a.facts_ == b.facts_;
  }

 private:
  friend class planning_graph_builder;
  planning_graph() = default;

  std::string name_;
  model_facts facts_;
  std::vector<layer> layers_;
  std::vector<layer_edge> edges_;
  std::vector<std::string> weight_groups_;
  std::vector<std::size_t> first_out_, first_in_;
  std::vector<std::uint32_t> in_;
  keyed<layer_id> by_name_;
};

/// Builder of planning graphs, and the only way to make one: checks every rule about layers and edges.
///
///     planning_graph_builder b("toy");
///     const auto a = b.add_layer({.name = "a", .forward_flops = 2_GFLOP, .weight = 4_MB});
///     const auto c = b.add_layer({.name = "c", .forward_flops = 1_GFLOP});
///     b.add_edge(a, c, 600_kB);
///     const planning_graph g = std::move(b).build();
///
/// Ids returned by the builder number its own calls; the built graph may renumber them (see build()).
/// Throws           invalid_input from every member, naming the layer or edge and the rule.
/// Complexity       build: O(V + E log E).
class planning_graph_builder {
 public:
  explicit planning_graph_builder(std::string name, double bytes_per_parameter = 4, int tokens_per_sample = 1);
  planning_graph_builder(std::string name, model_facts facts);

  /// Adds a layer with a unique name. A layer without a profile needs forward_flops.
  layer_id add_layer(layer_spec spec);

  /// Adds the tensor `from` to `to`; `gradient` defaults to `forward`, 0 means no backward transfer.
  void add_edge(layer_id from, layer_id to, bytes forward, std::optional<bytes> gradient = {});

  void add_edge(std::string_view from, std::string_view to, bytes forward, std::optional<bytes> gradient = {});

  /// Returns the graph: layers numbered topologically (in the order of the calls if that is topological, see
  /// topological_order), every default resolved, edges indexed.
  [[nodiscard]] planning_graph build() &&;

 private:
  [[noreturn]] void fail(const std::string& what) const { throw invalid_input("model \"" + graph_.name_ + "\": " + what); }
  void require(bool ok, const std::string& what, double given, const char* expected) const;
  template <class Quantity>
  void require_amount(Quantity q, const std::string& what) const {
    require(is_finite(q) && q.value() >= 0, what, q.value(), "a finite number >= 0");
  }

  void check(const layer_spec& s) const;

  void check(const layer_profile& p, const std::string& where) const;

  void check_sequence(const layer_spec& s, const std::string& where) const;

  /// Layers per request and of the last token only have neighbours that run when they do.
  void check_passes() const;

  /// Layers of a block follow each other in the numbering, so no path leaves a block and comes back.
  void check_blocks() const;

  void renumber();

  void index_edges();

  void resolve_layers();

  std::int32_t group_of(const layer_spec& s, layer_id id);

  planning_graph graph_;
  std::vector<layer_spec> specs_;
  std::vector<layer_id> group_head_;
  key_index groups_;
  key_index pairs_;
};

/// Returns the specification from which a builder makes the same layer, with every default spelled out.
[[nodiscard]] layer_spec spec_of(const planning_graph& g, const layer& l);

/// Calls f(layer) for the first layer of each distinct tensor, in the order given; a weight group is one tensor.
template <class F>
void for_each_tensor(const planning_graph& model, std::span<const layer_id> layers, F&& f) {
  key_index seen;
  for (const layer_id l : layers) {
    if (model[l].weight_group >= 0 && !seen.insert({model[l].weight_group})) continue;
    f(model[l]);
  }
}

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/graph/planning_graph.ipp>
#endif
