// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/bandwidth_trace.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

#include <hetplan/io/file.hpp>
#include <hetplan/io/text.hpp>

namespace hetplan::io {

namespace detail {

/// The columns of one line, taken from the left.
class trace_line {
 public:
  trace_line(const std::string& file, std::size_t number, std::string_view text) : file_(file), number_(number), rest_(text) {
    columns_ = 0;
    for (std::string_view all = text; !next(all).empty();) ++columns_;
  }

  [[nodiscard]] std::size_t columns() const { return columns_; }

  /// The next column as a finite number >= 0.
  [[nodiscard]] double number(std::string_view expected) {
    const std::string_view word = next(rest_);
    double v = 0;
    const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), v);
    if (code != std::errc() || end != word.data() + word.size() || !std::isfinite(v) || v < 0) fail(expected, in_quotes(word));
    return v;
  }
  [[noreturn]] void fail(std::string_view expected, std::string_view got) const {
    fail_file(file_, "line " + std::to_string(number_) + ": expected " + std::string(expected) + ", got " + std::string(got));
  }

 private:
  /// Takes the first word of a text, "" at its end.
  [[nodiscard]] static std::string_view next(std::string_view& text) {
    constexpr std::string_view blank = " \t\r";
    text.remove_prefix(std::min(text.find_first_not_of(blank), text.size()));
    const std::string_view word = text.substr(0, text.find_first_of(blank));
    text.remove_prefix(word.size());
    return word;
  }

  const std::string& file_;
  std::size_t number_;
  std::string_view rest_;
  std::size_t columns_;
};

}  // namespace detail

HETPLAN_INLINE adapt::bandwidth_trace parse_bandwidth_trace(std::string_view text, const std::string& file) {
  adapt::bandwidth_trace t;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    detail::trace_line line(file, number, text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.columns() == 0) continue;
    if (line.columns() != 2) line.fail("2 columns, seconds and Mbit/s", std::to_string(line.columns()));
    const double at = line.number("seconds >= 0"), rate = line.number("Mbit/s >= 0");
    if (!t.steps.empty() && at <= t.steps.back().at.value())
      line.fail("seconds > " + to_text(t.steps.back().at.value()) + ", the time of the line before", to_text(at));
    if (!std::isfinite(rate * 125'000)) line.fail("Mbit/s >= 0", to_text(rate));
    t.steps.push_back({seconds(at), bytes_per_second(rate * 125'000)});
  }
  if (t.steps.empty()) detail::fail_file(file, "expected a line with seconds and Mbit/s, got nothing");
  return t;
}

HETPLAN_INLINE adapt::bandwidth_trace read_bandwidth_trace(const std::string& path) { return parse_bandwidth_trace(read_text(path), path); }

}  // namespace hetplan::io
