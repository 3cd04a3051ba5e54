// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Measured speeds of devices as CSV, to which devices are fitted.

#include <string>
#include <string_view>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/fit/measurement.hpp>

namespace hetplan::io {

/// Rows of a file of measurements, and their names for tables.
struct measured_rows {
  std::vector<fit::measurement> rows = {};
  std::vector<std::string> devices = {};  ///< by row, as the file has them
  std::vector<std::string> models = {};   ///< by row, with weights, dtype and layers
};

/// Reads measurements. Lines that begin with # are comments.
///
/// Columns   device (a name or a kind, several joined by +), model (a built-in name or a file, relative to this one), batch, prompt,
///           context, what, value; optionally tokens, phase, weights, dtype, layers (prefixes of names, with spaces between them),
///           prompt_chunk, chunks_in_flight, weight, score_bytes (see zoo::model_options), note. An empty or missing value is the default
///           of fit::measurement.
/// Throws    invalid_input `FILE: line N: COLUMN: expected X, got Y`: a column that is missing, unknown or twice there, a line with more or
///           fewer fields, an unknown device, model, quantity, phase or format, a number out of its range; no rows.
[[nodiscard]] measured_rows parse_measurements(std::string_view text, const std::string& file, const cluster& c);
[[nodiscard]] measured_rows read_measurements(const std::string& path, const cluster& c);

}  // namespace hetplan::io

#ifndef HETPLAN_SEPARATE
#include <hetplan/io/measured_csv.ipp>
#endif
