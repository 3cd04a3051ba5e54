// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The head of the page of serving: the numbers that matter, what became of requests, and a row for each service.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <hetplan/draw/svg.hpp>
#include <hetplan/serve/deployment.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/service_history.hpp>
#include <hetplan/serve/serving_options.hpp>

namespace hetplan::draw::detail {

// What the parts of the page of serving share: names, what happened when, and how servers are put side by side.

/// A fault or a change of the deployment on an axis of time.
struct serving_mark {
  double from_s = 0, to_s = 0;  ///< equal where it happens at once
  std::string words;
  bool is_fault = true;
  std::optional<serve::server_id> lost = {};  ///< the server that is out from then on
};

/// Servers one after the other; where they are many, neighbours of a ring share a slot.
class server_slots {
 public:
  struct slot {
    std::size_t first = 0, count = 1, ring = 0;
  };
  struct label {
    std::size_t slot = 0;
    std::string text;
  };
  server_slots(const serve::edge_cloud& cloud, std::size_t most);

  [[nodiscard]] std::size_t size() const { return slots_.size(); }
  [[nodiscard]] const slot& operator[](std::size_t i) const { return slots_[i]; }
  [[nodiscard]] auto begin() const { return slots_.begin(); }
  [[nodiscard]] auto end() const { return slots_.end(); }
  /// Servers of the fullest slot.
  [[nodiscard]] std::size_t most_servers() const;
  /// "edge3", "edge4 to edge7".
  [[nodiscard]] std::string name(const slot& s) const;
  /// Slots before which another ring begins.
  [[nodiscard]] std::vector<std::size_t> ring_edges() const;
  /// Every so many servers the name of one, in each ring anew.
  ///
  /// @param room  slots that a label takes.
  [[nodiscard]] std::vector<label> labels(double room) const;

 private:
  const serve::edge_cloud* cloud_;
  std::vector<slot> slots_;
};

/// References to what the page shows; it must outlive the view.
class serving_view {
 public:
  serving_view(const serve::service_history& h, const serve::edge_cloud& c, const std::vector<serve::service>& s,
               const serve::deployment& first, const serve::serving_options& run);

  const serve::service_history& history;
  const serve::edge_cloud& cloud;
  const std::vector<serve::service>& services;
  const serve::deployment& first;
  double duration_s;
  std::vector<serving_mark> marks;  ///< in order of time

  [[nodiscard]] const std::string& name(serve::server_id s) const { return cloud[s].name; }
  [[nodiscard]] color fill(std::size_t service) const { return palette::category_color(service); }
  [[nodiscard]] color line(std::size_t service) const { return palette::category_line_color(service); }
  /// "requests", or of a stream "frames".
  [[nodiscard]] std::string unit(std::size_t service) const { return services[service].is_stream() ? "frames" : "requests"; }
  [[nodiscard]] std::size_t ring_of(serve::server_id s) const { return s.index() / static_cast<std::size_t>(cloud.ring.group); }
  [[nodiscard]] std::size_t rings() const { return ring_of(serve::server_id(cloud.size() - 1)) + 1; }
  /// Does the history say what happened on each server?
  [[nodiscard]] bool is_detailed() const { return !history.credit_by_server.empty(); }
};

/// The square of a colour before a word of a table or legend.
[[nodiscard]] std::string swatch(color c);

[[nodiscard]] color outcome_color(serve::request_outcome o);

/// "timed out".
[[nodiscard]] std::string outcome_words(serve::request_outcome o);

/// "pole: 200 000 requests over 2 min 5 s".
[[nodiscard]] std::string serving_title(const serving_view& view);

/// The title, the facts, and a bar of outcomes: of all requests, and of those not served larger.
[[nodiscard]] std::string serving_header(const serving_view& view);

/// What each service asked for, what it got, and how long it took.
[[nodiscard]] std::string services_table(const serving_view& view);

}  // namespace hetplan::draw::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/serving_summary.ipp>
#endif
