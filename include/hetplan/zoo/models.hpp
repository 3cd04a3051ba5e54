// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The built-in models by name.

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <hetplan/core/error.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/zoo/operator_graph.hpp>

namespace hetplan::zoo {

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

#ifndef HETPLAN_COMPILED
#include <hetplan/zoo/models.ipp>
#endif
