// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Bandwidth traces as text: `seconds Mbit/s` per line.

#include <string>
#include <string_view>

#include <hetplan/adapt/bandwidth_trace.hpp>

namespace hetplan::io {

/// Reads a trace from text: two columns separated by blanks or tabs; empty lines are skipped. `file` is what messages call it.
///
/// Throws  invalid_input `FILE: line N: expected X, got Y`: not two columns, no finite number >= 0, a time that is not after the
///         one before it; `FILE: ...` where there is no line.
/// Source  docs/reference/files.md, hetplan/timeline/1; the form in which ../shared/data/bandwidth keeps its traces.
[[nodiscard]] adapt::bandwidth_trace parse_bandwidth_trace(std::string_view text, const std::string& file);

/// Reads a trace file. Throws what read_text and parse_bandwidth_trace throw.
[[nodiscard]] adapt::bandwidth_trace read_bandwidth_trace(const std::string& path);

}  // namespace hetplan::io

#ifndef HETPLAN_COMPILED
#include <hetplan/io/bandwidth_trace.ipp>
#endif
