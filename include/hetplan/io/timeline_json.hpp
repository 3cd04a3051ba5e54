// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Timelines as files: hetplan/timeline/1, with the bandwidth traces that they name.

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/adapt/adaptation_policy.hpp>
#include <hetplan/adapt/timeline.hpp>
#include <hetplan/io/json_document.hpp>

namespace hetplan::io {

// Bandwidth traces as text: `seconds Mbit/s` per line.

/// Reads a trace from text: two columns separated by blanks or tabs; empty lines are skipped. `file` is what messages call it.
///
/// Throws  invalid_input `FILE: line N: expected X, got Y`: not two columns, no finite number >= 0, a time that is not after the
///         one before it; `FILE: ...` where there is no line.
/// Source  docs/reference/files.md, hetplan/timeline/1; the form in which ../shared/data/bandwidth keeps its traces.
[[nodiscard]] adapt::bandwidth_trace parse_bandwidth_trace(std::string_view text, const std::string& file);

/// Reads a trace file. Throws what read_text and parse_bandwidth_trace throw.
[[nodiscard]] adapt::bandwidth_trace read_bandwidth_trace(const std::string& path);

// The row of everything that compares policies: who, and what came of it.

/// What one policy made of a timeline; all rows of a comparison are of one timeline, one job and one cluster.
struct policy_history {
  std::string policy;
  adapt::history history;
};

inline constexpr std::string_view timeline_format = "hetplan/timeline/1";

/// Events that all traces of a timeline may add together.
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
/// Of events at one instant those of traces come first, in the order of the traces, then the file's own in their order: an outage
/// at the instant of a trace's step wins. A trace goes on after it, and its next step ends the outage.
/// @param folder  where the trace files are; empty: beside the timeline file.
/// Throws         invalid_input `FILE: /pointer: expected X, got Y` for whatever docs/reference/files.md calls bad input; what is
///                wrong in a trace file is told at the `file` that names it.
[[nodiscard]] adapt::timeline read_timeline(const json_document& d, const cluster& c, const std::filesystem::path& folder = {});

/// The trace files that a timeline which read_timeline takes names, as it finds them.
[[nodiscard]] std::vector<std::string> trace_files(const json_document& d, const std::filesystem::path& folder = {});

/// The timeline file of a valid timeline, its traces as events; reading it gives the identical timeline.
[[nodiscard]] std::string write_timeline(const adapt::timeline& t, const cluster& c);

}  // namespace hetplan::io

#ifndef HETPLAN_SEPARATE
#include <hetplan/io/timeline_json.ipp>
#endif
