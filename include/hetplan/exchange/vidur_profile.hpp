// SPDX-License-Identifier: BSL-1.0
#pragma once
/// vidur's measurements: the parts of a transformer layer by tokens, and collectives by bytes; service times from them.

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <hetplan/core/quantity.hpp>
#include <hetplan/serve/service_time.hpp>

namespace hetplan::exchange {

/// What an mlp.csv says of one model on one kind of GPU: everything in a layer that takes the same time for n tokens whatever requests they
/// belong to. **Attention itself is not in it**: that depends on the contexts, and vidur keeps it in another file.
struct vidur_compute {
  std::string file;                         ///< for messages
  int hidden = 0;                           ///< n_embd: numbers that a token has between layers
  std::map<int, serve::batch_curve> layer;  ///< degree of tensor parallelism -> seconds of one layer at numbers of tokens (as `batch`)
};

/// What an all_reduce.csv or send_recv.csv says.
struct vidur_network {
  std::string file;
  std::string collective;
  /// workers, how many of them a node has -> bytes -> seconds
  std::map<std::pair<int, int>, std::map<double, double>> times;
};

/// Reads compute times; the text must be decompressed (the files come as .csv.xz: xz -dk).
///
/// Sum         of the medians of input_layernorm, attn_pre_proj, attn_rope, attn_post_proj, post_attention_layernorm, mlp_up_proj, mlp_act,
///             mlp_down_proj and add; the norm after attention, which models without one lack, counts as 0. emb, which is not of a layer,
///             is not read. Several rows of one number of tokens and degree: their mean.
/// Units       ms.
/// Throws      invalid_input `FILE: line N: expected X, got Y`: a missing column, a number that is none, negative or not finite, a layer
///             that takes no time, rows of two models; `FILE: ...` for compressed data and a table without rows.
/// Source      Vidur (MLSys 2024), its repository: data/profiling/compute, entities/execution_time.py for what adds up to a layer.
[[nodiscard]] vidur_compute parse_vidur_compute(std::string_view text, const std::string& file);
[[nodiscard]] vidur_compute read_vidur_compute(const std::string& path);

/// Reads times of one collective, medians in ms, by bytes; several rows of one size: their mean. Throws as parse_vidur_compute; two
/// collectives in one file.
/// Source  Vidur (MLSys 2024), its repository: data/profiling/network.
[[nodiscard]] vidur_network parse_vidur_network(std::string_view text, const std::string& file);
[[nodiscard]] vidur_network read_vidur_network(const std::string& path);

/// A model as it is served.
struct vidur_setting {
  int layers = 1;
  int tensor_parallel = 1;
  int largest_batch = 1;
};

/// Service times of a model without attention: lower bounds on the real ones, near to them while contexts are short.
///
/// t(n)        layers x (one layer at n tokens + two all-reduces of n x hidden numbers of two bytes, if tensor_parallel > 1), linear
/// between
///             what was measured.
/// step(b)     t(b): one token for each of b; where noise lets it fall, the largest so far.
/// pass(b, x)  base + per_token x, whatever b: the line with the least squared relative error over all t(n). On vidur's A40 files it is off
///             by 6 to 9 % (root mean square), and by up to 37 % at single numbers of tokens, as small ones take the same time.
/// Left out    attention and its cache, embedding, head, sampling, what the CPU does, transfers between pipeline stages.
/// Throws      invalid_input: a number below 1, a degree that was not measured, a batch beyond the numbers of tokens, no time of 1 token,
///             tensor_parallel > 1 without all-reduces of so many workers in one node, or of too few bytes, a line that does not ascend
///             from above 0.
/// Source      Vidur (MLSys 2024), its repository: entities/execution_time.py. Deviations: a line in place of random forests, no attention,
///             no overhead of launching a collective.
[[nodiscard]] serve::variant_times vidur_times(const vidur_compute& compute, const vidur_setting& setting,
                                               const vidur_network* all_reduce = nullptr);

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/vidur_profile.ipp>
#endif
