// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a run keeps between events: those to come, its devices, and traffic that is not its own.

#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include <hetplan/simulate/simulator_options.hpp>

namespace HETPLAN_NAMESPACE::detail {

/// A device runs nothing.
inline constexpr tasks::node_id no_task = ~tasks::node_id{0};

/// Something that will happen; a queue keeps the earliest on top, ends before starts.
struct event {
  enum kind_type : std::uint8_t { capacity, speed, compute_end, release, latency_end, transfer_end };
  double at;
  kind_type kind;
  std::uint32_t what;
  std::uint32_t version;
  friend bool operator<(const event& a, const event& b) {  // priority_queue keeps the largest on top
    return std::tie(a.at, a.kind, a.what) > std::tie(b.at, b.kind, b.what);
  }
};
/// A device in the middle of a run.
struct device_state {
  std::size_t next = 0;  ///< in its order
  tasks::node_id running = no_task;
  std::uint32_t version = 0;  ///< of its pending end: a change of speed makes older ends void
  double speed = 1;
  double work_left_s = 0, since_s = 0;
  double held_bytes = 0;
};

/// Background transfers, as the policies see transfers, with their routes.
struct background_traffic {
  std::vector<tasks::transfer> transfers;
  std::vector<std::span<const resource_use>> routes;

  background_traffic(const simulator_options& options, const network& net) {
    for (const background_transfer& b : options.background) {
      transfers.push_back(
          {.from = b.from, .to = b.to, .priority = b.priority, .volume_bytes = b.volume.value(), .release_s = b.release.value()});
      routes.push_back(net.find(b.from, b.to)->via);
    }
  }
};

}  // namespace HETPLAN_NAMESPACE::detail
