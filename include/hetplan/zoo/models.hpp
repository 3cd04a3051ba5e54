// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Built-in models by name, and the builders of their planning graphs.

#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan::zoo {

using hetplan::precision;  ///< number format of parameters and tensors

/// Mode of the layers added next.
enum class training { trainable, frozen };

/// Output of an operator for one sample.
struct tensor {
  layer_id from;
  bytes size;
};

/// Tensor parallelism of an operator (layer_spec::split and split_units). Unset fields have the default.
struct shared_tensors {
  std::optional<layer_split> split = {};
  int units = 0;
};

/// A model under construction. Operators are added in topological order.
///
/// build() derives the fields for training by the rules of automatic differentiation:
///  * A tensor carries a gradient if its layer is trainable or reads a tensor with a gradient. Other tensors' edges have gradient 0.
///    A layer that reads no tensor with a gradient has no backward_input work (the first layers of a network, frozen towers).
///  * A layer keeps its output until the backward if the output carries a gradient or a trainable layer reads it (for its weight gradient).
/// Traffic is every input plus the output, even if the output has no reader.
class operator_graph {
 public:
  operator_graph(std::string name, precision dtype, int tokens_per_sample = 1);

  void scope(std::string prefix) { scope_ = std::move(prefix); }
  void set(training mode) { mode_ = mode; }

  [[nodiscard]] bytes stored(double elements) const { return bytes(elements * element_); }

  /// Adds a layer. `spec` leaves out the fields that build() derives.
  tensor add(layer_spec spec, std::initializer_list<tensor> inputs, bytes output);

  /// Adds an input of the model, which carries no gradient.
  tensor input(std::string name, bytes size) { return add({.name = std::move(name), .kind = "input", .forward_flops = flops{}}, {}, size); }

  /// Adds an operator without weights whose FLOP do not count (residual add, activation, pooling).
  tensor weightless(std::string name, std::string kind, std::initializer_list<tensor> inputs, double elements, shared_tensors how = {});

  /// Adds a layer with `parameters` and `forward` FLOP. Both parts of the backward cost the same as the forward, the default.
  tensor weighted(std::string name, std::string kind, tensor x, double parameters, double forward, double elements,
                  shared_tensors how = {});

  /// Adds a product of rows x in and in x out, with `extra` parameters besides the matrix (a bias, a norm of the output).
  tensor linear(std::string name, tensor x, double rows, double in, double out, double extra = 0, shared_tensors how = {});

  /// Adds an embedding table of `entries` rows of `width`, of which one call reads `rows`.
  tensor embedding(std::string name, tensor ids, double entries, double rows, double width, std::string group = "");

  [[nodiscard]] planning_graph build() &&;

 private:
  struct node {
    layer_spec spec;
    bytes output;
    bool learns;
    bool gradient;  ///< true if the output carries one
    bool input_gradient = false;
    bool kept = false;  ///< true if a reader's weight gradient needs the output
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

struct image_shape {
  int channels;
  int height;
  int width;

  [[nodiscard]] double elements() const { return 1.0 * channels * height * width; }
  friend bool operator==(const image_shape&, const image_shape&) = default;
};

struct feature_map {
  tensor data;
  image_shape shape;
};

struct convolution {
  int channels;  ///< of the output
  int kernel = 1;
  int stride = 1;
  int groups = 1;
};

/// Returns the shape after a window with "same" padding (kernel / 2): ceil(n / stride) for odd kernels.
[[nodiscard]] constexpr image_shape strided(const image_shape& s, int channels, int stride) {
  return {channels, (s.height + stride - 1) / stride, (s.width + stride - 1) / stride};
}

[[nodiscard]] inline feature_map image(operator_graph& g, const image_shape& s) { return {g.input("input", g.stored(s.elements())), s}; }

/// Adds a convolution fused with batch norm (two parameters per channel) and activation.
feature_map conv_bn(operator_graph& g, std::string name, const feature_map& x, const convolution& c);

feature_map max_pool(operator_graph& g, std::string name, const feature_map& x, int stride);

feature_map residual_add(operator_graph& g, std::string name, const feature_map& a, const feature_map& b);

/// Adds squeeze and excite: the mean of each channel, passed through `reduced` channels and back (with biases), scales the channel.
/// The mean counts 2 FLOP per element, as a multiply-add.
feature_map squeeze_excite(operator_graph& g, const std::string& prefix, const feature_map& x, int reduced);

/// Adds global average pooling and a linear classifier.
tensor classifier(operator_graph& g, const feature_map& x, int classes);

/// Adds ResNet's block: 1x1 down, 3x3 with the stride, 1x1 up to 4 * width, and the shortcut.
feature_map bottleneck(operator_graph& g, const std::string& prefix, const feature_map& x, int width, int stride);

/// A stage of MobileNetV2 or EfficientNet: `repeats` inverted residuals, the first with the stride.
struct inverted_residual_stage {
  int expand;
  int kernel;
  int stride;
  int channels;
  int repeats;
};

enum class gating { none, squeeze_excite };

/// Adds an MBConv block: 1x1 to expand * channels, depthwise, optional squeeze and excite (a quarter of the block's input channels),
/// 1x1 down, and a residual add if the shape stays the same.
feature_map inverted_residual(operator_graph& g, const std::string& prefix, const feature_map& x, const inverted_residual_stage& s,
                              int stride, gating gate);

enum class norm_kind { rms, layer };            ///< `hidden` parameters, or twice as many (scale and shift)
enum class norm_place { before, after };        ///< before attention and MLP, or after the residual adds (BERT)
enum class mlp_kind { swiglu, gelu };           ///< gate, up, down; or fc1, fc2
enum class attention_kind { causal, encoder };  ///< only causal attention can cache keys and values

/// Architecture of a stack of equal transformer blocks.
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

/// Adds the products for scores and values over `rows` queries with `span` keys each; no weights. Attention is fused (flash), so the
/// probabilities are not kept. Both operands of both products need gradients, hence backward = 2 forward.
tensor attention(operator_graph& g, const transformer& t, tensor q, tensor k, tensor v, double rows, double span);

tensor attention_branch(operator_graph& g, const transformer& t, tensor x, double rows, double span);

tensor mlp_branch(operator_graph& g, const transformer& t, tensor x, double rows);

/// Adds a block: two residual branches. The caller sets the scope of names. With tensor parallelism, partial sums are reduced after `o` and
/// after the last linear layer of the MLP. A column has whole key/value heads, with their queries.
tensor transformer_block(operator_graph& g, const transformer& t, tensor x, double rows, double span);

/// Adds all blocks, named prefix + "l0." and so on; each query of a block sees span_of(block) keys.
template <class SpanOf>
tensor transformer_stack(operator_graph& g, const std::string& prefix, const transformer& t, tensor x, double rows, SpanOf span_of) {
  for (int i = 0; i < t.layers; ++i) {
    g.scope(prefix + "l" + std::to_string(i) + ".");
    x = transformer_block(g, t, x, rows, span_of(i));
  }
  g.scope(prefix);
  return x;
}

/// A transformer with an embedding and a head over a vocabulary.
struct language_model {
  transformer blocks;
  int vocabulary;
  int context;                     ///< most tokens per sample
  bool tied = true;                ///< true if the head is the embedding table
  bool learned_positions = false;  ///< true for a table of `context` rows, false for rotary positions without parameters
  int segments = 0;                ///< rows of the segment table, added with the positions (BERT)
};

/// Adds the embedding of token ids (4 bytes each), and of positions if they are learned.
tensor embed_tokens(operator_graph& g, const std::string& prefix, const language_model& m, int tokens);

/// Adds all blocks and the last norm. Returns the hidden states.
tensor hidden_states(operator_graph& g, const std::string& prefix, const language_model& m, tensor x, int tokens);

/// Adds the head, with logits for every position.
tensor language_head(operator_graph& g, const std::string& prefix, const language_model& m, tensor x, int tokens);

/// Throws invalid_input unless 1 <= tokens <= the model's context.
void check_tokens(const std::string& name, const language_model& m, int tokens);

/// Options of built-in models. Options without meaning for a model (tokens of a vision model, input of a language model) are ignored.
struct model_options {
  int tokens = 512;                       ///< per sample of a language model
  std::optional<image_shape> input = {};  ///< of a vision model; default: the size it was published with
  std::optional<precision> dtype = {};    ///< default: bf16 for language models, fp32 for vision models
};

/// Returns a language model as a planning graph. Throws invalid_input (tokens outside 1 to the context).
inline planning_graph build_language_model(const std::string& name, const language_model& m, const model_options& o) {
  check_tokens(name, m, o.tokens);
  operator_graph g(name, o.dtype.value_or(precision::bf16), o.tokens);
  const tensor x = hidden_states(g, "", m, embed_tokens(g, "", m, o.tokens), o.tokens);
  language_head(g, "", m, x, o.tokens);
  return std::move(g).build();
}

/// Source       layers and hidden: google-research/bert README. heads = hidden / 64, intermediate = 4 hidden, vocabulary and positions: the
///              usual BERT convention (not in the README).
/// Deviations   the pooler, and the head's extra layer and bias, are left out (1.1 % of bert-base's parameters).
[[nodiscard]] constexpr language_model bert(int layers, int hidden) {
  return {.blocks = {.layers = layers,
                     .hidden = hidden,
                     .heads = hidden / 64,
                     .kv_heads = hidden / 64,
                     .head_dim = 64,
                     .intermediate = 4 * hidden,
                     .norm = norm_kind::layer,
                     .place = norm_place::after,
                     .mlp = mlp_kind::gelu,
                     .attention = attention_kind::encoder,
                     .qkv_bias = true,
                     .output_bias = true,
                     .mlp_bias = true},
          .vocabulary = 30522,
          .context = 512,
          .learned_positions = true,
          .segments = 2};
}

/// Source  openai/gpt-2 src/model.py default_hparams (the 124M model).
[[nodiscard]] constexpr language_model gpt2() {
  return {.blocks = {.layers = 12,
                     .hidden = 768,
                     .heads = 12,
                     .kv_heads = 12,
                     .head_dim = 64,
                     .intermediate = 3072,
                     .norm = norm_kind::layer,
                     .mlp = mlp_kind::gelu,
                     .qkv_bias = true,
                     .output_bias = true,
                     .mlp_bias = true},
          .vocabulary = 50257,
          .context = 1024,
          .learned_positions = true};
}

/// Source  torchtune model builders (qwen3_0_6b_instruct, qwen3_1_7b_instruct).
[[nodiscard]] constexpr language_model qwen3(int hidden, int intermediate) {
  return {.blocks =
              {.layers = 28, .hidden = hidden, .heads = 16, .kv_heads = 8, .head_dim = 128, .intermediate = intermediate, .qk_norm = true},
          .vocabulary = 151936,
          .context = 40960};
}

/// Source  torchtune model builders (llama3_8b); microsoft/vidur model_config.py agrees.
[[nodiscard]] constexpr language_model llama3_8b() {
  return {.blocks = {.layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8, .head_dim = 128, .intermediate = 14336},
          .vocabulary = 128256,
          .context = 8192,
          .tied = false};
}

// Qwen2.5-Omni-3B: audio and vision towers, the language model (thinker), the talker.

/// Media of a sample.
inline constexpr int omni_audio_frames = 1500;   ///< 30 s of sound
inline constexpr int omni_image_patches = 1024;  ///< 448 x 448 pixels, patches of 14 x 14

/// The text part ("thinker"). Source  published configuration as quoted by Tyr (qwen25omni_3B); layers, heads, widths equal torchtune's
/// qwen2_5_3b.
[[nodiscard]] constexpr language_model omni_text() {
  return {.blocks = {.layers = 36, .hidden = 2048, .heads = 16, .kv_heads = 2, .head_dim = 128, .intermediate = 11008, .qkv_bias = true},
          .vocabulary = 151936,
          .context = 32768};
}

/// The speech decoder. Source  nntrainer's talker_converter.py for Qwen2.5-Omni-3B, which reads these numbers from the checkpoint; as a
/// third party's numbers they are an estimate. Its codec embedding has the text part's width (2048).
[[nodiscard]] constexpr language_model omni_talker() {
  return {.blocks = {.layers = 24, .hidden = 896, .heads = 14, .kv_heads = 2, .head_dim = 64, .intermediate = 4864, .qkv_bias = true},
          .vocabulary = 8448,
          .context = 32768,
          .tied = false};
}

/// Adds two convolutions (128 mel bins, 3 wide, the second with stride 2), 32 blocks with attention in windows of 200 frames, averages of
/// pairs of frames, and a projection to `out`. Source  transformers Qwen2_5OmniAudioEncoderConfig.
tensor audio_tower(operator_graph& g, const std::string& prefix, int out);

/// Adds an embedding of patches of 14 x 14 x 3 x 2 numbers, 32 blocks with attention in windows of 8 x 8 patches (the whole image in every
/// eighth), and two linear layers that merge 2 x 2 patches. Source  transformers Qwen2_5OmniVisionEncoderConfig; hidden size from a
/// printout of the module (the class default is the output's).
tensor vision_tower(operator_graph& g, const std::string& prefix, int out);

/// Adds the talker, which maps the text part's hidden states and the previous codec ids, one of each per position, to codec logits.
tensor talker(operator_graph& g, const std::string& prefix, tensor thought, int tokens);

/// Trainable parts of the model.
enum class omni_training { all, text_only };

/// Returns Qwen-Omni as a planning graph. The towers' outputs replace the media tokens in the language model, which runs on `tokens`
/// positions in all, 512 by default. A real sequence with 750 audio and 256 image tokens beside 512 of text has 1518; set tokens = 1518 to
/// plan for it. A single token is a generation step of text and talker alone: the towers ran with the prompt, and the caches hold their
/// outputs. `text_only` freezes audio, vision and talker: no gradient enters the towers, but the talker passes gradients on.
planning_graph qwen_omni(const std::string& name, omni_training learns, const model_options& o);

/// Throws invalid_input `WHO: unknown WHAT "x"; expected one of a, b, c`.
[[noreturn]] inline void throw_unknown(std::string_view who, std::string_view what, std::string_view given,
                                       std::span<const std::string_view> known) {
  std::string text(who);
  text.append(": unknown ").append(what).append(" \"").append(given).append("\"; expected one of ");
  for (std::size_t i = 0; i < known.size(); ++i) text.append(i == 0 ? "" : ", ").append(known[i]);
  throw invalid_input(text);
}

namespace detail {

inline constexpr std::array<std::string_view, 12> model_names{"bert-base", "bert-small",       "qwen3-0.6b",      "qwen3-1.7b",
                                                              "qwen-omni", "qwen-omni-frozen", "llama3-8b",       "gpt2",
                                                              "resnet50",  "resnet101",        "efficientnet-b1", "mobilenetv2"};

}  // namespace detail

[[nodiscard]] inline std::span<const std::string_view> model_names() { return detail::model_names; }

/// True if a built-in model uses model_options::tokens; other models use model_options::input.
[[nodiscard]] bool takes_tokens(std::string_view name);

/// Returns a built-in model as a planning graph at operator granularity.
///
/// Units        per sample; 1 MAC = 2 FLOP; norms, activations, adds and pooling count 0 FLOP.
/// Throws       invalid_input (unknown name; tokens or input outside the model's range).
/// Source       see the builder of each model; docs/reference/zoo.md has the numbers and the rules.
[[nodiscard]] planning_graph model(std::string_view name, const model_options& options = {});

}  // namespace hetplan::zoo

#ifndef HETPLAN_SEPARATE
#include <hetplan/zoo/models.ipp>
#endif
