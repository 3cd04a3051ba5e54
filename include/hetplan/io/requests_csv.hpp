// SPDX-License-Identifier: BSL-1.0
#pragma once
/// CSV files, and requests to services in that format.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/core/version.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/request_process.hpp>
#include <hetplan/serve/service_history.hpp>

namespace hetplan::io {

/// Treatment of unknown columns: an error in this library's formats, ignored in those of other projects.
enum class other_columns { refused, let_be };

/// Reads a CSV table line by line. The header names the columns, in any order. A field in double quotes may contain commas and doubled
/// quotes. Blank lines are skipped. Throws invalid_input `FILE: line N: expected X, got Y`.
class csv_lines {
 public:
  /// @param columns  the known names; the first `needed` of them are required.
  /// @param comment  begins lines that are skipped; 0: none.
  csv_lines(std::string_view text, std::string file, std::span<const std::string_view> columns, std::size_t needed,
            other_columns others = other_columns::refused, char comment = 0);

  /// Moves to the next line. False at the end.
  [[nodiscard]] bool next();

  /// True if the line has a value in a column, given by index among the known names.
  [[nodiscard]] bool has(std::size_t column) const { return place_[column] >= 0 && !field(column).empty(); }
  [[nodiscard]] std::string_view field(std::size_t column) const {
    return place_[column] < 0 ? std::string_view() : fields_[static_cast<std::size_t>(place_[column])];
  }
  [[nodiscard]] double number(std::size_t column, std::string_view expected) const;
  [[nodiscard]] std::uint32_t count(std::size_t column, std::uint32_t least) const;

  /// Returns "FILE: line N".
  [[nodiscard]] std::string where() const;
  /// @param hint  follows what was given, such as a suggestion.
  [[noreturn]] void fail(std::size_t column, std::string_view expected, std::string_view hint = "") const;

 private:
  [[nodiscard]] bool is_comment(std::string_view line) const { return comment_ != 0 && line.starts_with(comment_); }
  void split(std::string_view line);
  [[nodiscard]] std::string_view take_line();

  std::string_view rest_;
  std::string file_;
  char comment_ = 0;
  std::vector<std::string> names_;
  std::vector<int> place_;
  std::vector<std::string_view> fields_;
  std::vector<std::string> unquoted_;  ///< storage of fields that had quotes
  std::size_t width_ = 0;
  std::size_t line_ = 0;
};

/// Returns a text as a CSV field, in quotes if necessary.
[[nodiscard]] std::string csv_field(std::string_view text);

inline constexpr std::size_t max_requests_bytes = 4'000'000'000;

/// Reads requests from the columns arrival, service, server and optionally tokens_in, tokens_out and frames. An empty or missing value is
/// the service's typical number, rounded, at least 1.
///
/// Throws  invalid_input `FILE: line N: expected X, got Y`: a column that is missing, unknown or duplicate, a line with more or fewer
///         fields, a number that is malformed or of no use to the service, an unknown name, arrivals out of order, no requests.
[[nodiscard]] serve::request_stream parse_requests(std::string_view text, const std::string& file, const serve::edge_cloud& cloud,
                                                   const std::vector<serve::service>& services);
[[nodiscard]] serve::request_stream read_requests(const std::string& path, const serve::edge_cloud& cloud,
                                                  const std::vector<serve::service>& services);

/// Returns the requests as CSV; parse_requests gives the identical requests.
[[nodiscard]] std::string write_requests(const serve::request_stream& requests, const serve::edge_cloud& cloud,
                                         const std::vector<serve::service>& services);

/// Returns CSV with columns request, outcome, end, server, offloads and credit, one line per finished request; if any has tokens, also ttft
/// and time_between_tokens, empty for those without.
[[nodiscard]] std::string write_records(const std::vector<serve::request_record>& records, const serve::edge_cloud& cloud);

}  // namespace hetplan::io

#ifndef HETPLAN_SEPARATE
#include <hetplan/io/requests_csv.ipp>
#endif
