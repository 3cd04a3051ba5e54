// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Published configurations of language models.

#include <array>
#include <optional>
#include <string_view>

#include <hetplan/graph/planning_graph.hpp>

namespace hetplan::zoo {

enum class norm_kind { rms, layer };  ///< `hidden` parameters, or twice as many (scale and shift)
enum class norm_place {
  before,
  after,
  around
};                                     ///< of attention and MLP: before, after their residual adds (BERT), before and after (Gemma)
enum class mlp_kind { gated, plain };  ///< gate, up, down; or fc1, fc2
/// Attention, then MLP; or both of the block's input and added up together, with a norm each (GPT-NeoX) or one for both (Phi-2).
enum class residual_kind { sequential, parallel, parallel_one_norm };
enum class head_kind {
  tokens,         ///< logits over the vocabulary
  masked_tokens,  ///< a product, GELU and a norm before them (BERT)
  classes,        ///< logits over language_model::classes from the first token, behind a pooler if `pooler`
  none            ///< hidden states, or what `pooler` makes of the first token's
};

/// Architecture of a stack of transformer blocks.
struct transformer {
  int layers;
  int hidden;
  int heads;
  int kv_heads;
  int head_dim;
  int intermediate;  ///< of one expert, if there are any
  norm_kind norm = norm_kind::rms;
  norm_place place = norm_place::before;
  mlp_kind mlp = mlp_kind::gated;
  attention_kind attention = attention_kind::causal;  ///< full: an encoder, which has no key/value cache
  bool qkv_bias = false;
  bool output_bias = false;
  bool mlp_bias = false;
  bool qk_norm = false;            ///< a norm over head_dim, counted with q and k
  bool composed_gelu = false;      ///< GELU out of elementwise operators, of which three keep their results besides (GPT-2)
  std::optional<int> window = {};  ///< tokens that a token sees at most, itself included
  int full_every = 0;              ///< the last of so many blocks has no window; 0: all have it
  int experts = 0;                 ///< gated MLPs among which a router chooses; 0: one MLP for all tokens
  int active_experts = 0;          ///< of each token
  residual_kind residual = residual_kind::sequential;
  bool key_bias = true;          ///< with qkv_bias: k has one, too (Whisper's has none)
  bool cross_attention = false;  ///< a second attention in each block, to the states of an encoder (Whisper)
  int shared_intermediate = 0;   ///< width of an MLP for all tokens beside the experts
  bool shared_gate = false;      ///< one product with a column decides how much of it counts (Qwen2-MoE)

  [[nodiscard]] constexpr double norm_parameters() const { return norm == norm_kind::rms ? hidden : 2.0 * hidden; }
  [[nodiscard]] constexpr bool decodes() const { return attention == attention_kind::causal; }
  [[nodiscard]] constexpr std::optional<int> window_of(int block) const {
    return full_every > 0 && block % full_every == full_every - 1 ? std::nullopt : window;
  }
  friend bool operator==(const transformer&, const transformer&) = default;
};

/// Patches of an image, and one more position for the class, in place of tokens (ViT).
struct image_patches {
  int side;  ///< of the square image, in pixels
  int patch;
  int channels = 3;

  [[nodiscard]] constexpr int positions() const { return (side / patch) * (side / patch) + 1; }
  friend bool operator==(const image_patches&, const image_patches&) = default;
};

/// Encoder of sound: two convolutions over mel bins, 3 wide, the second with stride 2, a position table, and blocks (Whisper).
struct sound_encoder {
  int mel;
  int frames;  ///< positions of the encoder, half of those of the sound
  transformer blocks;

  friend bool operator==(const sound_encoder&, const sound_encoder&) = default;
};

/// A transformer with an embedding and a head over a vocabulary.
struct language_model {
  transformer blocks;
  int vocabulary;
  int context;                     ///< most tokens per sample
  bool tied = true;                ///< true if the head is the embedding table
  bool learned_positions = false;  ///< true for a table of `context` rows, false for rotary positions without parameters
  int segments = 0;                ///< rows of the segment table, added with the positions (BERT)
  int more_positions = 0;          ///< further rows of the position table (OPT: 2)
  int embedding_width = 0;         ///< of the tables, if they are narrower: products make `hidden` of it and back (OPT-350M)
  bool embedding_norm = true;      ///< where norms come after: the embedding has one, too
  bool head_bias = false;
  head_kind head = head_kind::tokens;
  int classes = 0;
  bool pooler = false;  ///< a product of the first token's hidden states
  std::optional<image_patches> image = {};
  std::optional<sound_encoder> sound = {};

  friend bool operator==(const language_model&, const language_model&) = default;
};

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
                     .mlp = mlp_kind::plain,
                     .attention = attention_kind::full,
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
                     .mlp = mlp_kind::plain,
                     .qkv_bias = true,
                     .output_bias = true,
                     .mlp_bias = true,
                     .composed_gelu = true},
          .vocabulary = 50257,
          .context = 1024,
          .learned_positions = true};
}

/// A decoder with rotary positions, RMS norms and gated MLPs, as Llama and most since.
[[nodiscard]] constexpr language_model llama_like(const transformer& blocks, int vocabulary, int context, bool tied = false) {
  return {.blocks = blocks, .vocabulary = vocabulary, .context = context, .tied = tied};
}

/// Sources  torchtune model builders (llama2_7b, llama3_8b, llama3_70b, llama3_2_1b, llama3_2_3b); microsoft/vidur model_config.py agrees
///          where it has the model.
inline constexpr language_model llama2_7b =
    llama_like({.layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 32, .head_dim = 128, .intermediate = 11008}, 32000, 4096);
inline constexpr language_model llama3_8b =
    llama_like({.layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8, .head_dim = 128, .intermediate = 14336}, 128256, 8192);
inline constexpr language_model llama3_70b =
    llama_like({.layers = 80, .hidden = 8192, .heads = 64, .kv_heads = 8, .head_dim = 128, .intermediate = 28672}, 128256, 8192);
inline constexpr language_model llama3_2_1b =
    llama_like({.layers = 16, .hidden = 2048, .heads = 32, .kv_heads = 8, .head_dim = 64, .intermediate = 8192}, 128256, 131072, true);
inline constexpr language_model llama3_2_3b =
    llama_like({.layers = 28, .hidden = 3072, .heads = 24, .kv_heads = 8, .head_dim = 128, .intermediate = 8192}, 128256, 131072, true);

/// Llama 3.1 and 3.3: as Llama 3, for a longer context.  Sources  config.json of meta-llama/Llama-3.1-8B, -70B, Llama-3.3-70B-Instruct.
inline constexpr language_model llama3_1_8b = llama_like(llama3_8b.blocks, 128256, 131072);
inline constexpr language_model llama3_1_70b = llama_like(llama3_70b.blocks, 128256, 131072);

/// Source  Lightning-AI/litgpt config.py (tiny-llama-1.1b).
inline constexpr language_model tinyllama =
    llama_like({.layers = 22, .hidden = 2048, .heads = 32, .kv_heads = 4, .head_dim = 64, .intermediate = 5632}, 32000, 2048);

/// Source  Lightning-AI/litgpt config.py (Mistral-7B-v0.3, which has no window).
inline constexpr language_model mistral_7b =
    llama_like({.layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8, .head_dim = 128, .intermediate = 14336}, 32768, 32768);

/// Source  config.json of mistralai/Mixtral-8x7B-v0.1.
inline constexpr language_model mixtral_8x7b = llama_like(
    {.layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8, .head_dim = 128, .intermediate = 14336, .experts = 8, .active_experts = 2},
    32000, 32768);

/// Source  config.json of mistralai/Mixtral-8x22B-v0.1.
inline constexpr language_model mixtral_8x22b = llama_like(
    {.layers = 56, .hidden = 6144, .heads = 48, .kv_heads = 8, .head_dim = 128, .intermediate = 16384, .experts = 8, .active_experts = 2},
    32000, 65536);

/// Source  config.json of Qwen/Qwen2.5-...-Instruct.
[[nodiscard]] constexpr language_model qwen2_5(int layers, int hidden, int heads, int kv_heads, int intermediate, int vocabulary,
                                               bool tied) {
  return llama_like({.layers = layers,
                     .hidden = hidden,
                     .heads = heads,
                     .kv_heads = kv_heads,
                     .head_dim = hidden / heads,
                     .intermediate = intermediate,
                     .qkv_bias = true},
                    vocabulary, 32768, tied);
}

/// Source  torchtune model builders (qwen3_0_6b_instruct, qwen3_1_7b_instruct, qwen3_4b_instruct, qwen3_8b_instruct); config.json of
///         Qwen/Qwen3-14B, Qwen3-32B.
[[nodiscard]] constexpr language_model qwen3(int layers, int hidden, int heads, int intermediate, bool tied) {
  return llama_like(
      {.layers = layers, .hidden = hidden, .heads = heads, .kv_heads = 8, .head_dim = 128, .intermediate = intermediate, .qk_norm = true},
      151936, 40960, tied);
}

/// Source  config.json of Qwen/Qwen3-30B-A3B.
inline constexpr language_model qwen3_30b_a3b = llama_like({.layers = 48,
                                                            .hidden = 2048,
                                                            .heads = 32,
                                                            .kv_heads = 4,
                                                            .head_dim = 128,
                                                            .intermediate = 768,
                                                            .qk_norm = true,
                                                            .experts = 128,
                                                            .active_experts = 8},
                                                           151936, 40960);

/// Source  config.json of Qwen/Qwen3-235B-A22B.
inline constexpr language_model qwen3_235b_a22b = llama_like({.layers = 94,
                                                              .hidden = 4096,
                                                              .heads = 64,
                                                              .kv_heads = 4,
                                                              .head_dim = 128,
                                                              .intermediate = 1536,
                                                              .qk_norm = true,
                                                              .experts = 128,
                                                              .active_experts = 8},
                                                             151936, 40960);

/// Source  config.json of microsoft/phi-4.
inline constexpr language_model phi4 =
    llama_like({.layers = 40, .hidden = 5120, .heads = 40, .kv_heads = 10, .head_dim = 128, .intermediate = 17920}, 100352, 16384);

/// Source  config.json of microsoft/Phi-4-mini-instruct.
inline constexpr language_model phi4_mini =
    llama_like({.layers = 32, .hidden = 3072, .heads = 24, .kv_heads = 8, .head_dim = 128, .intermediate = 8192}, 200064, 131072, true);

/// Five blocks of six have a window. Without the vision tower.
/// Source      config.json of google/gemma-3-1b-it, -4b-it, -12b-it, -27b-it (text part).
/// Deviations  The gate's GELU counts as any activation.
[[nodiscard]] constexpr language_model gemma3(int layers, int hidden, int heads, int kv_heads, int head_dim, int intermediate,
                                              int window = 1024, int vocabulary = 262208, int context = 131072) {
  return llama_like({.layers = layers,
                     .hidden = hidden,
                     .heads = heads,
                     .kv_heads = kv_heads,
                     .head_dim = head_dim,
                     .intermediate = intermediate,
                     .place = norm_place::around,
                     .qk_norm = true,
                     .window = window,
                     .full_every = 6},
                    vocabulary, context, true);
}

struct named_language_model {
  std::string_view name;
  language_model model;
};

inline constexpr std::array language_models{named_language_model{"bert-base", bert(12, 768)},
                                            named_language_model{"bert-small", bert(4, 512)},
                                            named_language_model{"gpt2", gpt2()},
                                            named_language_model{"tinyllama-1.1b", tinyllama},
                                            named_language_model{"llama2-7b", llama2_7b},
                                            named_language_model{"llama3-8b", llama3_8b},
                                            named_language_model{"llama3-70b", llama3_70b},
                                            named_language_model{"llama3.1-8b", llama3_1_8b},
                                            named_language_model{"llama3.1-70b", llama3_1_70b},
                                            named_language_model{"llama3.2-1b", llama3_2_1b},
                                            named_language_model{"llama3.2-3b", llama3_2_3b},
                                            named_language_model{"llama3.3-70b", llama3_1_70b},
                                            named_language_model{"mistral-7b", mistral_7b},
                                            named_language_model{"mixtral-8x7b", mixtral_8x7b},
                                            named_language_model{"mixtral-8x22b", mixtral_8x22b},
                                            named_language_model{"qwen2.5-0.5b", qwen2_5(24, 896, 14, 2, 4864, 151936, true)},
                                            named_language_model{"qwen2.5-1.5b", qwen2_5(28, 1536, 12, 2, 8960, 151936, true)},
                                            named_language_model{"qwen2.5-3b", qwen2_5(36, 2048, 16, 2, 11008, 151936, true)},
                                            named_language_model{"qwen2.5-7b", qwen2_5(28, 3584, 28, 4, 18944, 152064, false)},
                                            named_language_model{"qwen2.5-14b", qwen2_5(48, 5120, 40, 8, 13824, 152064, false)},
                                            named_language_model{"qwen2.5-32b", qwen2_5(64, 5120, 40, 8, 27648, 152064, false)},
                                            named_language_model{"qwen2.5-72b", qwen2_5(80, 8192, 64, 8, 29568, 152064, false)},
                                            named_language_model{"qwen3-0.6b", qwen3(28, 1024, 16, 3072, true)},
                                            named_language_model{"qwen3-1.7b", qwen3(28, 2048, 16, 6144, true)},
                                            named_language_model{"qwen3-4b", qwen3(36, 2560, 32, 9728, true)},
                                            named_language_model{"qwen3-8b", qwen3(36, 4096, 32, 12288, false)},
                                            named_language_model{"qwen3-14b", qwen3(40, 5120, 40, 17408, false)},
                                            named_language_model{"qwen3-32b", qwen3(64, 5120, 64, 25600, false)},
                                            named_language_model{"qwen3-30b-a3b", qwen3_30b_a3b},
                                            named_language_model{"qwen3-235b-a22b", qwen3_235b_a22b},
                                            named_language_model{"phi4", phi4},
                                            named_language_model{"phi4-mini", phi4_mini},
                                            named_language_model{"gemma3-1b", gemma3(26, 1152, 4, 1, 256, 6912, 512, 262144, 32768)},
                                            named_language_model{"gemma3-4b", gemma3(34, 2560, 8, 4, 256, 10240)},
                                            named_language_model{"gemma3-12b", gemma3(48, 3840, 16, 8, 256, 15360)},
                                            named_language_model{"gemma3-27b", gemma3(62, 5376, 32, 16, 128, 21504)}};

/// The text part ("thinker") of Qwen2.5-Omni-3B. Source  published configuration as quoted by Tyr (qwen25omni_3B); layers, heads, widths
/// equal torchtune's qwen2_5_3b.
[[nodiscard]] constexpr language_model omni_text() {
  return {.blocks = {.layers = 36, .hidden = 2048, .heads = 16, .kv_heads = 2, .head_dim = 128, .intermediate = 11008, .qkv_bias = true},
          .vocabulary = 151936,
          .context = 32768};
}

/// Its speech decoder. Source  nntrainer's talker_converter.py for Qwen2.5-Omni-3B, which reads these numbers from the checkpoint; as a
/// third party's numbers they are an estimate. Its codec embedding has the text part's width (2048).
[[nodiscard]] constexpr language_model omni_talker() {
  return {.blocks = {.layers = 24, .hidden = 896, .heads = 14, .kv_heads = 2, .head_dim = 64, .intermediate = 4864, .qkv_bias = true},
          .vocabulary = 8448,
          .context = 32768,
          .tied = false};
}

}  // namespace hetplan::zoo
