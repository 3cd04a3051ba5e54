// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Built-in models by name, and the builders of their planning graphs.

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/zoo/language_models.hpp>
#include <hetplan/zoo/weight_formats.hpp>

namespace hetplan::zoo {

using hetplan::precision;  ///< number format of parameters and tensors

/// Mode of the layers added next.
enum class training { trainable, frozen };

/// Output of an operator for one sample.
struct tensor {
  layer_id from;
  bytes size;
};

/// How devices and kernels run an operator: layer_spec::split, split_units and calls. Parts of tensor parallelism, too, are whole units.
struct execution {
  std::optional<layer_split> split = {};
  int units = 0;
  int calls = 1;
};

/// Scratch of a product or a convolution in training: what cuBLAS has for one stream on Hopper, by PyTorch's default.
inline constexpr bytes kernel_workspace(32 * 1024.0 * 1024.0);

/// What the backward of an operator without products moves, as a multiple of what its forward moves. PyTorch's eager kernels do it in
/// several passes: that of SwiGLU reads six tensors and writes three, where the forward has three in all. Source:
/// docs/reproduction/measured.md.
inline constexpr double elementwise_backward = 3;

/// What a backward needs of an operator besides its weights, as PyTorch's eager kernels keep it.
struct saved_tensors {
  bool inputs = true;   ///< of operators with weights only if they learn; sums need none
  bool output = false;  ///< ReLU
  bytes own = {};       ///< tensors in between, e.g. the input of a batch norm behind a convolution
};

/// Parameters of an operator.
struct parameters {
  double matrix = 0;  ///< which a weight format may quantise
  double others = 0;  ///< of biases and norms, in the model's precision
  matrix_use use = matrix_use::product;
};

/// What a file stores for an operator: the bytes that stand in place of those of a format.
struct stored_weights {
  bytes size = {};
  double elements = 0;  ///< parameters; 0 if packed, so that they cannot be counted
  bool used = false;    ///< set by the builder
};

/// By the operator's full name, as "l0.q".
using weight_sizes = std::map<std::string, stored_weights, std::less<>>;

/// A layer for each operator, or for what runtimes cut between: embedding, attention and MLP (or experts) of each block with their norms
/// and sums, head.
enum class level { operators, parts };

/// A model under construction. Operators are added in topological order.
///
/// build() derives the fields for training by the rules of automatic differentiation:
///  * A tensor carries a gradient if its layer is trainable or reads a tensor with a gradient. Other tensors' edges have gradient 0.
///    A layer that reads no tensor with a gradient has no backward_input work (the first layers of a network, frozen towers).
///  * A layer keeps its output until the backward if its own backward or that of a reader needs it, and what else its own one needs.
///    Outside training the tensors that are alive while it works count (`forward_workspace`): read later, or its output.
///  * A backward holds two gradients of the size of the output (`workspace`, unless told), and that of the weights before it is added to
///    the sum (`scratch`).
/// Traffic is every input plus the output, even if the output has no reader; in a backward_input without FLOP elementwise_backward times
/// as much.
class operator_graph {
 public:
  /// `weights`: the name of a format in which matrices are stored; "": as `dtype`. Throws invalid_input if none has that name.
  operator_graph(std::string name, precision dtype, int tokens_per_sample = 1, std::string_view weights = "");

  void scope(std::string prefix) { scope_ = std::move(prefix); }
  void set(training mode) { mode_ = mode; }
  [[nodiscard]] training mode() const { return mode_; }
  /// Stores matrices in a format.
  void store(const weight_format& f);
  /// Takes the weights' bytes from a file, whose format devices know as `family`.
  void store(weight_sizes& sizes, std::string family);
  /// Adds to products adapters of so many columns (Hu et al., "LoRA", 2021) from here on; 0: none.
  void adapt(int rank) { rank_ = rank; }
  [[nodiscard]] int rank() const { return rank_; }
  void set(layer_scope per) { per_ = per; }
  [[nodiscard]] layer_scope per() const { return per_; }
  /// Begins a block of layers that can be run again together, or ends it.
  void begin_block() { block_ = blocks_++; }
  void end_block() { block_ = {}; }
  /// Begins a part, which is one layer at level::parts; "": operators stay layers.
  void part(const std::string& name, const std::string& kind = "");

  [[nodiscard]] double element_bytes() const { return element_; }
  [[nodiscard]] int tokens() const { return facts_.tokens_per_sample; }
  /// Returns the part of bytes of a sample that belongs to a token (a request).
  [[nodiscard]] bytes per_token(bytes size) const { return size / (per_ == layer_scope::request ? 1.0 : facts_.tokens_per_sample); }

  /// Sets what attention moves for each pair of tokens and head besides the cache; 0: flash attention.
  void score_bytes(double each) { score_bytes_ = each; }
  [[nodiscard]] double score_bytes() const { return score_bytes_; }

  /// Returns the bytes of elements in the model's precision.
  [[nodiscard]] bytes stored(double elements) const { return bytes(elements * element_); }
  /// Returns the bytes of elements of a matrix.
  [[nodiscard]] bytes stored(double elements, matrix_use use) const {
    return !format_ ? stored(elements) : bytes(elements * format_->bits(use) / 8);
  }

  /// Adds a layer. `spec` leaves out the weight and the fields that build() derives; a scratch is one besides the weights' gradient.
  tensor add(layer_spec spec, std::initializer_list<tensor> inputs, bytes output, const parameters& p = {},
             const saved_tensors& saved = {});

  /// Adds an input of the model, which carries no gradient.
  tensor input(std::string name, bytes size) {
    return add({.name = std::move(name), .kind = "input", .forward_flops = flops{}, .calls = 0}, {}, size);
  }

  /// Adds an operator without weights whose FLOP do not count (residual add, activation, pooling).
  tensor weightless(std::string name, std::string kind, std::initializer_list<tensor> inputs, double elements, const execution& how,
                    const saved_tensors& saved);

  /// Adds a product of rows x in and in x out. Both parts of the backward cost the same as the forward, the default.
  /// `others`: parameters besides the matrix (a bias, a norm of the output).
  tensor linear(std::string name, tensor x, double rows, double in, double out, double others = 0, const execution& how = {},
                matrix_use use = matrix_use::product);

  /// Adds, where adapt() asks for it, A (in x rank) and B (rank x out) beside the product y of x, and their sum. Only they learn.
  tensor adapted(const std::string& name, tensor x, tensor y, double rows, double in, double out, const execution& how);

  /// Adds an embedding table of `entries` rows of `width`, of which one call reads `rows`. A table of a group is the head, too.
  tensor embedding(std::string name, tensor ids, double entries, double rows, double width, std::string group = "");

  [[nodiscard]] planning_graph build(level l = level::operators) &&;

 private:
  /// Returns the tensors of a sample that are alive while each operator works, in their order: outputs until their last reader has ended.
  [[nodiscard]] std::vector<bytes> alive_tensors() const;

  struct node {
    layer_spec spec;
    bytes output;
    double parameters;
    bool learns;
    bool gradient;  ///< true if the output carries one
    bool input_gradient = false;
    saved_tensors saved;
    bool kept = false;  ///< true if a backward needs the output
    bool read = false;
    bytes read_bytes = {};
  };

  /// Returns the bytes of all weights for each parameter, a group counted once; with adapters, of those that learn.
  [[nodiscard]] double bytes_per_parameter() const;
  /// Replaces a layer's bytes by those of the file.
  void take_stored(layer_spec& s, double parameters);

  std::string name_;
  model_facts facts_;
  double element_;
  std::optional<weight_format> format_ = {};
  weight_sizes* sizes_ = nullptr;
  int rank_ = 0;
  std::string scope_;
  training mode_ = training::trainable;
  layer_scope per_ = layer_scope::token;
  std::optional<int> block_ = {};
  int blocks_ = 0;
  double score_bytes_ = 0;
  std::int32_t part_ = -1;
  std::vector<std::pair<std::string, std::string>> parts_;  ///< names and kinds
  std::vector<std::int32_t> part_of_;                       ///< by node
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

/// Activation behind a convolution or a sum. ReLU works in place and needs its output alone, SiLU a copy of its input.
enum class activation_kind { none, relu, silu };

struct convolution {
  int channels;  ///< of the output
  int kernel = 1;
  int stride = 1;
  int groups = 1;
  activation_kind activation = activation_kind::relu;
};

/// Returns the shape after a window with "same" padding (kernel / 2): ceil(n / stride) for odd kernels.
[[nodiscard]] constexpr image_shape strided(const image_shape& s, int channels, int stride) {
  return {channels, (s.height + stride - 1) / stride, (s.width + stride - 1) / stride};
}

[[nodiscard]] inline feature_map image(operator_graph& g, const image_shape& s) { return {g.input("input", g.stored(s.elements())), s}; }

/// Adds a convolution with batch norm (two parameters per channel) and activation, in one layer.
feature_map conv_bn(operator_graph& g, std::string name, const feature_map& x, const convolution& c);

feature_map max_pool(operator_graph& g, std::string name, const feature_map& x, int stride);

feature_map residual_add(operator_graph& g, std::string name, const feature_map& a, const feature_map& b,
                         activation_kind activation = activation_kind::none);

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

/// MobileNetV2 has ReLU, EfficientNet SiLU.
[[nodiscard]] constexpr activation_kind activation_of(gating gate) {
  return gate == gating::squeeze_excite ? activation_kind::silu : activation_kind::relu;
}

/// Adds an MBConv block: 1x1 to expand * channels, depthwise, optional squeeze and excite (a quarter of the block's input channels),
/// 1x1 down, and a residual add if the shape stays the same.
feature_map inverted_residual(operator_graph& g, const std::string& prefix, const feature_map& x, const inverted_residual_stage& s,
                              int stride, gating gate);

// Blocks of a transformer, for `rows` tokens.

/// Returns the blocks one by one, each with its own window.
[[nodiscard]] std::vector<transformer> blocks_of(const transformer& t);

/// `more`: parameters besides its own.
tensor norm(operator_graph& g, std::string name, const transformer& t, tensor x, double rows, double more = 0);

/// Adds the products for scores and values; no weights. FLOP are those of the pairs that a token sees: flash attention skips what the mask
/// leaves out. It is fused, so the probabilities are not kept: the backward makes the scores again, 5 products after the forward's 2.
tensor attention(operator_graph& g, const transformer& t, tensor q, tensor k, tensor v, double rows);

tensor attention_branch(operator_graph& g, const transformer& t, tensor x, double rows);

/// States of an encoder that a decoder reads.
struct encoder_states {
  tensor states;
  double frames;
};

/// Keys and values of an encoder's states, for one block.
struct cross_keys {
  tensor k;
  tensor v;
  double frames;
};

/// Adds keys and values of an encoder's states, which are made once a request.
cross_keys keys_of(operator_graph& g, const transformer& t, const encoder_states& e);

/// Adds attention to an encoder's states.
///
/// Deviations  a step of generation reads them all, but counts a prompt's share of them for each token: for Whisper large a step of one
///             sequence is up to 14 % too short. That keys and values stay in memory is not counted.
tensor cross_attention_branch(operator_graph& g, const transformer& t, tensor x, double rows, const cross_keys& keys);

/// Adds a router and the matrices of all experts, a layer for each of gate, up and down. FLOP are those of the active ones.
tensor experts_branch(operator_graph& g, const transformer& t, tensor x, double rows);

/// Adds SiLU of the gate, which is kept, times `up`. Its backward has the gradients of the product, of both factors and of the gate.
tensor swiglu(operator_graph& g, const std::string& name, tensor gate, tensor up, double elements);

/// Adds gate, up, their product, and down, `wide` in between.
tensor gated_mlp(operator_graph& g, const std::string& prefix, const transformer& t, tensor x, double rows, double wide);

/// Adds the MLP, or the experts.
tensor mlp_branch(operator_graph& g, const transformer& t, tensor x, double rows);

/// Adds a block: two residual branches. The caller sets the scope of names. With tensor parallelism, partial sums are reduced after `o` and
/// after the last linear layer of the MLP. A column has whole key/value heads, with their queries.
tensor transformer_block(operator_graph& g, const transformer& t, tensor x, double rows, const std::optional<cross_keys>& keys = {});

/// Adds all blocks, named prefix + "l0." and so on.
tensor transformer_stack(operator_graph& g, const std::string& prefix, std::span<const transformer> blocks, tensor x, double rows,
                         const std::optional<encoder_states>& e = {});

/// Adds the embedding of token ids (4 bytes each), and of positions if they are learned.
tensor embed_tokens(operator_graph& g, const std::string& prefix, const language_model& m, int tokens);

/// Adds all blocks and the last norm. Returns the hidden states.
tensor hidden_states(operator_graph& g, const std::string& prefix, const language_model& m, std::span<const transformer> blocks, tensor x,
                     double rows, const std::optional<encoder_states>& e = {});

/// Adds the two convolutions of an encoder of sound.
tensor sound_features(operator_graph& g, double mel, double frames, double width);

/// Adds the encoder of sound, once a request, and a last norm.
encoder_states encode_sound(operator_graph& g, const std::string& prefix, const sound_encoder& s);

/// Adds the embedding of an image's patches and the position table.
tensor embed_patches(operator_graph& g, const image_patches& image, int hidden);

/// Adds the head. A decoder needs the logits of a prompt's last token only; a sample of training or inference has those of every token.
/// `group`: of the embedding table, if that is the head, too.
tensor language_head(operator_graph& g, const std::string& name, const language_model& m, tensor x, int tokens,
                     const std::string& group = "");

/// Adds what comes behind the hidden states: the head that the model has, and its pooler.
tensor model_head(operator_graph& g, const language_model& m, tensor x, double rows);

/// Throws invalid_input unless 1 <= tokens <= the model's context.
void check_tokens(const std::string& name, const language_model& m, int tokens);

/// Options of built-in models. Options without meaning for a model (tokens of a vision model, input of a language model) are ignored.
struct model_options {
  int tokens = 512;                       ///< per sample of a language model
  std::optional<image_shape> input = {};  ///< of a vision model; default: the size it was published with
  std::optional<precision> dtype = {};    ///< default: bf16 for language models, fp32 for vision models
  std::string weights = "";               ///< weight_format of a language model's matrices; default: as `dtype`
  double score_bytes = 0;                 ///< of a language model: moved for each pair and head where a runtime writes scores out, about 32
  int lora = 0;                           ///< of a language model: columns of the adapters, which alone learn; 0: all learns
  zoo::level level = level::operators;    ///< of a language model
  std::optional<weight_format> stored = {};  ///< in place of `weights`: a format without a name
};

/// Returns a language model as a planning graph.
///
/// With `lora`, all products of attention and MLP get adapters: q, k, v, o, gate, up, down (fc1, fc2), those of a shared expert, but
/// neither router nor experts. The other weights are frozen, so that gradients pass them and need none of their own; an adapter keeps its
/// input, and `bytes_per_parameter` is that of what learns.
///
/// @param blocks  each block; by default all are m.blocks.
/// @param sizes   bytes of the weights of each operator, in place of those of a format; marks the used ones.
/// @param family  with sizes: model_facts::weight_format.
/// Throws         invalid_input (tokens outside 1 to the context; an unknown weight format; sizes without an operator's, or of another
///                number of parameters).
planning_graph build_language_model(const std::string& name, const language_model& m, const model_options& o,
                                    std::span<const transformer> blocks = {}, weight_sizes* sizes = nullptr, std::string family = "");

// Qwen2.5-Omni-3B: audio and vision towers, the language model (thinker), the talker.

/// Media of a sample.
inline constexpr int omni_audio_frames = 1500;   ///< 30 s of sound
inline constexpr int omni_image_patches = 1024;  ///< 448 x 448 pixels, patches of 14 x 14

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

inline constexpr std::array<std::string_view, 6> other_models{"qwen-omni", "qwen-omni-frozen", "resnet50",
                                                              "resnet101", "efficientnet-b1",  "mobilenetv2"};

inline constexpr auto model_names = [] {
  std::array<std::string_view, language_models.size() + other_models.size()> names;
  std::size_t n = 0;
  for (const named_language_model& m : language_models) names[n++] = m.name;
  for (const std::string_view name : other_models) names[n++] = name;
  return names;
}();

}  // namespace detail

[[nodiscard]] inline std::span<const std::string_view> model_names() { return detail::model_names; }

/// True if a built-in model uses model_options::tokens and weights; other models use model_options::input.
[[nodiscard]] bool takes_tokens(std::string_view name);

/// Returns a built-in model as a planning graph at operator granularity.
///
/// Units        per sample; 1 MAC = 2 FLOP; norms, activations, adds and pooling count 0 FLOP.
/// Throws       invalid_input (unknown name or weight format; tokens or input outside the model's range).
/// Source       see the builder of each model; docs/reference/zoo.md has the numbers and the rules.
[[nodiscard]] planning_graph model(std::string_view name, const model_options& options = {});

}  // namespace hetplan::zoo

#ifndef HETPLAN_SEPARATE
#include <hetplan/zoo/models.ipp>
#endif
