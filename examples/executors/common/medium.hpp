// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The network's resources as token buckets: who may send its next piece when.

#include <algorithm>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <hetplan/cluster/network.hpp>

namespace executors {

/// How a flow crosses the network.
struct flow_rule {
  std::vector<hetplan::resource_use> via = {};
  int priority = 0;  ///< smaller first
};

/// What all senders share of a flow, plain data: it may lie in memory that processes share.
struct flow_state {
  int active = 0;
  double last_end_s = 0;  ///< of its last piece; before the first one, when it may begin
};

/// Gives flows their turns, piece by piece. No clock: all times are those of the common clock that callers have.
///
/// A piece takes its turn on every resource of its route at once: on each it starts when the flow's piece before it has ended
/// and the resource is free, and it has arrived when the last of them is done. A flow asks for its next piece when the last one
/// has ended, so competing flows alternate (fair shares, to a piece), and a resource that is asked for is never idle. Turns
/// are counted from the last end, not from the time of asking: who wakes up late loses nothing as long as the resource is free.
/// A flow waits while its piece would not be over before a flow of a smaller priority number wants a resource that both use:
/// it gets what that one leaves.
///
/// @param Lock  what std::lock_guard takes: a mutex of this process, or a lock in memory that processes share.
/// Complexity   of a piece: O(flows x resources per route).
/// Source       semantics, section 6, rule 2 (fair_share, priority), in pieces instead of rates.
template <class Lock>
class medium {
 public:
  /// @param free_at_s  by resource, all 0 at first.   @param states  by flow, as many as rules.   Both outlive the medium.
  medium(std::span<const hetplan::resource> resources, std::vector<flow_rule> rules, std::span<double> free_at_s, std::span<flow_state> states, Lock& lock)
      : resources_(resources.begin(), resources.end()), rules_(std::move(rules)), free_at_s_(free_at_s), states_(states), lock_(lock) {}

  /// The flow has something to send, not before at_s.
  void begin(std::size_t flow, double at_s) {
    const std::lock_guard hold(lock_);
    states_[flow] = {1, std::max(states_[flow].last_end_s, at_s)};
  }
  /// Takes the turn of its next piece. Returns when the piece will have arrived; nothing if it has to wait for a flow with a
  /// smaller priority number: ask again soon.
  [[nodiscard]] std::optional<double> reserve(std::size_t flow, double bytes) {
    const std::lock_guard hold(lock_);
    flow_state& mine = states_[flow];
    for (const hetplan::resource_use& u : rules_[flow].via) {
      if (turn_s(mine, u) + work_s(u, bytes) > wanted_before_s(flow, u.resource)) return std::nullopt;
    }
    double end_s = mine.last_end_s;
    for (const hetplan::resource_use& u : rules_[flow].via) {
      double& free_s = free_at_s_[u.resource.index()];
      free_s = turn_s(mine, u) + work_s(u, bytes);
      end_s = std::max(end_s, free_s);
    }
    return mine.last_end_s = end_s;
  }
  /// The flow has nothing to send for now.
  void end(std::size_t flow) {
    const std::lock_guard hold(lock_);
    states_[flow].active = 0;
  }
  /// Nothing crosses a resource until then (pieces that have their turn do).
  void block(hetplan::resource_id resource, double until_s) {
    const std::lock_guard hold(lock_);
    free_at_s_[resource.index()] = std::max(free_at_s_[resource.index()], until_s);
  }
  /// Bytes that take the narrowest resource of the flow's route this long; infinite for a route without resources.
  [[nodiscard]] double piece_bytes(std::size_t flow, double s = 1.5e-3) const {
    double bytes = std::numeric_limits<double>::infinity();
    for (const hetplan::resource_use& u : rules_[flow].via) bytes = std::min(bytes, s / work_s(u, 1));
    return bytes;
  }

 private:
  [[nodiscard]] double work_s(const hetplan::resource_use& u, double bytes) const {
    return bytes * u.weight / resources_[u.resource.index()].capacity.value();
  }
  [[nodiscard]] double turn_s(const flow_state& mine, const hetplan::resource_use& u) const {
    return std::max(free_at_s_[u.resource.index()], mine.last_end_s);
  }
  /// When the first of the flows that go before this one will ask for a resource again.
  [[nodiscard]] double wanted_before_s(std::size_t flow, hetplan::resource_id resource) const {
    double soonest = std::numeric_limits<double>::infinity();
    for (std::size_t f = 0; f < rules_.size(); ++f) {
      if (states_[f].active == 0 || rules_[f].priority >= rules_[flow].priority) continue;
      for (const hetplan::resource_use& u : rules_[f].via) {
        if (u.resource == resource) soonest = std::min(soonest, states_[f].last_end_s);
      }
    }
    return soonest;
  }

  std::vector<hetplan::resource> resources_;
  std::vector<flow_rule> rules_;
  std::span<double> free_at_s_;
  std::span<flow_state> states_;
  Lock& lock_;
};

}  // namespace executors
