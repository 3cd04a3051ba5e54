// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A handler that passes requests on in turn, whoever is idle.

#include <cstddef>
#include <vector>

#include <hetplan/serve/handle_locally.hpp>
#include <hetplan/serve/request_handler.hpp>

namespace hetplan::serve {

/// A request_handler: its own capacity first, then the next of the other holders, round robin, each server for itself.
///
/// Complexity  O(holders of the service in the ring).
/// Source      InterEdge as EPARA compares itself with it (section 5.1: round-robin forwarding). Deviation: only servers that hold the
///             service and are not known to be out take turns.
class pass_on_in_turn {
 public:
  explicit pass_on_in_turn(int most_offloads = 5) : most_offloads_(most_offloads) {}
  [[nodiscard]] decision handle(const pending_request& r, const server_view& here);

 private:
  int most_offloads_;
  std::vector<std::size_t> turn_;  ///< by server
};
static_assert(check_request_handler<pass_on_in_turn>());

}  // namespace hetplan::serve

#ifndef HETPLAN_COMPILED
#include <hetplan/serve/pass_on_in_turn.ipp>
#endif
