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

// Convolutional building blocks that keep track of the shape.

/// Channels, height and width of an image or feature map.
struct image_shape {
  int channels;
  int height;
  int width;

  [[nodiscard]] double elements() const { return 1.0 * channels * height * width; }
  friend bool operator==(const image_shape&, const image_shape&) = default;
};

/// A tensor with its shape.
struct feature_map {
  tensor data;
  image_shape shape;
};

struct convolution {
  int channels;  ///< out
  int kernel = 1;
  int stride = 1;
  int groups = 1;
};

/// The shape after a window with "same" padding (kernel / 2): ceil(n / stride) for odd kernels.
[[nodiscard]] constexpr image_shape strided(const image_shape& s, int channels, int stride) {
  return {channels, (s.height + stride - 1) / stride, (s.width + stride - 1) / stride};
}

[[nodiscard]] inline feature_map image(operator_graph& g, const image_shape& s) { return {g.input("input", g.stored(s.elements())), s}; }

/// Convolution, batch norm (two parameters a channel) and activation, which run as one operator.
feature_map conv_bn(operator_graph& g, std::string name, const feature_map& x, const convolution& c);

feature_map max_pool(operator_graph& g, std::string name, const feature_map& x, int stride);

feature_map residual_add(operator_graph& g, std::string name, const feature_map& a, const feature_map& b);

/// Squeeze and excite: the mean of each channel, through `reduced` channels and back (with biases), scales it.
/// The mean counts 2 FLOP an element, as a multiply-add.
feature_map squeeze_excite(operator_graph& g, const std::string& prefix, const feature_map& x, int reduced);

/// The mean over the image and a linear classifier.
tensor classifier(operator_graph& g, const feature_map& x, int classes);

/// ResNet's block: 1x1 down, 3x3 (which has the stride), 1x1 up to 4 * width, and the shortcut.
feature_map bottleneck(operator_graph& g, const std::string& prefix, const feature_map& x, int width, int stride);

/// One stage of MobileNetV2 or EfficientNet: `repeats` inverted residuals, the first with the stride.
struct inverted_residual_stage {
  int expand;
  int kernel;
  int stride;
  int channels;
  int repeats;
};

enum class gating { none, squeeze_excite };

/// MBConv: 1x1 to expand * channels, depthwise, optional squeeze and excite (a quarter of the block's input
/// channels), 1x1 down, and a residual add where the shape stays.
feature_map inverted_residual(operator_graph& g, const std::string& prefix, const feature_map& x, const inverted_residual_stage& s,
                              int stride, gating gate);

// Transformer blocks, language models and towers from their architecture numbers.

enum class norm_kind { rms, layer };            ///< hidden, or twice hidden (scale and shift) parameters
enum class norm_place { before, after };        ///< before attention and MLP, or after the residual adds (BERT)
enum class mlp_kind { swiglu, gelu };           ///< gate, up, down; or fc1, fc2
enum class attention_kind { causal, encoder };  ///< only a causal one can cache keys and values

/// The numbers of a stack of equal transformer blocks.
struct transformer {
  int layers;
  int hidden;
  int heads;
  int kv_heads;
  int head_dim;
  int intermediate;
  norm_kind norm = norm_kind::rms;
  norm_place place = norm_place::before;
  mlp_kind mlp = mlp_kind::swiglu;
  attention_kind attention = attention_kind::causal;
  bool qkv_bias = false;
  bool output_bias = false;
  bool mlp_bias = false;
  bool qk_norm = false;  ///< a norm over head_dim, counted with q and k

  [[nodiscard]] double norm_parameters() const { return norm == norm_kind::rms ? hidden : 2.0 * hidden; }
};

tensor norm(operator_graph& g, std::string name, const transformer& t, tensor x, double rows);

/// Scores and values over `rows` queries that see `span` keys each; no weights. Fused (flash) attention: the
/// probabilities are not kept. Both operands of both products need gradients, hence backward = 2 forward.
tensor attention(operator_graph& g, const transformer& t, tensor q, tensor k, tensor v, double rows, double span);

tensor attention_branch(operator_graph& g, const transformer& t, tensor x, double rows, double span);

tensor mlp_branch(operator_graph& g, const transformer& t, tensor x, double rows);

/// One block: two residual branches. The caller sets the scope of its names. Devices that share its tensors sum up behind `o` and behind
/// the last linear layer of the MLP; a column has whole key/value heads, with their queries.
tensor transformer_block(operator_graph& g, const transformer& t, tensor x, double rows, double span);

/// All blocks, named prefix + "l0." and so on; `span_of(block)` keys are seen by each query.
template <class SpanOf>
tensor transformer_stack(operator_graph& g, const std::string& prefix, const transformer& t, tensor x, double rows, SpanOf span_of) {
  for (int i = 0; i < t.layers; ++i) {
    g.scope(prefix + "l" + std::to_string(i) + ".");
    x = transformer_block(g, t, x, rows, span_of(i));
  }
  g.scope(prefix);
  return x;
}

/// A transformer with a vocabulary on both sides.
struct language_model {
  transformer blocks;
  int vocabulary;
  int context;                     ///< most tokens of a sample
  bool tied = true;                ///< the head is the embedding table
  bool learned_positions = false;  ///< a table of `context` rows; else rotary, without parameters
  int segments = 0;                ///< rows for kinds of text, added with the positions (BERT)
};

/// Token ids (4 bytes each) to vectors, with positions added where they are learned.
tensor embed_tokens(operator_graph& g, const std::string& prefix, const language_model& m, int tokens);

/// All blocks and the last norm: the hidden states.
tensor hidden_states(operator_graph& g, const std::string& prefix, const language_model& m, tensor x, int tokens);

/// Logits of every position.
tensor language_head(operator_graph& g, const std::string& prefix, const language_model& m, tensor x, int tokens);

/// Throws invalid_input unless 1 <= tokens <= the model's context.
void check_tokens(const std::string& name, const language_model& m, int tokens);

}  // namespace hetplan::zoo

#ifndef HETPLAN_COMPILED
#include <hetplan/zoo/operator_graph.ipp>
#endif
