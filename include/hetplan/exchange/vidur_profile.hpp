// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Measurements of vidur (parts of a transformer layer by tokens, collectives by bytes), and service times from them.

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <hetplan/core/quantity.hpp>
#include <hetplan/serve/service_time.hpp>

namespace hetplan::exchange {

/// The content of an mlp.csv for one model on one kind of GPU: the parts of a layer whose time depends on the number of tokens alone.
/// **Attention is not included**: its time depends on the contexts, and vidur keeps it in another file.
struct vidur_compute {
  std::string file;                         ///< name in messages
  int hidden = 0;                           ///< n_embd: hidden size
  std::map<int, serve::batch_curve> layer;  ///< by degree of tensor parallelism: seconds of one layer by number of tokens (as `batch`)
};

/// The content of an all_reduce.csv or send_recv.csv.
struct vidur_network {
  std::string file;
  std::string collective;
  /// Seconds by bytes, for each pair of workers and workers per node.
  std::map<std::pair<int, int>, std::map<double, double>> times;
};

/// Reads compute times from decompressed text (the files come as .csv.xz: xz -dk).
///
/// Sum         of the medians of input_layernorm, attn_pre_proj, attn_rope, attn_post_proj, post_attention_layernorm, mlp_up_proj, mlp_act,
///             mlp_down_proj and add. The norm after attention counts as 0 in models without one. emb belongs to no layer and is ignored.
///             Rows with the same number of tokens and degree are averaged.
/// Units       ms.
/// Throws      invalid_input `FILE: line N: expected X, got Y`: a missing column, a number that is malformed, negative or not finite, a
///             layer that takes no time, rows of two models; `FILE: ...` for compressed data and a table without rows.
/// Source      Vidur (MLSys 2024), its repository: data/profiling/compute, entities/execution_time.py for the parts of a layer.
[[nodiscard]] vidur_compute parse_vidur_compute(std::string_view text, const std::string& file);
[[nodiscard]] vidur_compute read_vidur_compute(const std::string& path);

/// Reads times of one collective: medians in ms, by bytes; rows of the same size are averaged. Throws as parse_vidur_compute, and for
/// two collectives in one file.
/// Source  Vidur (MLSys 2024), its repository: data/profiling/network.
[[nodiscard]] vidur_network parse_vidur_network(std::string_view text, const std::string& file);
[[nodiscard]] vidur_network read_vidur_network(const std::string& path);

/// Configuration of a served model.
struct vidur_setting {
  int layers = 1;
  int tensor_parallel = 1;
  int largest_batch = 1;
};

/// Returns the service times of a model without attention: lower bounds on the real ones, close to them for short contexts.
///
/// t(n)        layers x (one layer at n tokens + two all-reduces of n x hidden numbers of two bytes, if tensor_parallel > 1), linear
///             between measurements.
/// step(b)     t(b), one token for each of b, made non-decreasing by a running maximum against noise.
/// pass(b, x)  base + per_token x for every b: the line with the least squared relative error over all t(n). On vidur's A40 files it is off
///             by 6 to 9 % (root mean square), and by up to 37 % at single numbers of tokens, as small ones take the same time.
/// Left out    attention and its cache, embedding, head, sampling, CPU time, transfers between pipeline stages.
/// Throws      invalid_input: a number below 1, a degree that was not measured, a batch beyond the numbers of tokens, no time for 1 token,
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
