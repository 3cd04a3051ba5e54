// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/requests_csv.hpp>

#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include <hetplan/core/error.hpp>
#include <hetplan/io/csv_lines.hpp>
#include <hetplan/io/file.hpp>
#include <hetplan/io/serving_names.hpp>
#include <hetplan/io/text.hpp>

namespace hetplan::io {

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

  /// Lines often repeat a name.
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
  std::string out = "request,outcome,end,server,offloads,credit\n";
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto& r = records[i];
    if (!r.has_ended()) continue;
    out += std::to_string(i) + "," + std::string(to_string(r.outcome)) + "," + to_text(r.end_s) + "," + csv_field(cloud[r.server].name) +
           "," + std::to_string(r.offloads) + "," + to_text(r.credit) + "\n";
  }
  return out;
}

}  // namespace hetplan::io
