// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Measurements of Zeus (seconds of a training epoch and power, by batch size and power limit), and service times from them.

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

/// Reads a power trace. Only the file's name tells the kind of GPU.
///
/// Throws  invalid_input `FILE: line N: expected X, got Y`: a missing column, a number that is malformed, not above 0 or not finite;
///         `FILE: ...` for compressed data and a table without rows.
/// Source  Zeus (NSDI 2023), its repository's trace/README.md.
[[nodiscard]] std::vector<zeus_measurement> parse_zeus_power(std::string_view text, const std::string& file);
[[nodiscard]] std::vector<zeus_measurement> read_zeus_power(const std::string& path);

/// Selects rows of a trace and adds what the files do not tell.
struct zeus_selection {
  std::string network;
  std::string dataset = "";    ///< "": the only one of the network
  std::string optimizer = "";  ///< "": the only one of the network
  watts power_limit;
  double samples_per_epoch = 0;    ///< size of the dataset; not in the files
  double forward_share = 1.0 / 3;  ///< of a training iteration: forward 1, backward 2, update 0
};

/// Estimates inference times from training: pass(b) = forward_share x epoch / iterations, with ceil(samples / b) iterations per epoch.
///
/// Batches below the smallest measured one take its time, which is too much. A running maximum keeps times non-decreasing against noise. An
/// epoch includes data loading, so that small networks look slower than they are. There are no tokens and no steps.
/// Throws  invalid_input: no selected row, two of one batch size (both are named), samples_per_epoch below 1 or not finite, a share
///         outside (0, 1].
/// Source  Zeus (NSDI 2023) for the times; the share is ours, as for Piper's (piper_json.hpp).
[[nodiscard]] serve::variant_times zeus_times(std::span<const zeus_measurement> rows, const zeus_selection& meant);

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/zeus_power.ipp>
#endif
