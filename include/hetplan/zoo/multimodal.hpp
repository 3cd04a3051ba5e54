// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Qwen2.5-Omni-3B: audio and vision towers, the language model that they join, the talker that follows.

#include <string>

#include <hetplan/zoo/model_options.hpp>
#include <hetplan/zoo/transformer.hpp>

namespace hetplan::zoo {

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
inline tensor audio_tower(operator_graph& g, const std::string& prefix, int out) {
  constexpr transformer t{.layers = 32,
                          .hidden = 1280,
                          .heads = 20,
                          .kv_heads = 20,
                          .head_dim = 64,
                          .intermediate = 5120,
                          .norm = norm_kind::layer,
                          .mlp = mlp_kind::gelu,
                          .attention = attention_kind::encoder,
                          .qkv_bias = true,
                          .output_bias = true,
                          .mlp_bias = true};
  constexpr double frames = omni_audio_frames, mel = 128, d = t.hidden, first = 3 * mel * d, second = 3 * d * d;
  g.scope(prefix);
  tensor x = g.input("mel", g.stored(mel * 2 * frames));
  x = g.weighted("conv", "conv1d", x, first + second + 2 * d, 2 * (2 * frames) * first + 2 * frames * second, frames * d);
  x = transformer_stack(g, prefix, t, x, frames, [](int) { return 200.0; });
  return g.linear("proj", x, frames / 2, d, out, out);
}

/// Patches of 14 x 14 x 3 x 2 numbers, 32 blocks with attention in windows of 8 x 8 patches but over the whole
/// image in every eighth, then 2 x 2 patches merged by two linear layers. Source  transformers
/// Qwen2_5OmniVisionEncoderConfig; hidden size from a printout of the module (the class default is the output's).
inline tensor vision_tower(operator_graph& g, const std::string& prefix, int out) {
  constexpr transformer t{.layers = 32,
                          .hidden = 1280,
                          .heads = 16,
                          .kv_heads = 16,
                          .head_dim = 80,
                          .intermediate = 3420,
                          .attention = attention_kind::encoder,
                          .qkv_bias = true};
  constexpr double patches = omni_image_patches, numbers = 14 * 14 * 3 * 2, merged = 4.0 * t.hidden;
  g.scope(prefix);
  tensor x = g.linear("embed", g.input("patches", g.stored(patches * numbers)), patches, numbers, t.hidden);
  x = transformer_stack(g, prefix, t, x, patches, [](int block) { return block % 8 == 7 ? patches : 64.0; });
  x = g.linear("merge1", x, patches / 4, merged, merged, merged);
  return g.linear("merge2", x, patches / 4, merged, out, out);
}

/// Reads the text part's hidden states and the codec ids so far, one of each per position; gives codec logits.
inline tensor talker(operator_graph& g, const std::string& prefix, tensor thought, int tokens) {
  constexpr language_model m = omni_talker();
  constexpr double width = omni_text().blocks.hidden, d = m.blocks.hidden;
  const double rows = tokens;
  g.scope(prefix);
  const tensor codes = g.embedding("embed", g.input("codes", bytes(4 * rows)), m.vocabulary, rows, width);
  tensor x = g.weightless("join", "add", {thought, codes}, rows * width);
  x = hidden_states(g, prefix, m, g.linear("proj", x, rows, width, d, d), tokens);
  return g.linear("codec_head", x, rows, d, m.vocabulary);
}

/// Which parts of the model learn.
enum class omni_training { all, text_only };

/// The towers' outputs take the places of the media tokens in the language model, which runs on `tokens` positions in
/// all: 512 by default, as the agreed settings have it. With 750 audio and 256 image tokens beside 512 of text the
/// real sequence has 1518; say tokens = 1518 to plan that.
/// `text_only` freezes audio, vision and talker: no gradient enters the towers, the talker hands its own back.
inline planning_graph qwen_omni(const std::string& name, omni_training learns, const model_options& o) {
  constexpr language_model text = omni_text();
  check_tokens(name, text, o.tokens);
  const training others = learns == omni_training::all ? training::trainable : training::frozen;
  operator_graph g(name, o.dtype.value_or(precision::bf16), o.tokens);
  g.set(others);
  const tensor sound = audio_tower(g, "audio.", text.blocks.hidden);
  const tensor sight = vision_tower(g, "vision.", text.blocks.hidden);
  g.set(training::trainable);
  const tensor words = embed_tokens(g, "text.", text, o.tokens);
  const tensor x = g.weightless("join", "join", {sound, sight, words}, 1.0 * o.tokens * text.blocks.hidden);
  const tensor thought = hidden_states(g, "text.", text, x, o.tokens);
  language_head(g, "text.", text, thought, o.tokens);
  g.set(others);
  talker(g, "talker.", thought, o.tokens);
  return std::move(g).build();
}

}  // namespace hetplan::zoo
