// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Pictures of the serving report: the deployment, service levels, offloads; and data shared by its sections.

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

/// A fault or a change of the deployment on a time axis.
struct serving_mark {
  double from_s = 0, to_s = 0;  ///< equal for instantaneous events
  std::string words;
  bool is_fault = true;
  std::optional<serve::server_id> lost = {};  ///< the failed server, if any
};

/// Servers in a row. In large clouds, neighbours of a ring share a slot.
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
  /// Returns the number of servers in the largest slot.
  [[nodiscard]] std::size_t most_servers() const;
  /// Returns the names of a slot's servers: "edge3", "edge4 to edge7".
  [[nodiscard]] std::string name(const slot& s) const;
  /// Returns the first slot of each ring except the first ring.
  [[nodiscard]] std::vector<std::size_t> ring_edges() const;
  /// Returns labels with server names at regular steps, restarted in each ring. A label takes `room` slots.
  [[nodiscard]] std::vector<label> labels(double room) const;

 private:
  const serve::edge_cloud* cloud_;
  std::vector<slot> slots_;
};

/// Inputs of the serving report, held by reference; they must outlive the view.
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
  /// Returns the unit of a service's goodput: "frames" for streams, else "requests".
  [[nodiscard]] std::string unit(std::size_t service) const { return services[service].is_stream() ? "frames" : "requests"; }
  [[nodiscard]] std::size_t ring_of(serve::server_id s) const { return s.index() / static_cast<std::size_t>(cloud.ring.group); }
  [[nodiscard]] std::size_t rings() const { return ring_of(serve::server_id(cloud.size() - 1)) + 1; }
  /// True if the history has data per server.
  [[nodiscard]] bool is_detailed() const { return !history.credit_by_server.empty(); }
};

/// Largest number of servers whose GPUs are drawn one by one.
inline constexpr std::size_t most_drawn_servers = 64;

/// Returns a picture of the deployment of at most most_drawn_servers servers: a bar per GPU with a slice for the share of each service. A
/// line connects an instance on several GPUs.
[[nodiscard]] std::string deployment_picture(const serving_view& view);

/// Returns a chart of service levels: the share of requests answered within x times the SLO, x from a quarter to four. Streams, which have
/// a rate instead, have bars with the share of served frames.
[[nodiscard]] std::string levels_chart(const serving_view& view);

/// Returns the share of a service's requests answered within `times` its SLO; at 1, exactly the share that counts as served.
[[nodiscard]] double answered_within(const serve::service& s, const serve::service_totals& t, double times);

/// Limits on the flows drawn, the largest first, and on the rings with the most offloads.
inline constexpr std::size_t most_flows = 200;
inline constexpr std::size_t most_rings = 12;

/// Returns a section on offloads. Each ring is a circle with its servers clockwise; a flow is a band, wide at its sender. Further parts are
/// the largest flows in numbers, and the number of offloads per request.
[[nodiscard]] std::string flows_section(const serving_view& view);

}  // namespace hetplan::draw::detail

#ifndef HETPLAN_SEPARATE
#include <hetplan/draw/serving_charts.ipp>
#endif
