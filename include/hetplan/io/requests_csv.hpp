// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Requests as text: a line each, under a header that names the columns.

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

// Tables as text: lines of fields between commas, under a header.

/// What becomes of columns whose names are not known: a fault of a file of ours, a matter of course in one of another project.
enum class other_columns { refused, let_be };

/// Goes through the lines of a table whose columns have names, in whatever order its header has them. A field in double quotes may hold
/// commas, and quotes twice. Blank lines are passed over. Throws  invalid_input `FILE: line N: expected X, got Y`.
class csv_lines {
 public:
  /// @param columns  the names that are known; `needed` of them, from the front, must be there.
  csv_lines(std::string_view text, std::string file, std::span<const std::string_view> columns, std::size_t needed,
            other_columns others = other_columns::refused);

  /// The next line; false at the end.
  [[nodiscard]] bool next();

  /// By number of the column among those that are known.
  [[nodiscard]] bool has(std::size_t column) const { return place_[column] >= 0 && !field(column).empty(); }
  [[nodiscard]] std::string_view field(std::size_t column) const {
    return place_[column] < 0 ? std::string_view() : fields_[static_cast<std::size_t>(place_[column])];
  }
  /// A finite number >= 0.
  [[nodiscard]] double number(std::size_t column, std::string_view expected) const;
  /// A whole number from `least` to 2^32 - 1.
  [[nodiscard]] std::uint32_t count(std::size_t column, std::uint32_t least) const;

  [[noreturn]] void fail(std::size_t column, std::string_view expected) const;

 private:
  void split(std::string_view line);
  [[nodiscard]] std::string_view take_line();

  std::string_view rest_;
  std::string file_;
  std::vector<std::string> names_;
  std::vector<int> place_;
  std::vector<std::string_view> fields_;
  std::vector<std::string> unquoted_;  ///< fields that had quotes to be taken off
  std::size_t width_ = 0;
  std::size_t line_ = 0;
};

/// A text as a field: in quotes where it must be.
[[nodiscard]] std::string csv_field(std::string_view text);

/// The largest file of requests: 4 GB.
inline constexpr std::size_t max_requests_bytes = 4'000'000'000;

/// Reads columns arrival, service, server and, where there are any, tokens_in, tokens_out and frames; what is empty or left out is the
/// service's typical number, rounded, at least 1.
/// Throws  invalid_input `FILE: line N: expected X, got Y`: a column that is missing, unknown or twice, a line with more or fewer fields, a
///         number that is none or of no use to the service, a name that is not known, arrivals that descend, no requests.
[[nodiscard]] serve::request_stream parse_requests(std::string_view text, const std::string& file, const serve::edge_cloud& cloud,
                                                   const std::vector<serve::service>& services);
[[nodiscard]] serve::request_stream read_requests(const std::string& path, const serve::edge_cloud& cloud,
                                                  const std::vector<serve::service>& services);

/// What parse_requests reads back identically.
[[nodiscard]] std::string write_requests(const serve::request_stream& requests, const serve::edge_cloud& cloud,
                                         const std::vector<serve::service>& services);

/// Columns request, outcome, end, server, offloads and credit, a line for each request that has ended.
[[nodiscard]] std::string write_records(const std::vector<serve::request_record>& records, const serve::edge_cloud& cloud);

}  // namespace hetplan::io

#ifndef HETPLAN_SEPARATE
#include <hetplan/io/requests_csv.ipp>
#endif
