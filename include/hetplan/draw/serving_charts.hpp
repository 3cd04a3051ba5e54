// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What the page of serving shows beside its charts over time: the deployment, service levels, offloads; and what its parts share.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <hetplan/draw/page.hpp>
#include <hetplan/draw/svg.hpp>
#include <hetplan/serve/deployment.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/service_history.hpp>
#include <hetplan/serve/serving_options.hpp>

namespace hetplan::draw::detail {

/// A fault or a change of the deployment on an axis of time.
struct serving_mark {
  double from_s = 0, to_s = 0;  ///< equal where it happens at once
  std::string words;
  bool is_fault = true;
  std::optional<serve::server_id> lost = {};  ///< a server that failed
};

/// Servers side by side; of many, neighbours of a ring share a slot.
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
  /// The first slot of each ring but the first.
  [[nodiscard]] std::vector<std::size_t> ring_edges() const;
  /// The name of every so many servers, in each ring anew.
  ///
  /// @param room  slots that a label takes.
  [[nodiscard]] std::vector<label> labels(double room) const;

 private:
  const serve::edge_cloud* cloud_;
  std::vector<slot> slots_;
};

/// What the page shows, by reference: it must outlive the view.
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

/// The largest cloud whose GPUs are drawn one by one.
inline constexpr std::size_t most_drawn_servers = 64;

/// The deployment: a bar for each GPU, a slice for the share of each service; a line ties together an instance on several GPUs.
/// Requires a cloud of at most most_drawn_servers.
[[nodiscard]] std::string deployment_picture(const serving_view& view);

/// Service levels: the share of a service's requests answered within x times its SLO, x from a quarter to four; of streams, which have a
/// rate instead, bars of the share of their frames.
[[nodiscard]] std::string levels_chart(const serving_view& view);

/// The share of a service's requests that were answered within `times` its SLO: at 1, exactly the share that was served.
[[nodiscard]] double answered_within(const serve::service& s, const serve::service_totals& t, double times);

/// Only the largest flows are drawn, and the rings that pass on most.
inline constexpr std::size_t most_flows = 200;
inline constexpr std::size_t most_rings = 12;

/// A circle for each ring, its servers clockwise; a flow is a band across it, wide at its sender. Beside it the largest flows in numbers,
/// and below it how often requests were passed on.
[[nodiscard]] std::string flows_section(const serving_view& view);

}  // namespace hetplan::draw::detail

#ifndef HETPLAN_SEPARATE
#include <hetplan/draw/serving_charts.ipp>
#endif
