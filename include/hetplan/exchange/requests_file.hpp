// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Request files: this library's own format, or a public trace of language-model requests, detected by content.

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

// Token traces: Azure, BurstGPT, Mooncake.

struct token_arrival {
  double at_s = 0;  ///< since the first request of the file
  std::uint32_t tokens_in = 0;
  std::uint32_t tokens_out = 1;
  std::uint32_t model = 0;  ///< index into token_trace::models

  friend bool operator==(const token_arrival&, const token_arrival&) = default;
};

/// Requests with their token counts, in order of arrival.
struct token_trace {
  std::string file;  ///< name in messages
  std::vector<token_arrival> arrivals;
  std::vector<std::string> models;  ///< in order of appearance; empty if the trace names none
  std::size_t skipped = 0;          ///< failed requests without output tokens, which are not among the arrivals
};

enum class trace_format { azure, burstgpt, mooncake };

/// Returns the trace format that a text begins like, if any.
[[nodiscard]] std::optional<trace_format> trace_format_of(std::string_view text);

/// Reads a trace in the format that it begins like.
///
/// azure       TIMESTAMP,ContextTokens,GeneratedTokens: `2023-11-16 18:17:03.9799600`, to the nanosecond, with a zone (`Z`, `+00:00`) or
///             without.
/// burstgpt    Timestamp (seconds), Model, `Request tokens`, `Response tokens`. Release 2.0 adds `Session ID` and `Elapsed time`, which
///             are ignored.
/// mooncake    a JSON object per line: timestamp (ms), input_length, output_length. hash_ids are ignored: prefixes are not cached.
///
/// Throws      invalid_input `FILE: line N: expected X, got Y`: another format, a missing column or key, a line with more or fewer fields,
///             a number that is malformed, negative or not finite, a time before the previous one; `FILE: ...` if no request is left. A
///             file cut within its last number goes unnoticed.
/// Source      Azure Public Dataset, AzureLLMInferenceDataset2023 (Splitwise, ISCA 2024); BurstGPT (KDD 2025), its repository's README;
///             Mooncake (FAST 2025), its repository's FAST25-release.
[[nodiscard]] token_trace parse_token_trace(std::string_view text, const std::string& file);

/// Reads the file of a trace. Throws what io::read_text and parse_token_trace throw.
[[nodiscard]] token_trace read_token_trace(const std::string& path);

struct replay_options {
  std::string service = "";  ///< service of all requests; "": the services named like the trace's models, else the only one that generates
  double time_scale = 1;     ///< factor on arrival times: 0.5 doubles the arrival rate
  std::optional<std::uint64_t> seed = {};  ///< draws the entry servers of requests; none: round robin
};

/// Turns a trace into requests to the services of an edge cloud, in the trace's order.
///
/// Throws  invalid_input: a service that is unknown or generates no tokens, several candidate services (named), a scale that is not
///         above 0 and finite, times beyond double, no server.
/// Source  EPARA, section 5.1, for token counts from Azure's trace. Entry servers are ours: EPARA takes arrivals from another trace, of
///         functions.
[[nodiscard]] serve::request_stream replay_trace(const token_trace& trace, const serve::edge_cloud& cloud,
                                                 const std::vector<serve::service>& services, const replay_options& options = {});

/// Returns the token counts of a trace's requests, for serve::request_process.
[[nodiscard]] std::vector<serve::request_length> lengths_of(const token_trace& trace);

struct requests_file {
  serve::request_stream requests;
  std::optional<trace_format> trace = {};  ///< none: the file itself names services and servers
  std::size_t skipped = 0;                 ///< failed requests of a trace
};

/// Reads requests (io::parse_requests) or a trace (parse_token_trace, replay_trace), whichever the text begins like; the options are for
/// traces. Throws what these functions throw.
[[nodiscard]] requests_file parse_requests_file(std::string_view text, const std::string& file, const serve::edge_cloud& cloud,
                                                const std::vector<serve::service>& services, const replay_options& options = {});
[[nodiscard]] requests_file read_requests_file(const std::string& path, const serve::edge_cloud& cloud,
                                               const std::vector<serve::service>& services, const replay_options& options = {});

}  // namespace hetplan::exchange

#ifndef HETPLAN_SEPARATE
#include <hetplan/exchange/requests_file.ipp>
#endif
