// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Transformer blocks, language models and towers from their architecture numbers.

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

}  // namespace hetplan::zoo

#ifndef HETPLAN_COMPILED
#include <hetplan/zoo/transformer.ipp>
#endif
