// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The demand for services by server, and an index of the instances that hold them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <hetplan/core/large_pages.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/serve/deployment.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/request_process.hpp>
#include <hetplan/serve/ring_sync.hpp>

namespace hetplan::serve {

/// The place of an instance relative to a server, in order of preference.
enum class standing : std::uint8_t { local, spanning, device };
inline constexpr std::array<standing, 3> standings = {standing::local, standing::spanning, standing::device};

/// A server that leads instances of a service.
struct holder {
  server_id server;
  service_id what;
  std::uint32_t first = 0;  ///< range of its instances: see service_holders::led
  std::uint32_t last = 0;
};

/// An index of a deployment: instances by server and service, and holders of each service by ring. No query scans servers.
/// Complexity  O(servers x services + instances) memory, O(1) per query.
/// Source  EPARA, section 3.2 (in which order a server serves itself); the index is ours.
class service_holders {
 public:
  /// `ids[i]` is the id of instance i of the deployment.
  service_holders(const deployment& d, std::span<const instance_id> ids, std::size_t servers, std::size_t services, const ring_sync& rings);

  /// Returns the instances of a service that a server can use itself, in the order of the deployment.
  [[nodiscard]] std::span<const instance_id> own(server_id s, service_id l, standing where) const {
    const auto key = (s.index() * services_ + l.index()) * 3 + static_cast<std::size_t>(where);
    return {own_.data() + own_first_[key], own_.data() + own_first_[key + 1]};
  }
  /// Prefetches what `own` reads, in two steps, some time before.
  void fetch_places(server_id s, service_id l) const { prefetch(&own_first_[(s.index() * services_ + l.index()) * 3]); }
  void fetch_ids(server_id s, service_id l) const { prefetch(own_.data() + own_first_[(s.index() * services_ + l.index()) * 3]); }
  /// Returns the servers of a ring that lead instances of a service, by position.
  [[nodiscard]] std::span<const holder> holders(std::size_t ring, service_id l) const {
    const auto key = ring * services_ + l.index();
    return {holders_.data() + holders_first_[key], holders_.data() + holders_first_[key + 1]};
  }
  [[nodiscard]] std::span<const holder> holders() const { return holders_; }
  /// Returns the numbers of all holders in the order of their first instances, the fastest order to visit them.
  [[nodiscard]] std::span<const std::uint32_t> in_order_of_instances() const { return order_; }
  [[nodiscard]] std::size_t number(const holder& h) const { return static_cast<std::size_t>(&h - holders_.data()); }
  [[nodiscard]] std::span<const instance_id> led(const holder& h) const { return {led_.data() + h.first, led_.data() + h.last}; }

 private:
  std::size_t services_;
  std::vector<std::uint32_t> own_first_, holders_first_;
  std::vector<instance_id> own_, led_;
  std::vector<holder> holders_;
  std::vector<std::uint32_t> order_;
};

/// The demand in requests (frames of streams) per second, by the server where they enter and by service, and its burstiness.
///
/// Memory  O(servers x services).
/// Source  EPARA, section 3.3 (request arrivals of a period T). Ours: the dispersion.
class service_demand {
 public:
  service_demand(std::size_t servers, std::size_t services) : services_(services), per_s_(servers * services) {}
  /// Measures the requests of a window, in order of arrival. Throws invalid_input: a window that is not above 0 and finite.
  service_demand(const edge_cloud& cloud, const std::vector<service>& services, std::span<const request> requests, seconds window);

  [[nodiscard]] double at(server_id s, service_id l) const { return per_s_[s.index() * services_ + l.index()]; }
  void set(server_id s, service_id l, double per_s) { per_s_[s.index() * services_ + l.index()] = per_s; }

  /// Returns variance over mean of a ring's arrivals within an SLO (streams: within the length of one): 1 for Poisson arrivals, and if
  /// fewer than 20 such intervals were seen. Never below 1, so that no placement relies on a timetable.
  [[nodiscard]] double dispersion(std::size_t ring, service_id l) const {
    return dispersion_.empty() ? 1 : dispersion_[ring * services_ + l.index()];
  }

 private:
  std::size_t services_;
  std::vector<double> per_s_;       ///< [server][service]
  std::vector<double> dispersion_;  ///< [ring][service]; empty: 1
};

}  // namespace hetplan::serve

#ifndef HETPLAN_SEPARATE
#include <hetplan/serve/service_demand.ipp>
#endif
