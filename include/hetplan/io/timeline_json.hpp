// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Timeline files, hetplan/timeline/1, and the bandwidth traces that they name.

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/adapt/adaptation_policy.hpp>
#include <hetplan/adapt/timeline.hpp>
#include <hetplan/io/json_document.hpp>

namespace hetplan::io {

/// Reads a bandwidth trace from the text of `file`: lines with seconds and Mbit/s, separated by blanks or tabs. Empty lines are skipped.
///
/// Throws  invalid_input `FILE: line N: expected X, got Y`: not two columns, no finite number >= 0, a time not after the previous
///         one; `FILE: ...` if there is no line.
/// Source  docs/reference/files.md, hetplan/timeline/1; the format of the traces in ../shared/data/bandwidth.
[[nodiscard]] adapt::bandwidth_trace parse_bandwidth_trace(std::string_view text, const std::string& file);

/// Reads a trace file. Throws what read_text and parse_bandwidth_trace throw.
[[nodiscard]] adapt::bandwidth_trace read_bandwidth_trace(const std::string& path);

/// History of one policy on a timeline. All rows of a comparison share timeline, job and cluster.
struct policy_history {
  std::string policy;
  adapt::history history;
};

inline constexpr std::string_view timeline_format = "hetplan/timeline/1";

/// Most events of all traces of a timeline together.
inline constexpr std::size_t max_timeline_events = adapt::max_trace_events;

namespace keys {
inline constexpr std::array<std::string_view, 4> timeline{"format", "duration", "events", "traces"};
inline constexpr std::array<std::string_view, 9> event{"at",     "resource", "capacity", "device", "speed",
                                                       "leaves", "joins",    "transfer", "qoe"};
inline constexpr std::array<std::string_view, 4> foreign_transfer{"from", "to", "bytes", "priority"};
inline constexpr std::array<std::string_view, 2> qoe_target{"latency", "deadline"};
inline constexpr std::array<std::string_view, 4> bandwidth_trace{"resource", "file", "repeat", "mean"};
}  // namespace keys

/// Reads a timeline file for a cluster, with the traces that it names: one list of events in time order.
///
/// At equal times, events of traces come first, in the order of the traces, then the file's own in their order. An outage at the time of a
/// trace's step therefore wins; the trace's next step ends it.
///
/// @param folder  folder of the trace files; empty: that of the timeline file.
/// Throws         invalid_input `FILE: /pointer: expected X, got Y` for what docs/reference/files.md calls bad input; errors in a trace
///                file are reported at the `file` that names it.
[[nodiscard]] adapt::timeline read_timeline(const json_document& d, const cluster& c, const std::filesystem::path& folder = {});

/// Returns the paths of the trace files named by a valid timeline file.
[[nodiscard]] std::vector<std::string> trace_files(const json_document& d, const std::filesystem::path& folder = {});

/// Returns the file of a valid timeline, with its traces as events; reading it gives the identical timeline.
[[nodiscard]] std::string write_timeline(const adapt::timeline& t, const cluster& c);

}  // namespace hetplan::io

#ifndef HETPLAN_SEPARATE
#include <hetplan/io/timeline_json.ipp>
#endif
