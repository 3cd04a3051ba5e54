// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/requests_csv.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include <hetplan/core/error.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/io/serving_json.hpp>

namespace hetplan::io {

HETPLAN_INLINE csv_lines::csv_lines(std::string_view text, std::string file, std::span<const std::string_view> columns, std::size_t needed,
                                    other_columns others, char comment)
    : rest_(text), file_(std::move(file)), comment_(comment), names_(columns.begin(), columns.end()), place_(columns.size(), -1) {
  if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);  // byte order mark, as written by spreadsheets
  unquoted_.reserve(64);
  std::string_view header = take_line();
  while (is_comment(header) && !rest_.empty()) header = take_line();
  split(header);
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    const auto known = std::ranges::find(columns, fields_[f]);
    if (known == columns.end()) {
      if (others == other_columns::let_be) continue;
      detail::fail_file(file_, "line " + std::to_string(line_) + ": expected columns among " + joined(names_) + ", got " +
                                   in_quotes(fields_[f]) + suggestion(fields_[f], names_));
    }
    auto& place = place_[static_cast<std::size_t>(known - columns.begin())];
    if (place >= 0)
      detail::fail_file(file_, "line " + std::to_string(line_) + ": expected each column once, got " + in_quotes(fields_[f]) + " twice");
    place = static_cast<int>(f);
  }
  for (std::size_t c = 0; c < needed; ++c) {
    if (place_[c] < 0)
      detail::fail_file(file_,
                        "line " + std::to_string(line_) + ": expected a header with a column " + in_quotes(columns[c]) + ", got none");
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
    if (line.empty() || is_comment(line)) continue;
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

HETPLAN_INLINE std::string csv_lines::where() const { return escaped(file_) + ": line " + std::to_string(line_); }

HETPLAN_INLINE void csv_lines::fail(std::size_t column, std::string_view expected, std::string_view hint) const {
  detail::fail_file(file_, "line " + std::to_string(line_) + ": " + names_[column] + ": expected " + std::string(expected) + ", got " +
                               in_quotes(field(column)) + std::string(hint));
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

namespace detail {

inline constexpr std::array<std::string_view, 6> request_columns{"arrival", "service", "server", "tokens_in", "tokens_out", "frames"};

class request_reader {
 public:
  request_reader(const serve::edge_cloud& cloud, const std::vector<serve::service>& services)
      : services_(services), names_(cloud, services) {}

  [[nodiscard]] serve::request read(csv_lines& lines) {
    serve::request r;
    r.arrival_s = lines.number(0, "seconds >= 0");
    if (r.arrival_s < before_s_) lines.fail(0, "an arrival of at least " + to_text(before_s_) + " s, that of the request before");
    before_s_ = r.arrival_s;
    r.service = find(lines, 1, "service", service_, [&](std::string_view name) { return names_.find_service(name); });
    r.server = find(lines, 2, "server", server_, [&](std::string_view name) { return names_.find_server(name); });
    const auto& s = services_[r.service.index()];
    if (s.generates) {
      r.tokens_in = count(lines, 3, s.tokens.in, 0);
      r.length = count(lines, 4, s.tokens.out, 1);
    } else {
      nothing(lines, 3, "a service without tokens");
      nothing(lines, 4, "a service without tokens");
      if (s.is_stream()) r.length = count(lines, 5, s.frames, 1);
    }
    if (s.generates || !s.is_stream()) nothing(lines, 5, "a service without frames");
    return r;
  }

 private:
  template <class Id>
  struct last_name {
    std::string name;
    Id id;
  };

  /// Returns the id of a name. The last name is cached, as lines often repeat it.
  template <class Id, class Find>
  [[nodiscard]] static Id find(csv_lines& lines, std::size_t column, const char* what, last_name<Id>& last, const Find& find_it) {
    const auto name = lines.field(column);
    if (last.id.valid() && name == last.name) return last.id;
    const Id id = find_it(name);
    if (!id.valid()) lines.fail(column, std::string("the name of a ") + what);
    last = {std::string(name), id};
    return id;
  }

  static void nothing(csv_lines& lines, std::size_t column, const std::string& of) {
    if (lines.has(column)) lines.fail(column, "nothing for " + of);
  }
  [[nodiscard]] static std::uint32_t count(csv_lines& lines, std::size_t column, double typical, std::uint32_t least) {
    return lines.has(column) ? lines.count(column, least) : serve::rounded_count(typical, least);
  }

  const std::vector<serve::service>& services_;
  serving_names names_;
  double before_s_ = 0;
  last_name<serve::service_id> service_;
  last_name<serve::server_id> server_;
};

}  // namespace detail

HETPLAN_INLINE serve::request_stream parse_requests(std::string_view text, const std::string& file, const serve::edge_cloud& cloud,
                                                    const std::vector<serve::service>& services) {
  csv_lines lines(text, file, detail::request_columns, 3);
  detail::request_reader reader(cloud, services);
  std::vector<serve::request> all;
  while (lines.next()) all.push_back(reader.read(lines));
  if (all.empty()) detail::fail_file(file, "expected a line for each request under the header, got none");
  return serve::request_stream(std::move(all));
}

HETPLAN_INLINE serve::request_stream read_requests(const std::string& path, const serve::edge_cloud& cloud,
                                                   const std::vector<serve::service>& services) {
  return parse_requests(read_text(path, max_requests_bytes), path, cloud, services);
}

HETPLAN_INLINE std::string write_requests(const serve::request_stream& requests, const serve::edge_cloud& cloud,
                                          const std::vector<serve::service>& services) {
  std::string out = "arrival,service,server,tokens_in,tokens_out,frames\n";
  for (const auto& r : requests) {
    const auto& s = services[r.service.index()];
    out += to_text(r.arrival_s) + "," + csv_field(s.name) + "," + csv_field(cloud[r.server].name) + ",";
    if (s.generates) out += std::to_string(r.tokens_in) + "," + std::to_string(r.length);
    else out += ",";
    out += ",";
    if (s.is_stream() && !s.generates) out += std::to_string(r.length);
    out += "\n";
  }
  return out;
}

HETPLAN_INLINE std::string write_records(const std::vector<serve::request_record>& records, const serve::edge_cloud& cloud) {
  const bool tokens = std::ranges::any_of(records, [](const serve::request_record& r) { return r.ttft_s >= 0; });
  std::string out = "request,outcome,end,server,offloads,credit";
  out += tokens ? ",ttft,time_between_tokens\n" : "\n";
  const auto time = [](double s) { return s < 0 ? std::string() : to_text(s); };
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto& r = records[i];
    if (!r.has_ended()) continue;
    out += std::to_string(i) + "," + std::string(to_string(r.outcome)) + "," + to_text(r.end_s) + "," + csv_field(cloud[r.server].name) +
           "," + std::to_string(r.offloads) + "," + to_text(r.credit);
    out += tokens ? "," + time(r.ttft_s) + "," + time(r.between_s) + "\n" : "\n";
  }
  return out;
}

}  // namespace hetplan::io
