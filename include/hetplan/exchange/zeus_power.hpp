// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Zeus' measurements: seconds of a training epoch and power, by batch size and power limit; service times from them.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/core/quantity.hpp>
#include <hetplan/serve/service_time.hpp>

namespace hetplan::exchange {

/// A row of summary_power_GPU.csv: one epoch of **training** on one GPU.
struct zeus_measurement {
  std::string dataset, network, optimizer;
  int batch = 1;
  watts power_limit;
  seconds epoch;
  watts average_power;
};

/// Reads a power trace; the kind of GPU is in the file's name alone.
///
/// Throws  invalid_input `FILE: line N: expected X, got Y`: a missing column, a number that is none, not above 0 or not finite; `FILE: ...`
///         for compressed data and a table without rows.
/// Source  Zeus (NSDI 2023), its repository's trace/README.md.
[[nodiscard]] std::vector<zeus_measurement> parse_zeus_power(std::string_view text, const std::string& file);
[[nodiscard]] std::vector<zeus_measurement> read_zeus_power(const std::string& path);

/// Which rows are meant, and what they leave open.
struct zeus_selection {
  std::string network;
  std::string dataset = "";    ///< "": the network has one alone
  std::string optimizer = "";  ///< "": likewise
  watts power_limit;
  double samples_per_epoch = 0;    ///< of the dataset; the files do not say
  double forward_share = 1.0 / 3;  ///< of a training iteration: forward 1, backward 2, the update for nothing
};

/// Times of inference, estimated from training: pass(b) = forward_share x epoch / iterations, with ceil(samples / b) iterations in an
/// epoch.
///
/// Batches below the smallest measured one take its time, which is too much; where noise lets times fall, the largest so far. An epoch's
/// time holds loading of data, too, so that small networks look slower than they are. No tokens, no steps.
/// Throws  invalid_input: no row that is meant, two of one batch size (both are named), samples_per_epoch below 1 or not finite,
///         a share outside (0, 1].
/// Source  Zeus (NSDI 2023) for the times; the share is ours, as for Piper's (piper_json.hpp).
[[nodiscard]] serve::variant_times zeus_times(std::span<const zeus_measurement> rows, const zeus_selection& meant);

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/zeus_power.ipp>
#endif
