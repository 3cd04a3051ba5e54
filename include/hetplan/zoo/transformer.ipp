// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/zoo/transformer.hpp>

#include <algorithm>

namespace hetplan::zoo {

HETPLAN_INLINE tensor norm(operator_graph& g, std::string name, const transformer& t, tensor x, double rows) {
  return g.weighted(std::move(name), "norm", x, t.norm_parameters(), 0, rows * t.hidden, {layer_split::none});
}

HETPLAN_INLINE tensor attention(operator_graph& g, const transformer& t, tensor q, tensor k, tensor v, double rows, double span) {
  const double width = 1.0 * t.heads * t.head_dim;
  const double forward = 4 * rows * std::min(span, rows) * width;
  const bool cached = t.attention == attention_kind::causal;
  return g.add({.name = "attn",
                .kind = "attention",
                .forward_flops = flops(forward),
                .backward_input_flops = flops(2 * forward),
                .kv_bytes_per_token = cached ? g.stored(2.0 * t.kv_heads * t.head_dim) : bytes{},
                .split = layer_split::along,
                .split_units = t.kv_heads},
               {q, k, v}, g.stored(rows * width));
}

HETPLAN_INLINE tensor attention_branch(operator_graph& g, const transformer& t, tensor x, double rows, double span) {
  const double d = t.hidden, q_width = 1.0 * t.heads * t.head_dim, kv_width = 1.0 * t.kv_heads * t.head_dim;
  const double bias = t.qkv_bias ? 1 : 0, head_norm = t.qk_norm ? t.head_dim : 0;
  const shared_tensors heads{layer_split::columns, t.kv_heads};
  const tensor q = g.linear("q", x, rows, d, q_width, bias * q_width + head_norm, heads);
  const tensor k = g.linear("k", x, rows, d, kv_width, bias * kv_width + head_norm, heads);
  const tensor v = g.linear("v", x, rows, d, kv_width, bias * kv_width, heads);
  return g.linear("o", attention(g, t, q, k, v, rows, span), rows, q_width, d, t.output_bias ? d : 0, {layer_split::rows, t.kv_heads});
}

HETPLAN_INLINE tensor mlp_branch(operator_graph& g, const transformer& t, tensor x, double rows) {
  const double d = t.hidden, wide = t.intermediate;
  const double wide_bias = t.mlp_bias ? wide : 0, bias = t.mlp_bias ? d : 0;
  const shared_tensors columns{layer_split::columns}, along{layer_split::along}, summed{layer_split::rows};
  if (t.mlp == mlp_kind::gelu) {
    const tensor a = g.weightless("act", "gelu", {g.linear("fc1", x, rows, d, wide, wide_bias, columns)}, rows * wide, along);
    return g.linear("fc2", a, rows, wide, d, bias, summed);
  }
  const tensor gate = g.linear("gate", x, rows, d, wide, wide_bias, columns);
  const tensor up = g.linear("up", x, rows, d, wide, wide_bias, columns);
  return g.linear("down", g.weightless("act", "swiglu", {gate, up}, rows * wide, along), rows, wide, d, bias, summed);
}

HETPLAN_INLINE tensor transformer_block(operator_graph& g, const transformer& t, tensor x, double rows, double span) {
  const bool before = t.place == norm_place::before;
  const double size = rows * t.hidden;
  const tensor o = attention_branch(g, t, before ? norm(g, "norm1", t, x, rows) : x, rows, span);
  tensor y = g.weightless("add1", "add", {x, o}, size);
  if (!before) y = norm(g, "norm1", t, y, rows);
  const tensor m = mlp_branch(g, t, before ? norm(g, "norm2", t, y, rows) : y, rows);
  y = g.weightless("add2", "add", {y, m}, size);
  return before ? y : norm(g, "norm2", t, y, rows);
}

HETPLAN_INLINE tensor embed_tokens(operator_graph& g, const std::string& prefix, const language_model& m, int tokens) {
  g.scope(prefix);
  const transformer& t = m.blocks;
  const tensor ids = g.input("tokens", bytes(4.0 * tokens));
  tensor x = g.embedding("embed", ids, m.vocabulary, tokens, t.hidden, m.tied ? prefix + "embed" : "");
  // A layer of its own: it is not part of the tensor that the head shares.
  if (m.learned_positions) x = g.embedding("positions", x, m.context + m.segments, tokens, t.hidden);
  if (t.place == norm_place::after) x = norm(g, "embed_norm", t, x, tokens);
  return x;
}

HETPLAN_INLINE tensor hidden_states(operator_graph& g, const std::string& prefix, const language_model& m, tensor x, int tokens) {
  x = transformer_stack(g, prefix, m.blocks, x, tokens, [&](int) { return 1.0 * tokens; });
  return m.blocks.place == norm_place::before ? norm(g, "norm", m.blocks, x, tokens) : x;
}

HETPLAN_INLINE tensor language_head(operator_graph& g, const std::string& prefix, const language_model& m, tensor x, int tokens) {
  const double in = m.blocks.hidden, out = m.vocabulary, rows = tokens;
  g.scope(prefix);
  return g.add({.name = "lm_head",
                .kind = "linear",
                .forward_flops = flops(2 * rows * in * out),
                .weight = g.stored(in * out),
                .weight_group = m.tied ? prefix + "embed" : "",
                .split = layer_split::columns},
               {x}, g.stored(rows * out));
}

HETPLAN_INLINE void check_tokens(const std::string& name, const language_model& m, int tokens) {
  if (tokens >= 1 && tokens <= m.context) return;
  throw invalid_input("zoo::model: \"" + name + "\": tokens = " + std::to_string(tokens) + "; expected 1 to " + std::to_string(m.context));
}

}  // namespace hetplan::zoo
