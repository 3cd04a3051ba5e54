// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The network's resources as token buckets: who may send its next piece when.

#include <algorithm>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
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
  double asks_s = 0;      ///< when it asks for its next piece: when the piece before the last has arrived
  double last_end_s = 0;  ///< when its last piece arrives
};

/// A flow's turn: how many bytes, when they arrive, and when the flow may ask for the next ones.
struct turn {
  double bytes = 0;
  double end_s = 0;
  double asks_again_s = 0;
};

/// Gives flows their turns, piece by piece. No clock: all times are those of the common clock that callers have.
///
/// A piece takes its turn on every resource of its route at once: on each it starts when the resource is free, not before
/// the flow asked, and it has arrived when the last of them is done. A flow has two pieces on their way and asks for the next
/// one when the first of them has arrived. So competing flows alternate (fair shares, to a piece), a flow that is held up at one
/// resource does not let another one stand idle, and a resource that is asked for is always busy. Turns are counted from when
/// the flow should have asked, not from when it did: who wakes up late loses nothing as long as the resource is free.
///
/// Of a resource that a flow with a smaller priority number uses too, a flow gets what is over before that one asks again.
///
/// @param Lock  what std::lock_guard takes: a mutex of this process, or a lock in memory that processes share.
/// Complexity   of a piece: O(flows x resources per route).
/// Source       semantics, section 6, rule 2 (fair_share, priority), in pieces instead of rates.
template <class Lock>
class medium {
 public:
  /// @param free_at_s  by resource, all 0 at first.   @param states  by flow, as many as rules.   Both outlive the medium.
  medium(std::span<const hetplan::resource> resources, std::vector<flow_rule> rules, std::span<double> free_at_s,
         std::span<flow_state> states, Lock& lock)
      : resources_(resources.begin(), resources.end()), rules_(std::move(rules)), free_at_s_(free_at_s), states_(states), lock_(lock) {
    std::vector<double> alone;
    std::vector<double> least(resources_.size(), std::numeric_limits<double>::infinity());
    for (const flow_rule& r : rules_) {
      alone.push_back(std::numeric_limits<double>::infinity());
      for (const hetplan::resource_use& u : r.via) alone.back() = std::min(alone.back(), piece_s / work_s(u, 1));
      for (const hetplan::resource_use& u : r.via) least[u.resource.index()] = std::min(least[u.resource.index()], alone.back());
    }
    for (std::size_t f = 0; f < rules_.size(); ++f) {
      pieces_.push_back(alone[f]);
      for (const hetplan::resource_use& u : rules_[f].via)
        pieces_[f] = std::min(pieces_[f], std::max(least[u.resource.index()], alone[f] / 8));
    }
  }

  /// The flow has something to send, not before at_s.
  void begin(std::size_t flow, double at_s) {
    const std::lock_guard hold(lock_);
    states_[flow] = {1, at_s, at_s};
  }
  /// Takes a turn of at most so many bytes; nothing if there is no room before flows that go first: ask again soon.
  [[nodiscard]] std::optional<turn> reserve(std::size_t flow, double bytes) {
    const std::lock_guard hold(lock_);
    flow_state& mine = states_[flow];
    const double least = std::min(bytes, piece_bytes(flow) / 8);
    for (const hetplan::resource_use& u : rules_[flow].via) {
      const double room_s = wanted_s(flow, u.resource) - start_s(mine, u);
      bytes = std::min(bytes, room_s / work_s(u, 1));
    }
    if (bytes < least) return std::nullopt;
    double end_s = mine.last_end_s;
    for (const hetplan::resource_use& u : rules_[flow].via) {
      double& free_s = free_at_s_[u.resource.index()];
      free_s = start_s(mine, u) + work_s(u, bytes);
      end_s = std::max(end_s, free_s);
    }
    mine = {1, mine.last_end_s, end_s};
    return turn{bytes, end_s, mine.asks_s};
  }
  /// The flow has nothing to send until it begins again.
  void end(std::size_t flow) {
    const std::lock_guard hold(lock_);
    states_[flow].active = 0;
  }
  /// Nothing crosses a resource until then (pieces that have their turn do).
  void block(hetplan::resource_id resource, double until_s) {
    const std::lock_guard hold(lock_);
    free_at_s_[resource.index()] = std::max(free_at_s_[resource.index()], until_s);
  }
  /// What a flow takes at a turn: what the narrowest resource of its route carries in 0.75 ms, or a flow that it meets somewhere,
  /// if that is less (turns of one size are fair; down to an eighth). Infinite for a route without resources.
  [[nodiscard]] double piece_bytes(std::size_t flow) const { return pieces_[flow]; }

 private:
  static constexpr double piece_s = 0.75e-3;

  [[nodiscard]] double work_s(const hetplan::resource_use& u, double bytes) const {
    return bytes * u.weight / resources_[u.resource.index()].capacity.value();
  }
  [[nodiscard]] double start_s(const flow_state& mine, const hetplan::resource_use& u) const {
    return std::max(free_at_s_[u.resource.index()], mine.asks_s);
  }
  /// When the first of the flows that go before this one will ask for a resource again.
  [[nodiscard]] double wanted_s(std::size_t flow, hetplan::resource_id resource) const {
    double soonest = std::numeric_limits<double>::infinity();
    for (std::size_t f = 0; f < rules_.size(); ++f) {
      if (states_[f].active == 0 || rules_[f].priority >= rules_[flow].priority) continue;
      for (const hetplan::resource_use& u : rules_[f].via) {
        if (u.resource == resource) soonest = std::min(soonest, states_[f].asks_s);
      }
    }
    return soonest;
  }

  std::vector<hetplan::resource> resources_;
  std::vector<flow_rule> rules_;
  std::vector<double> pieces_;  ///< bytes, by flow
  std::span<double> free_at_s_;
  std::span<flow_state> states_;
  Lock& lock_;
};

}  // namespace executors
