// SPDX-License-Identifier: BSL-1.0
#pragma once
/// EPARA's request handler: its own capacity first, then a server drawn by its idle goodput.

#include <cstdint>
#include <optional>
#include <span>

#include <hetplan/serve/handle_locally.hpp>
#include <hetplan/serve/request_handler.hpp>

namespace HETPLAN_NAMESPACE::serve {

/// A number in [0, 1) that depends on a seed, a request and how often it was passed on, and on nothing else.
[[nodiscard]] constexpr double draw(std::uint64_t seed, request_number r, int offloads) {
  std::uint64_t z = seed + 0x9E3779B97F4A7C15U * (64 * std::uint64_t{r} + static_cast<std::uint64_t>(offloads) + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/// The server that a request goes to: drawn with probability proportional to the idle goodput among those that would begin in time; none if
/// nobody is idle.
/// Complexity  O(holders of the service in the ring).
/// Source  EPARA, eq. 1. Deviation: an idle goodput below 0 counts as 0.
[[nodiscard]] std::optional<server_id> draw_by_idle_goodput(std::span<const known_server> others, seconds latency, double draw);

/// A request_handler: timed out; served by its own capacity; passed on too often; passed on; no resources.
///
/// Source  EPARA, section 3.2 and figure 6; semantics, section 11 (handling).
struct offload_by_idle_goodput {
  const std::vector<service>* services;  ///< whose SLOs bound how long a queue may be
  std::uint64_t seed = 1;
  int most_offloads = 5;  ///< section 4.1

  [[nodiscard]] decision handle(const pending_request& r, const server_view& here) const;
};
static_assert(check_request_handler<offload_by_idle_goodput>());

}  // namespace HETPLAN_NAMESPACE::serve

#ifndef HETPLAN_COMPILED
#include <hetplan/serve/offload_by_idle_goodput.ipp>
#endif
