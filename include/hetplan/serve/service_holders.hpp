// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Who holds what: an index of one deployment.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <hetplan/core/prefetch.hpp>
#include <hetplan/serve/deployment.hpp>
#include <hetplan/serve/ring_sync.hpp>

namespace hetplan::serve {

/// Where an instance stands as seen from a server; a request prefers the first of them.
enum class standing : std::uint8_t { local, spanning, device };
inline constexpr std::array<standing, 3> standings = {standing::local, standing::spanning, standing::device};

/// A server that leads instances of a service.
struct holder {
  server_id server;
  service_id what;
  std::uint32_t first = 0;  ///< of its instances: see service_holders::led
  std::uint32_t last = 0;
};

/// Instances by server and service, and the holders of each service by ring: nothing that looks for one scans servers.
///
/// Complexity  O(servers x services + instances) memory, O(1) a question.
/// Source  EPARA, section 3.2 (in which order a server serves itself); the index is ours.
class service_holders {
 public:
  /// `ids[i]` is the id of instance i of the deployment.
  service_holders(const deployment& d, std::span<const instance_id> ids, std::size_t servers, std::size_t services, const ring_sync& rings);

  /// Instances of a service that a server can use itself, in the order of the deployment.
  [[nodiscard]] std::span<const instance_id> own(server_id s, service_id l, standing where) const {
    const auto key = (s.index() * services_ + l.index()) * 3 + static_cast<std::size_t>(where);
    return {own_.data() + own_first_[key], own_.data() + own_first_[key + 1]};
  }
  /// Fetches what `own` reads, in two steps, some time before it does.
  void fetch_places(server_id s, service_id l) const { prefetch(&own_first_[(s.index() * services_ + l.index()) * 3]); }
  void fetch_ids(server_id s, service_id l) const { prefetch(own_.data() + own_first_[(s.index() * services_ + l.index()) * 3]); }
  /// Servers of a ring that lead instances of a service, by position.
  [[nodiscard]] std::span<const holder> holders(std::size_t ring, service_id l) const {
    const auto key = ring * services_ + l.index();
    return {holders_.data() + holders_first_[key], holders_.data() + holders_first_[key + 1]};
  }
  [[nodiscard]] std::span<const holder> holders() const { return holders_; }
  /// Numbers of all holders in the order of their first instances, in which it is quickest to go through them.
  [[nodiscard]] std::span<const std::uint32_t> in_order_of_instances() const { return order_; }
  /// The number of a holder among all.
  [[nodiscard]] std::size_t number(const holder& h) const { return static_cast<std::size_t>(&h - holders_.data()); }
  [[nodiscard]] std::span<const instance_id> led(const holder& h) const { return {led_.data() + h.first, led_.data() + h.last}; }

 private:
  std::size_t services_;
  std::vector<std::uint32_t> own_first_, holders_first_;
  std::vector<instance_id> own_, led_;
  std::vector<holder> holders_;
  std::vector<std::uint32_t> order_;
};

}  // namespace hetplan::serve

#ifndef HETPLAN_COMPILED
#include <hetplan/serve/service_holders.ipp>
#endif
