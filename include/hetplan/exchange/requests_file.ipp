// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/requests_file.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <system_error>
#include <utility>

#include <hetplan/core/error.hpp>
#include <hetplan/exchange/foreign_model.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/io/json_node.hpp>
#include <hetplan/io/requests_csv.hpp>

namespace hetplan::exchange {

namespace detail {

/// Parser of Azure's timestamps: nanoseconds since 1970, none for other texts.
class timestamp_text {
 public:
  explicit timestamp_text(std::string_view text) : rest_(text) {}

  [[nodiscard]] std::optional<std::int64_t> nanoseconds() {
    const int year = digits(4, "-"), month = digits(2, "-"), day = digits(2, " T");
    const int hour = digits(2, ":"), minute = digits(2, ":"), second = digits(2, "");
    const std::chrono::year_month_day date(std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                           std::chrono::day(static_cast<unsigned>(day)));
    // 64-bit nanoseconds cover these years; second 60 is a leap second.
    if (failed_ || year < 1970 || year > 2200 || !date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
    const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
    const std::int64_t fraction_ns = fraction();
    const std::int64_t zone_s = zone();
    if (failed_ || !rest_.empty()) return std::nullopt;
    return (((days * 24 + hour) * 60 + minute) * 60 + second - zone_s) * 1'000'000'000 + fraction_ns;
  }

 private:
  /// Reads exactly `count` digits and one of the characters after them.
  int digits(std::size_t count, std::string_view behind) {
    int v = 0;
    const auto word = rest_.substr(0, count);
    const bool numeric = word.size() == count && std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
    if (!numeric || std::from_chars(word.data(), word.data() + count, v).ec != std::errc()) failed_ = true;
    rest_.remove_prefix(word.size());
    if (behind.empty()) return v;
    if (rest_.empty() || behind.find(rest_.front()) == std::string_view::npos) failed_ = true;
    else rest_.remove_prefix(1);
    return v;
  }
  std::int64_t fraction() {
    if (!rest_.starts_with('.')) return 0;
    rest_.remove_prefix(1);
    const std::size_t count = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    if (count < 1 || count > 9) failed_ = true;
    if (failed_) return 0;
    std::int64_t v = digits(count, "");
    for (std::size_t i = count; i < 9; ++i) v *= 10;
    return v;
  }
  std::int64_t zone() {
    if (rest_.empty()) return 0;
    const char sign = rest_.front();
    rest_.remove_prefix(1);
    if (sign == 'Z') return 0;
    if (sign != '+' && sign != '-') failed_ = true;
    const int hours = digits(2, ":"), minutes = digits(2, "");
    if (hours > 23 || minutes > 59) failed_ = true;
    return (sign == '-' ? -1 : 1) * (hours * 60 + minutes) * 60;
  }

  std::string_view rest_;
  bool failed_ = false;
};

class trace_builder {
 public:
  explicit trace_builder(const std::string& file) { trace_.file = file; }

  /// Adds a request. False if it arrives before the previous one.
  [[nodiscard]] bool add(token_arrival a) {
    if (a.at_s < before_s_) return false;
    before_s_ = a.at_s;
    if (a.tokens_out == 0) ++trace_.skipped;
    else trace_.arrivals.push_back(a);
    return true;
  }
  [[nodiscard]] std::uint32_t model(std::string_view name) {
    if (const auto known = numbers_.find(name); known != numbers_.end()) return known->second;
    const auto number = static_cast<std::uint32_t>(trace_.models.size());
    numbers_.emplace(trace_.models.emplace_back(name), number);
    return number;
  }
  [[nodiscard]] token_trace finish() && {
    if (trace_.arrivals.empty())
      io::detail::fail_file(trace_.file, "expected a request with tokens out, got " +
                                             (trace_.skipped == 0 ? "none" : std::to_string(trace_.skipped) + " without"));
    return std::move(trace_);
  }

 private:
  token_trace trace_;
  std::map<std::string, std::uint32_t, std::less<>> numbers_;
  double before_s_ = 0;
};

inline constexpr std::string_view in_order = "a time not before that of the line before";

[[nodiscard]] HETPLAN_INLINE token_trace parse_azure(std::string_view text, const std::string& file) {
  static constexpr std::array<std::string_view, 3> columns{"TIMESTAMP", "ContextTokens", "GeneratedTokens"};
  auto lines = foreign_table(text, file, columns, columns.size());
  trace_builder trace(file);
  std::optional<std::int64_t> first;
  while (lines.next()) {
    const auto at = timestamp_text(lines.field(0)).nanoseconds();
    if (!at) lines.fail(0, "a time such as \"2023-11-16 18:17:03.9799600\"");
    if (!first) first = at;
    if (!trace.add({static_cast<double>(*at - *first) / 1e9, lines.count(1, 0), lines.count(2, 0)})) lines.fail(0, in_order);
  }
  return std::move(trace).finish();
}

[[nodiscard]] HETPLAN_INLINE token_trace parse_burstgpt(std::string_view text, const std::string& file) {
  static constexpr std::array<std::string_view, 4> columns{"Timestamp", "Model", "Request tokens", "Response tokens"};
  auto lines = foreign_table(text, file, columns, columns.size());
  trace_builder trace(file);
  std::optional<double> first;
  while (lines.next()) {
    const double at_s = lines.number(0, "seconds >= 0");
    if (!first) first = at_s;
    if (!trace.add({at_s - *first, lines.count(2, 0), lines.count(3, 0), trace.model(lines.field(1))})) lines.fail(0, in_order);
  }
  return std::move(trace).finish();
}

/// Parses a line of JSON. Messages omit the line number within that line.
[[nodiscard]] HETPLAN_INLINE io::json_document parse_json_line(std::string_view line, const std::string& where) {
  try {
    return io::json_document::parse(line, where);
  } catch (const invalid_input& e) {
    std::string what = e.what();
    constexpr std::string_view own = ": line 1, column";
    if (const auto at = what.find(own); at != std::string::npos) what.replace(at, own.size(), ", column");
    throw invalid_input(what);
  }
}

[[nodiscard]] HETPLAN_INLINE token_trace parse_mooncake(std::string_view text, const std::string& file) {
  trace_builder trace(file);
  std::optional<double> first;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto document = parse_json_line(line, file + ": line " + std::to_string(number));
    const foreign_object o(io::json_node(document), "an object, a request a line");
    const auto timestamp = o.at("timestamp", "milliseconds >= 0");
    const double at_ms = timestamp.number(io::range::at_least_zero);
    if (!first) first = at_ms;
    const auto count = [&](std::string_view key) { return o.at(key, "a number of tokens").integer<std::uint32_t>(0); };
    if (!trace.add({(at_ms - *first) / 1000, count("input_length"), count("output_length")})) timestamp.fail(in_order);
  }
  return std::move(trace).finish();
}

}  // namespace detail

HETPLAN_INLINE std::optional<trace_format> trace_format_of(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  if (text.starts_with('{')) return trace_format::mooncake;
  const auto header = text.substr(0, std::min(text.find('\n'), text.size()));
  const auto has = [&](std::string_view name) { return header.find(name) != std::string_view::npos; };
  if (has("ContextTokens") || has("GeneratedTokens")) return trace_format::azure;
  if (has("Request tokens") || has("Response tokens")) return trace_format::burstgpt;
  return std::nullopt;
}

HETPLAN_INLINE token_trace parse_token_trace(std::string_view text, const std::string& file) {
  require_text(text, file);
  const auto format = trace_format_of(text);
  if (!format)
    io::detail::fail_file(file,
                          "line 1: expected the header of Azure's trace (TIMESTAMP,ContextTokens,GeneratedTokens) or BurstGPT's (Timestamp,"
                          "Model,Request tokens,Response tokens,...), or an object of Mooncake's, got " +
                              io::in_quotes(text.substr(0, std::min(text.find('\n'), text.size()))));
  switch (*format) {
    case trace_format::azure: return detail::parse_azure(text, file);
    case trace_format::burstgpt: return detail::parse_burstgpt(text, file);
    case trace_format::mooncake: break;
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  return detail::parse_mooncake(text, file);
}

HETPLAN_INLINE token_trace read_token_trace(const std::string& path) {
  return parse_token_trace(io::read_text(path, io::max_requests_bytes), path);
}

namespace detail {

/// Returns the service of each model of a trace, or a single service for all requests.
[[nodiscard]] HETPLAN_INLINE std::vector<serve::service_id> services_of(const token_trace& trace,
                                                                        const std::vector<serve::service>& services,
                                                                        const std::string& wanted) {
  std::vector<std::string_view> generating;
  for (const auto& s : services)
    if (s.generates) generating.push_back(s.name);
  const auto find = [&](std::string_view name) {
    const auto at = std::ranges::find_if(services, [&](const serve::service& s) { return s.generates && s.name == name; });
    return at == services.end() ? serve::service_id() : serve::service_id(at - services.begin());
  };
  const std::string choices = generating.empty() ? "there is none" : "there are " + io::shortened(io::joined(generating), 200);
  if (!wanted.empty()) {
    if (!find(wanted).valid())
      io::detail::fail_file(trace.file, "expected the name of a service that generates tokens (" + choices + "), got " +
                                            io::in_quotes(wanted) + io::suggestion(wanted, generating));
    return {find(wanted)};
  }
  std::vector<serve::service_id> by_model;
  std::ranges::transform(trace.models, std::back_inserter(by_model), find);
  if (!by_model.empty() && std::ranges::all_of(by_model, &serve::service_id::valid)) return by_model;
  if (generating.size() != 1)
    io::detail::fail_file(trace.file, "expected a choice of the service that the trace is for: one that generates tokens, and " + choices);
  return {find(generating.front())};
}

}  // namespace detail

HETPLAN_INLINE serve::request_stream replay_trace(const token_trace& trace, const serve::edge_cloud& cloud,
                                                  const std::vector<serve::service>& services, const replay_options& options) {
  if (!std::isfinite(options.time_scale) || options.time_scale <= 0)
    io::detail::fail_file(trace.file, "expected a time scale > 0, got " + to_text(options.time_scale));
  if (cloud.size() == 0) io::detail::fail_file(trace.file, "expected a cloud with a server where requests enter, got none");
  if (!trace.arrivals.empty() && !std::isfinite(trace.arrivals.back().at_s * options.time_scale))
    io::detail::fail_file(trace.file, "expected a time scale with which the last arrival, " + to_text(trace.arrivals.back().at_s) +
                                          " s, is finite, got " + to_text(options.time_scale));
  const auto targets = detail::services_of(trace, services, options.service);
  std::vector<serve::request> all;
  all.reserve(trace.arrivals.size());
  for (const auto& a : trace.arrivals) {
    const std::size_t i = all.size();
    // No handler draws in turn 63.
    const auto server =
        options.seed ? static_cast<std::size_t>(serve::draw(*options.seed, i, 63) * static_cast<double>(cloud.size())) : i % cloud.size();
    const auto target = targets[targets.size() == 1 ? 0 : a.model];
    all.push_back({a.at_s * options.time_scale, target, serve::server_id(server), a.tokens_in, a.tokens_out});
  }
  return serve::request_stream(std::move(all));
}

HETPLAN_INLINE std::vector<serve::request_length> lengths_of(const token_trace& trace) {
  std::vector<serve::request_length> all;
  all.reserve(trace.arrivals.size());
  for (const auto& a : trace.arrivals) all.push_back({a.tokens_in, a.tokens_out});
  return all;
}

HETPLAN_INLINE requests_file parse_requests_file(std::string_view text, const std::string& file, const serve::edge_cloud& cloud,
                                                 const std::vector<serve::service>& services, const replay_options& options) {
  require_text(text, file);
  const auto format = trace_format_of(text);
  if (!format) return {io::parse_requests(text, file, cloud, services)};
  const auto trace = parse_token_trace(text, file);
  return {replay_trace(trace, cloud, services, options), format, trace.skipped};
}

HETPLAN_INLINE requests_file read_requests_file(const std::string& path, const serve::edge_cloud& cloud,
                                                const std::vector<serve::service>& services, const replay_options& options) {
  return parse_requests_file(io::read_text(path, io::max_requests_bytes), path, cloud, services, options);
}

}  // namespace hetplan::exchange
