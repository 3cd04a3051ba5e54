// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Transformer blocks, language models and towers from their architecture numbers.

#include <algorithm>
#include <string>

#include <hetplan/zoo/operator_graph.hpp>

namespace hetplan::zoo {

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

inline tensor norm(operator_graph& g, std::string name, const transformer& t, tensor x, double rows) {
  return g.weighted(std::move(name), "norm", x, t.norm_parameters(), 0, rows * t.hidden);
}

/// Scores and values over `rows` queries that see `span` keys each; no weights. Fused (flash) attention: the
/// probabilities are not kept. Both operands of both products need gradients, hence backward = 2 forward.
inline tensor attention(operator_graph& g, const transformer& t, tensor q, tensor k, tensor v, double rows, double span) {
  const double width = 1.0 * t.heads * t.head_dim;
  const double forward = 4 * rows * std::min(span, rows) * width;
  const bool cached = t.attention == attention_kind::causal;
  return g.add({.name = "attn",
                .kind = "attention",
                .forward_flops = flops(forward),
                .backward_input_flops = flops(2 * forward),
                .kv_bytes_per_token = cached ? g.stored(2.0 * t.kv_heads * t.head_dim) : bytes{}},
               {q, k, v}, g.stored(rows * width));
}

inline tensor attention_branch(operator_graph& g, const transformer& t, tensor x, double rows, double span) {
  const double d = t.hidden, q_width = 1.0 * t.heads * t.head_dim, kv_width = 1.0 * t.kv_heads * t.head_dim;
  const double bias = t.qkv_bias ? 1 : 0, head_norm = t.qk_norm ? t.head_dim : 0;
  const tensor q = g.linear("q", x, rows, d, q_width, bias * q_width + head_norm);
  const tensor k = g.linear("k", x, rows, d, kv_width, bias * kv_width + head_norm);
  const tensor v = g.linear("v", x, rows, d, kv_width, bias * kv_width);
  return g.linear("o", attention(g, t, q, k, v, rows, span), rows, q_width, d, t.output_bias ? d : 0);
}

inline tensor mlp_branch(operator_graph& g, const transformer& t, tensor x, double rows) {
  const double d = t.hidden, wide = t.intermediate;
  const double wide_bias = t.mlp_bias ? wide : 0, bias = t.mlp_bias ? d : 0;
  if (t.mlp == mlp_kind::gelu) {
    const tensor a = g.weightless("act", "gelu", {g.linear("fc1", x, rows, d, wide, wide_bias)}, rows * wide);
    return g.linear("fc2", a, rows, wide, d, bias);
  }
  const tensor gate = g.linear("gate", x, rows, d, wide, wide_bias);
  const tensor up = g.linear("up", x, rows, d, wide, wide_bias);
  return g.linear("down", g.weightless("act", "swiglu", {gate, up}, rows * wide), rows, wide, d, bias);
}

/// One block: two residual branches. The caller sets the scope of its names.
inline tensor transformer_block(operator_graph& g, const transformer& t, tensor x, double rows, double span) {
  const bool before = t.place == norm_place::before;
  const double size = rows * t.hidden;
  const tensor o = attention_branch(g, t, before ? norm(g, "norm1", t, x, rows) : x, rows, span);
  tensor y = g.weightless("add1", "add", {x, o}, size);
  if (!before) y = norm(g, "norm1", t, y, rows);
  const tensor m = mlp_branch(g, t, before ? norm(g, "norm2", t, y, rows) : y, rows);
  y = g.weightless("add2", "add", {y, m}, size);
  return before ? y : norm(g, "norm2", t, y, rows);
}

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
inline tensor embed_tokens(operator_graph& g, const std::string& prefix, const language_model& m, int tokens) {
  g.scope(prefix);
  const transformer& t = m.blocks;
  const tensor ids = g.input("tokens", bytes(4.0 * tokens));
  tensor x = g.embedding("embed", ids, m.vocabulary, tokens, t.hidden, m.tied ? prefix + "embed" : "");
  // A layer of its own: it is not part of the tensor that the head shares.
  if (m.learned_positions) x = g.embedding("positions", x, m.context + m.segments, tokens, t.hidden);
  if (t.place == norm_place::after) x = norm(g, "embed_norm", t, x, tokens);
  return x;
}

/// All blocks and the last norm: the hidden states.
inline tensor hidden_states(operator_graph& g, const std::string& prefix, const language_model& m, tensor x, int tokens) {
  x = transformer_stack(g, prefix, m.blocks, x, tokens, [&](int) { return 1.0 * tokens; });
  return m.blocks.place == norm_place::before ? norm(g, "norm", m.blocks, x, tokens) : x;
}

/// Logits of every position.
inline tensor language_head(operator_graph& g, const std::string& prefix, const language_model& m, tensor x, int tokens) {
  const double in = m.blocks.hidden, out = m.vocabulary, rows = tokens;
  g.scope(prefix);
  return g.add({.name = "lm_head",
                .kind = "linear",
                .forward_flops = flops(2 * rows * in * out),
                .weight = g.stored(in * out),
                .weight_group = m.tied ? prefix + "embed" : ""},
               {x}, g.stored(rows * out));
}

/// Throws invalid_input unless 1 <= tokens <= the model's context.
inline void check_tokens(const std::string& name, const language_model& m, int tokens) {
  if (tokens >= 1 && tokens <= m.context) return;
  throw invalid_input("zoo::model: \"" + name + "\": tokens = " + std::to_string(tokens) + "; expected 1 to " + std::to_string(m.context));
}

}  // namespace hetplan::zoo
