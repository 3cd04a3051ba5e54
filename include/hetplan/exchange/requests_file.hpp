// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Requests from a file: ours, or another project's trace, whichever it is.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/core/version.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/request_process.hpp>

namespace hetplan::exchange {

// Requests to language models that others recorded: Azure's, BurstGPT's and Mooncake's traces.

struct token_arrival {
  double at_s = 0;  ///< since the first request of the file
  std::uint32_t tokens_in = 0;
  std::uint32_t tokens_out = 1;
  std::uint32_t model = 0;  ///< its number among those that the trace names

  friend bool operator==(const token_arrival&, const token_arrival&) = default;
};

/// Requests with their numbers of tokens, in order of arrival.
struct token_trace {
  std::string file;  ///< for messages
  std::vector<token_arrival> arrivals;
  std::vector<std::string> models;  ///< in order of appearance; empty where the trace names none
  std::size_t skipped = 0;          ///< requests that failed, with no token out: they are not among the arrivals
};

enum class trace_format { azure, burstgpt, mooncake };

/// The format that a text begins like; none of them where it is none.
[[nodiscard]] std::optional<trace_format> trace_format_of(std::string_view text);

/// Reads a trace in the format that it begins like.
///
/// azure       TIMESTAMP,ContextTokens,GeneratedTokens: `2023-11-16 18:17:03.9799600`, to the nanosecond, with a zone (`Z`, `+00:00`) or
///             without.
/// burstgpt    Timestamp (seconds), Model, `Request tokens`, `Response tokens`; since release 2.0 there are `Session ID` and `Elapsed
/// time`,
///             which are let be.
/// mooncake    a JSON object in each line: timestamp (ms), input_length, output_length; hash_ids are let be: no prefix is cached here.
///
/// Throws      invalid_input `FILE: line N: expected X, got Y`: another format, a missing column or key, a line with more or fewer fields,
/// a
///             number that is none, negative or not finite, a time before that of the line before; `FILE: ...` where no request is left. A
///             file that was cut within its last number cannot be told from a whole one.
/// Source      Azure Public Dataset, AzureLLMInferenceDataset2023 (Splitwise, ISCA 2024); BurstGPT (KDD 2025), its repository's README;
///             Mooncake (FAST 2025), its repository's FAST25-release.
[[nodiscard]] token_trace parse_token_trace(std::string_view text, const std::string& file);

/// Reads a trace's file. Throws what io::read_text and parse_token_trace throw.
[[nodiscard]] token_trace read_token_trace(const std::string& path);

// A recorded trace as requests to the services of an edge cloud.

struct replay_options {
  std::string service = "";  ///< that all are for; "": those called like the trace's models, or else the only one that generates
  double time_scale = 1;     ///< times arrivals: 0.5 plays twice as many a second
  std::optional<std::uint64_t> seed = {};  ///< draws the servers where requests enter; none: one after the other
};

/// The trace's requests, in its order.
///
/// Throws  invalid_input: a service that is not there or generates no tokens, services that may all be meant (named), a scale that is not
///         above 0 and finite, times beyond double, no server.
/// Source  EPARA, section 5.1, for numbers of tokens from Azure's trace. Dealing out its requests to servers is ours: EPARA's arrive as
///         another trace, of functions, has them.
[[nodiscard]] serve::request_stream replay_trace(const token_trace& trace, const serve::edge_cloud& cloud,
                                                 const std::vector<serve::service>& services, const replay_options& options = {});

/// What its requests ask for, for serve::request_process.
[[nodiscard]] std::vector<serve::request_length> lengths_of(const token_trace& trace);

struct requests_file {
  serve::request_stream requests;
  std::optional<trace_format> trace = {};  ///< none: the file says services and servers itself
  std::size_t skipped = 0;                 ///< of a trace: requests that failed
};

/// Reads requests (io::parse_requests) or a trace (parse_token_trace, replay_trace) by how the text begins; the options are for traces.
///
/// Throws  what these throw.
[[nodiscard]] requests_file parse_requests_file(std::string_view text, const std::string& file, const serve::edge_cloud& cloud,
                                                const std::vector<serve::service>& services, const replay_options& options = {});
[[nodiscard]] requests_file read_requests_file(const std::string& path, const serve::edge_cloud& cloud,
                                               const std::vector<serve::service>& services, const replay_options& options = {});

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/requests_file.ipp>
#endif
