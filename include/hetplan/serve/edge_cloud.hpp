// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The noun for where requests are served: servers with GPUs, and the ring in which they tell each other what they do.

#include <optional>
#include <string>
#include <vector>

#include <hetplan/core/quantity.hpp>
#include <hetplan/serve/service.hpp>

namespace hetplan::serve {

struct gpu {
  std::string kind;
  bytes memory;
  friend bool operator==(const gpu&, const gpu&) = default;
};

/// A user's device that lends its GPU to a server.
struct registered_device {
  std::string name;
  gpu unit;
  bytes_per_second bandwidth;
  seconds latency = {};
  friend bool operator==(const registered_device&, const registered_device&) = default;
};

/// Servers meet in a network without limits of its own: only their links have some, so that a cloud takes O(N) memory.
struct edge_server {
  std::string name;
  std::vector<gpu> gpus = {};
  bytes_per_second uplink;
  bytes_per_second downlink;
  seconds latency = {};                                 ///< its way to the network
  std::optional<bytes_per_second> load_bandwidth = {};  ///< at which weights come to it; none: at once
  std::vector<registered_device> devices = {};
  friend bool operator==(const edge_server&, const edge_server&) = default;
};

/// How servers learn about each other.
struct ring_options {
  seconds period;   ///< between two publications
  int group = 100;  ///< consecutive servers that form a ring, and pass work to each other
  int max_age = 0;  ///< [periods] beyond which nothing is believed; 0: as many as a ring has servers
  friend bool operator==(const ring_options&, const ring_options&) = default;
};

/// Source  EPARA, sections 3 and 3.4; semantics, section 11.
struct edge_cloud {
  std::string name;
  std::vector<edge_server> servers = {};
  ring_options ring;

  [[nodiscard]] std::size_t size() const { return servers.size(); }
  [[nodiscard]] const edge_server& operator[](server_id s) const { return servers[s.index()]; }
  friend bool operator==(const edge_cloud&, const edge_cloud&) = default;
};

/// Throws invalid_input: no server, a name that is empty or taken, a memory, bandwidth or period that is not above 0 and finite, a
/// negative latency, a group below 1.
void validate(const edge_cloud& cloud);

}  // namespace hetplan::serve

#ifndef HETPLAN_COMPILED
#include <hetplan/serve/edge_cloud.ipp>
#endif
