// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a deployment serves a second, estimated without playing requests.

#include <algorithm>
#include <cstddef>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/parallelism_allocator.hpp>
#include <hetplan/serve/ring_sync.hpp>
#include <hetplan/serve/service_demand.hpp>

namespace hetplan::serve {

/// How far a handler sends a request.
enum class handling_reach { own_server, ring };

/// Requests a second that one more instance makes served; among equals those count that need not be passed on.
struct placement_gain {
  double credit = 0;
  double at_home = 0;
};

/// Whether requests come evenly, or by chance.
enum class arrival_model {
  even,      ///< min(demand, capacity)
  by_chance  ///< at least what is left of that when demand varies within an SLO, as its dispersion says: in the worst distribution (Scarf
             ///< 1958)
};

/// The fluid estimate of phi. Requests for a service flow: they are served where they enter as far as its capacity goes, and what is too
/// much goes to servers of the ring that are idle, if the way takes at most half of the SLO: instances are made to answer in the other
/// half. Demand and capacity of such a service therefore add up in a ring; of others, at each server.
///
/// Concave in the capacity of each ring and service, so submodular over placements.
/// Complexity  O(1) a gain or an addition. Memory  O(servers x services).
/// Source  EPARA, eq. 2 and section 3.3; the paper plays requests to get phi. Deviations: links have no limits here; a spanning
///         instance is all its leader's.
class fluid_goodput {
 public:
  fluid_goodput(const edge_cloud& cloud, const std::vector<service>& services, const service_demand& demand,
                handling_reach reach = handling_reach::ring);
  // A temporary is gone at the end of the line.
  fluid_goodput(const edge_cloud&, const std::vector<service>&& the_services_must_outlive_it, const service_demand&,
                handling_reach = handling_reach::ring) = delete;
  /// From now on arrivals are taken to be like this (even before); what has been added stays.
  void expect(arrival_model arrivals) { arrivals_ = arrivals; }

  /// What an instance would add; it matters who leads it, not which GPUs it has.
  [[nodiscard]] placement_gain most(server_id leader, const allocation& a) const;
  [[nodiscard]] placement_gain gain(const instance& i, const allocation& a) const {
    const auto g = most(i.leader(), a);
    return g.credit > rounding * std::min(a.capacity, ring_demand(rings_.ring_of(i.leader()), a.what)) ? g : placement_gain{};
  }
  void add(const instance& i, const allocation& a);
  /// phi of what has been added: served a second.
  /// Complexity  O(servers x services).
  [[nodiscard]] double value() const;

  /// Of the servers of a ring together.
  [[nodiscard]] double ring_demand(std::size_t ring, service_id l) const { return in_ring_[ring * services_->size() + l.index()].demand; }

 private:
  static constexpr double rounding = relative_tolerance;  ///< of what an instance could serve: no gain
  struct flow {
    double demand = 0;
    double capacity = 0;
  };
  /// Is it? See way_s.
  [[nodiscard]] bool is_passed_on(std::size_t ring, service_id l) const;
  /// What one more capacity makes served of a flow.
  [[nodiscard]] double more(const flow& f, std::size_t ring, service_id l, double capacity) const;
  [[nodiscard]] flow at(server_id s, service_id l) const { return {demand_.at(s, l), capacity_.at(s, l)}; }

  const std::vector<service>* services_;
  service_demand demand_;
  service_demand capacity_;  ///< by leader
  handling_reach reach_;
  arrival_model arrivals_ = arrival_model::even;
  ring_sync rings_;
  std::vector<flow> in_ring_;  ///< [ring][service]
  std::vector<double> way_s_;  ///< [ring][service]: of a request passed on, there and back, between servers like the ring's on average
};

}  // namespace hetplan::serve

#ifndef HETPLAN_SEPARATE
#include <hetplan/serve/fluid_goodput.ipp>
#endif
