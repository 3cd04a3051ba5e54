// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/csv_lines.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>
#include <utility>

#include <hetplan/io/file.hpp>
#include <hetplan/io/text.hpp>

namespace hetplan::io {

HETPLAN_INLINE csv_lines::csv_lines(std::string_view text, std::string file, std::span<const std::string_view> columns, std::size_t needed,
                                    other_columns others)
    : rest_(text), file_(std::move(file)), names_(columns.begin(), columns.end()), place_(columns.size(), -1) {
  if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);  // what spreadsheets put before the first byte
  unquoted_.reserve(64);
  split(take_line());
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    const auto known = std::ranges::find(columns, fields_[f]);
    if (known == columns.end()) {
      if (others == other_columns::let_be) continue;
      detail::fail_file(
          file_, "line 1: expected columns among " + joined(names_) + ", got " + in_quotes(fields_[f]) + suggestion(fields_[f], names_));
    }
    auto& place = place_[static_cast<std::size_t>(known - columns.begin())];
    if (place >= 0) detail::fail_file(file_, "line 1: expected each column once, got " + in_quotes(fields_[f]) + " twice");
    place = static_cast<int>(f);
  }
  for (std::size_t c = 0; c < needed; ++c) {
    if (place_[c] < 0) detail::fail_file(file_, "line 1: expected a header with a column " + in_quotes(columns[c]) + ", got none");
  }
  width_ = fields_.size();
}

HETPLAN_INLINE std::string_view csv_lines::take_line() {
  const auto end = std::min(rest_.find('\n'), rest_.size());
  auto line = rest_.substr(0, end);
  rest_.remove_prefix(std::min(end + 1, rest_.size()));
  ++line_;
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

HETPLAN_INLINE void csv_lines::split(std::string_view line) {
  fields_.clear();
  unquoted_.clear();
  for (;;) {
    if (!line.starts_with('"')) {
      const auto end = std::min(line.find(','), line.size());
      fields_.push_back(line.substr(0, end));
      if (end == line.size()) return;
      line.remove_prefix(end + 1);
      continue;
    }
    std::string text;
    std::size_t at = 1;
    for (;; ++at) {
      if (at >= line.size())
        detail::fail_file(file_, "line " + std::to_string(line_) + ": expected a quote at the end of a field, got the end of the line");
      if (line[at] == '"') {
        if (at + 1 >= line.size() || line[at + 1] != '"') break;
        ++at;
      }
      text += line[at];
    }
    if (unquoted_.size() == unquoted_.capacity())
      detail::fail_file(file_, "line " + std::to_string(line_) + ": expected at most 64 fields in quotes");
    unquoted_.push_back(std::move(text));
    fields_.push_back(unquoted_.back());
    line.remove_prefix(at + 1);
    if (line.empty()) return;
    if (!line.starts_with(',')) detail::fail_file(file_, "line " + std::to_string(line_) + ": expected a comma after a field in quotes");
    line.remove_prefix(1);
  }
}

HETPLAN_INLINE bool csv_lines::next() {
  while (!rest_.empty()) {
    const auto line = take_line();
    if (line.empty()) continue;
    split(line);
    if (fields_.size() != width_)
      detail::fail_file(file_, "line " + std::to_string(line_) + ": expected " + std::to_string(width_) +
                                   " fields, as in the header; got " + std::to_string(fields_.size()));
    return true;
  }
  return false;
}

HETPLAN_INLINE double csv_lines::number(std::size_t column, std::string_view expected) const {
  const auto word = field(column);
  double v = 0;
  const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), v);
  if (code != std::errc() || end != word.data() + word.size() || !std::isfinite(v) || v < 0) fail(column, expected);
  return v;
}

HETPLAN_INLINE std::uint32_t csv_lines::count(std::size_t column, std::uint32_t least) const {
  const auto word = field(column);
  std::uint32_t v = 0;
  const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), v);
  if (code != std::errc() || end != word.data() + word.size() || v < least)
    fail(column, "a whole number from " + std::to_string(least) + " to " + std::to_string(std::numeric_limits<std::uint32_t>::max()));
  return v;
}

HETPLAN_INLINE void csv_lines::fail(std::size_t column, std::string_view expected) const {
  detail::fail_file(file_, "line " + std::to_string(line_) + ": " + names_[column] + ": expected " + std::string(expected) + ", got " +
                               in_quotes(field(column)));
}

HETPLAN_INLINE std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace hetplan::io
