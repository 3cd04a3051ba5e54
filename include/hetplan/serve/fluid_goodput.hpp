// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The demand for services, and the fluid estimate of a deployment's goodput, without simulating requests.

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/parallelism_allocator.hpp>
#include <hetplan/serve/request_process.hpp>
#include <hetplan/serve/ring_sync.hpp>

namespace hetplan::serve {

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

/// How far a handler passes a request.
enum class handling_reach { own_server, ring };

/// The served requests per second that one more instance adds, and the part of them not passed on, which breaks ties.
struct placement_gain {
  double credit = 0;
  double at_home = 0;
};

/// The distribution of arrivals.
enum class arrival_model {
  even,      ///< min(demand, capacity) is served
  by_chance  ///< a lower bound of that, if demand varies within an SLO by its dispersion: the worst distribution (Scarf 1958)
};

/// The fluid estimate of phi. Requests are served where they enter, up to the capacity there. The excess goes to idle servers of the
/// ring if the way takes at most half of the SLO, because instances are made to answer in the other half. So demand and capacity of such
/// a service add up in a ring, those of others at each server.
///
/// The estimate is concave in the capacity of each ring and service, so submodular over placements.
/// Complexity  O(1) per gain or addition. Memory  O(servers x services).
/// Source  EPARA, eq. 2 and section 3.3; the paper simulates requests to get phi. Deviations: links without limits; spanning instances
///         are the leader's.
class fluid_goodput {
 public:
  fluid_goodput(const edge_cloud& cloud, const std::vector<service>& services, const service_demand& demand,
                handling_reach reach = handling_reach::ring);
  fluid_goodput(const edge_cloud&, const std::vector<service>&& the_services_must_outlive_it, const service_demand&,
                handling_reach = handling_reach::ring) = delete;
  /// Sets the arrival model, initially `even`; added instances stay.
  void expect(arrival_model arrivals) { arrivals_ = arrivals; }

  /// Returns the gain of an instance, which depends on its leader, not on its GPUs.
  [[nodiscard]] placement_gain most(server_id leader, const allocation& a) const;
  [[nodiscard]] placement_gain gain(const instance& i, const allocation& a) const {
    const auto g = most(i.leader(), a);
    return g.credit > rounding * std::min(a.capacity, ring_demand(rings_.ring_of(i.leader()), a.what)) ? g : placement_gain{};
  }
  void add(const instance& i, const allocation& a);
  /// Returns phi of the added instances: the credit served per second.
  /// Complexity  O(servers x services).
  [[nodiscard]] double value() const;

  /// Returns the demand of all servers of a ring.
  [[nodiscard]] double ring_demand(std::size_t ring, service_id l) const { return in_ring_[ring * services_->size() + l.index()].demand; }

 private:
  static constexpr double rounding = relative_tolerance;  ///< share of an instance's capacity that counts as no gain
  struct flow {
    double demand = 0;
    double capacity = 0;
  };
  /// True if requests for the service are passed on: see way_s_.
  [[nodiscard]] bool is_passed_on(std::size_t ring, service_id l) const;
  /// Returns what more capacity adds to the served part of a flow.
  [[nodiscard]] double more(const flow& f, std::size_t ring, service_id l, double capacity) const;
  [[nodiscard]] flow at(server_id s, service_id l) const { return {demand_.at(s, l), capacity_.at(s, l)}; }

  const std::vector<service>* services_;
  service_demand demand_;
  service_demand capacity_;  ///< by leader
  handling_reach reach_;
  arrival_model arrivals_ = arrival_model::even;
  ring_sync rings_;
  std::vector<flow> in_ring_;  ///< [ring][service]
  std::vector<double> way_s_;  ///< [ring][service]: way of a passed-on request, there and back, between average servers of the ring
};

}  // namespace hetplan::serve

#ifndef HETPLAN_SEPARATE
#include <hetplan/serve/fluid_goodput.ipp>
#endif
