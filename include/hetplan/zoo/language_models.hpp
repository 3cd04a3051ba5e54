// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The built-in language models: their published numbers.

#include <string>

#include <hetplan/zoo/model_options.hpp>
#include <hetplan/zoo/transformer.hpp>

namespace hetplan::zoo {

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

}  // namespace hetplan::zoo
