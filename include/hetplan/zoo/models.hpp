// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The built-in models by name.

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

// Writes a planning graph operator by operator: names, sizes, and which tensors carry a gradient.

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

// What a caller may choose about a built-in model.

/// An option that a model has no use for (tokens of a vision model, input of a language model) is ignored.
struct model_options {
  int tokens = 512;                       ///< of a sample of a language model
  std::optional<image_shape> input = {};  ///< of a vision model (= the size it was published with)
  std::optional<precision> dtype = {};    ///< (= bf16 for language models, fp32 for vision models)
};

// The built-in language models: their published numbers.

/// A language model as a planning graph. Throws invalid_input (tokens outside 1 to the context).
inline planning_graph build_language_model(const std::string& name, const language_model& m, const model_options& o) {
  check_tokens(name, m, o.tokens);
  operator_graph g(name, o.dtype.value_or(precision::bf16), o.tokens);
  const tensor x = hidden_states(g, "", m, embed_tokens(g, "", m, o.tokens), o.tokens);
  language_head(g, "", m, x, o.tokens);
  return std::move(g).build();
}

/// Source       layers and hidden: google-research/bert README. heads = hidden / 64, intermediate = 4 hidden,
///              vocabulary and positions: the usual BERT convention (not in the README).
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

// Qwen2.5-Omni-3B: audio and vision towers, the language model that they join, the talker that follows.

/// What a sample of a multimodal model holds besides its text.
inline constexpr int omni_audio_frames = 1500;   ///< 30 s of sound
inline constexpr int omni_image_patches = 1024;  ///< 448 x 448 pixels, patches of 14 x 14

/// The text part ("thinker"). Source  the published configuration as quoted by Tyr (qwen25omni_3B); layers,
/// heads and widths equal torchtune's qwen2_5_3b.
[[nodiscard]] constexpr language_model omni_text() {
  return {.blocks = {.layers = 36, .hidden = 2048, .heads = 16, .kv_heads = 2, .head_dim = 128, .intermediate = 11008, .qkv_bias = true},
          .vocabulary = 151936,
          .context = 32768};
}

/// The speech decoder. Source  nntrainer's talker_converter.py for Qwen2.5-Omni-3B, which reads these numbers
/// from the checkpoint; a third party's word, so treat them as an estimate. Its codec embedding has the text
/// part's width (2048).
[[nodiscard]] constexpr language_model omni_talker() {
  return {.blocks = {.layers = 24, .hidden = 896, .heads = 14, .kv_heads = 2, .head_dim = 64, .intermediate = 4864, .qkv_bias = true},
          .vocabulary = 8448,
          .context = 32768,
          .tied = false};
}

/// Two convolutions (128 mel bins, 3 wide, the second with stride 2), 32 blocks with attention in windows of 200
/// frames, pairs of frames averaged, a projection to `out`. Source  transformers Qwen2_5OmniAudioEncoderConfig.
tensor audio_tower(operator_graph& g, const std::string& prefix, int out);

/// Patches of 14 x 14 x 3 x 2 numbers, 32 blocks with attention in windows of 8 x 8 patches but over the whole
/// image in every eighth, then 2 x 2 patches merged by two linear layers. Source  transformers
/// Qwen2_5OmniVisionEncoderConfig; hidden size from a printout of the module (the class default is the output's).
tensor vision_tower(operator_graph& g, const std::string& prefix, int out);

/// Reads the text part's hidden states and the codec ids so far, one of each per position; gives codec logits.
tensor talker(operator_graph& g, const std::string& prefix, tensor thought, int tokens);

/// Which parts of the model learn.
enum class omni_training { all, text_only };

/// The towers' outputs take the places of the media tokens in the language model, which runs on `tokens` positions in
/// all: 512 by default, as the agreed settings have it. With 750 audio and 256 image tokens beside 512 of text the
/// real sequence has 1518; say tokens = 1518 to plan that. One token is a step of generation: text and talker alone, for the
/// towers ran with the prompt, and their outputs are in the caches.
/// `text_only` freezes audio, vision and talker: no gradient enters the towers, the talker hands its own back.
planning_graph qwen_omni(const std::string& name, omni_training learns, const model_options& o);

// The answer to a name that nobody knows.

/// Throws invalid_input: `who: unknown model "x"; expected one of a, b, c`.
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

/// All names that `model` knows.
[[nodiscard]] inline std::span<const std::string_view> model_names() { return detail::model_names; }

/// Whether a built-in model has a use for model_options::tokens; the others have one for model_options::input.
[[nodiscard]] bool takes_tokens(std::string_view name);

/// A built-in model as a planning graph at operator granularity.
///
/// Units        per sample; 1 MAC = 2 FLOP; norms, activations, adds and pooling count 0 FLOP.
/// Throws       invalid_input (unknown name; tokens or input outside what the model takes).
/// Source       each model's own header; docs/reference/zoo.md has the numbers and the rules.
[[nodiscard]] planning_graph model(std::string_view name, const model_options& options = {});

}  // namespace hetplan::zoo

#ifndef HETPLAN_SEPARATE
#include <hetplan/zoo/models.ipp>
#endif
