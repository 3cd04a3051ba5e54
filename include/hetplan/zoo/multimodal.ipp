// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/zoo/multimodal.hpp>

#include <optional>
#include <utility>

namespace hetplan::zoo {

HETPLAN_INLINE tensor audio_tower(operator_graph& g, const std::string& prefix, int out) {
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

HETPLAN_INLINE tensor vision_tower(operator_graph& g, const std::string& prefix, int out) {
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

HETPLAN_INLINE tensor talker(operator_graph& g, const std::string& prefix, tensor thought, int tokens) {
  constexpr language_model m = omni_talker();
  constexpr double width = omni_text().blocks.hidden, d = m.blocks.hidden;
  const double rows = tokens;
  g.scope(prefix);
  const tensor codes = g.embedding("embed", g.input("codes", bytes(4 * rows)), m.vocabulary, rows, width);
  tensor x = g.weightless("join", "add", {thought, codes}, rows * width);
  x = hidden_states(g, prefix, m, g.linear("proj", x, rows, width, d, d), tokens);
  return g.linear("codec_head", x, rows, d, m.vocabulary, 0, {layer_split::columns});
}

HETPLAN_INLINE planning_graph qwen_omni(const std::string& name, omni_training learns, const model_options& o) {
  constexpr language_model text = omni_text();
  check_tokens(name, text, o.tokens);
  const training others = learns == omni_training::all ? training::trainable : training::frozen;
  operator_graph g(name, o.dtype.value_or(precision::bf16), o.tokens);
  g.set(others);
  std::optional<std::pair<tensor, tensor>> media;  // a step of generation finds them in the caches
  if (o.tokens > 1) media = std::pair{audio_tower(g, "audio.", text.blocks.hidden), vision_tower(g, "vision.", text.blocks.hidden)};
  g.set(training::trainable);
  const tensor words = embed_tokens(g, "text.", text, o.tokens);
  const tensor x = media ? g.weightless("join", "join", {media->first, media->second, words}, 1.0 * o.tokens * text.blocks.hidden) : words;
  const tensor thought = hidden_states(g, "text.", text, x, o.tokens);
  language_head(g, "text.", text, thought, o.tokens);
  g.set(others);
  talker(g, "talker.", thought, o.tokens);
  return std::move(g).build();
}

}  // namespace hetplan::zoo
