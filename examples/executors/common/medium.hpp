// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The network's resources as token buckets, which order the pieces of all flows.

#include <algorithm>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/cluster/network.hpp>

namespace executors {

struct flow_rule {
  std::vector<hetplan::resource_use> via = {};
  int priority = 0;                     ///< smaller first
  std::vector<std::size_t> slots = {};  ///< what it holds alone (ports, a whole route), from before its latency to its end
  std::size_t place = 0;                ///< in the line for slots
};

/// The shared state of a flow: plain data, which may lie in memory shared by processes.
struct flow_state {
  enum kind : int { idle, waits, holds };

  int active = 0;
  int slots = idle;
  double asks_s = 0;      ///< time of its next request: arrival of the piece before the last
  double last_end_s = 0;  ///< arrival of its last piece
};

/// A flow's turn: its bytes, their arrival, and the earliest time of the next request.
struct turn {
  double bytes = 0;
  double end_s = 0;
  double asks_again_s = 0;
};

/// Grants turns to flows, piece by piece. It has no clock: times are those of the callers' common clock.
///
/// A piece takes its turn on all resources of its route at once. On each, it starts when the resource is free, but not before the flow's
/// request; it arrives when the last resource is done. A flow has two pieces under way and requests the next one when the first has
/// arrived. So competing flows alternate (fair shares, up to a piece), a flow delayed at one resource does not idle another, and a
/// requested resource is always busy. Turns count from the time at which the request was due: a late wake-up loses nothing while the
/// resource is free.
///
/// On a resource shared with a flow of smaller priority number, a flow gets only the time until that flow's next request.
///
/// A flow with slots is granted all of them at once, from the time at which it asked and the last of them was free: as soon as nobody else
/// can have them earlier or, at the same time, stands in front of it.
///
/// @param Lock  type for std::lock_guard: a mutex of this process, or a lock in memory shared by processes.
/// Complexity   of a piece: O(flows x resources per route).
/// Source       semantics, section 6, rule 2 (fair_share, priority; exclusive, per_link as slots), in pieces instead of rates.
template <class Lock>
class medium {
 public:
  /// @param free_at_s  [resource], then [slot], initially 0.   @param states  [flow], one per rule.   Both outlive the medium.
  medium(std::span<const hetplan::resource> resources, std::vector<flow_rule> rules, std::span<double> free_at_s,
         std::span<flow_state> states, Lock& lock)
      : resources_(resources.begin(), resources.end()), rules_(std::move(rules)), free_at_s_(free_at_s.first(resources.size())),
        slot_free_at_s_(free_at_s.subspan(resources.size())), states_(states), lock_(lock) {
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

  /// Asks for a flow's slots, the first time from at_s on. Returns the time from which it has them; none if it waits: retry soon.
  [[nodiscard]] std::optional<double> enter(std::size_t flow, double at_s) {
    if (rules_[flow].slots.empty()) return at_s;
    const std::lock_guard hold(lock_);
    flow_state& mine = states_[flow];
    if (mine.slots == flow_state::idle) mine = {.slots = flow_state::waits, .asks_s = at_s};
    while (mine.slots == flow_state::waits) {
      const std::size_t next = next_to_hold();
      if (next == rules_.size()) return std::nullopt;
      states_[next].asks_s = slots_from_s(next);
      states_[next].slots = flow_state::holds;
      for (const std::size_t s : rules_[next].slots) slot_free_at_s_[s] = never_s;
    }
    return mine.asks_s;
  }
  /// Starts a flow that has something to send, from at_s on.
  void begin(std::size_t flow, double at_s) {
    const std::lock_guard hold(lock_);
    states_[flow] = {1, states_[flow].slots, at_s, at_s};
  }
  /// Takes a turn of at most `bytes`; none if flows of higher priority leave no room: retry soon.
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
    mine.asks_s = mine.last_end_s;
    mine.last_end_s = end_s;
    return turn{bytes, end_s, mine.asks_s};
  }
  /// Ends a flow until it enters or begins again.
  void end(std::size_t flow, double at_s) {
    const std::lock_guard hold(lock_);
    if (states_[flow].slots == flow_state::holds) {
      for (const std::size_t s : rules_[flow].slots) slot_free_at_s_[s] = at_s;
    }
    states_[flow] = {};
  }
  /// Blocks a resource until a time, except for pieces that have their turn.
  void block(hetplan::resource_id resource, double until_s) {
    const std::lock_guard hold(lock_);
    free_at_s_[resource.index()] = std::max(free_at_s_[resource.index()], until_s);
  }
  /// Returns the bytes of a flow's turn: what the narrowest resource of its route carries in 0.75 ms, or that of a competing flow if it is
  /// less (equal turns are fair; at least an eighth). Infinite for a route without resources.
  [[nodiscard]] double piece_bytes(std::size_t flow) const { return pieces_[flow]; }

 private:
  static constexpr double piece_s = 0.75e-3;
  static constexpr double never_s = std::numeric_limits<double>::infinity();

  /// Returns the time from which a flow that waits can have its slots; never while others hold some.
  [[nodiscard]] double slots_from_s(std::size_t flow) const {
    double from_s = states_[flow].asks_s;
    for (const std::size_t s : rules_[flow].slots) from_s = std::max(from_s, slot_free_at_s_[s]);
    return from_s;
  }
  /// Returns the flow that is granted its slots next; the number of flows if there is none.
  [[nodiscard]] std::size_t next_to_hold() const {
    std::size_t best = rules_.size();
    std::pair best_key{never_s, std::size_t{0}};
    for (std::size_t f = 0; f < rules_.size(); ++f) {
      if (states_[f].slots != flow_state::waits) continue;
      if (const std::pair key{slots_from_s(f), rules_[f].place}; key < best_key) {
        best = f;
        best_key = key;
      }
    }
    return best;
  }

  [[nodiscard]] double work_s(const hetplan::resource_use& u, double bytes) const {
    return bytes * u.weight / resources_[u.resource.index()].capacity.value();
  }
  [[nodiscard]] double start_s(const flow_state& mine, const hetplan::resource_use& u) const {
    return std::max(free_at_s_[u.resource.index()], mine.asks_s);
  }
  /// Returns the next request of any flow of higher priority at a resource.
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
  std::vector<double> pieces_;  ///< [flow], in bytes
  std::span<double> free_at_s_, slot_free_at_s_;
  std::span<flow_state> states_;
  Lock& lock_;
};

}  // namespace executors
