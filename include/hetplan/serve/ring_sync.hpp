// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Who knows how much of whom: publications that walk around rings, one server a period.

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <hetplan/serve/edge_cloud.hpp>

namespace hetplan::serve {

/// Distances along the rings of a cloud, as they are and as they were: enough to say which publication of one server another knows,
/// without a copy of anything at anybody.
///
/// Complexity  O(N) memory and O(1) a question; with faults O(changes of a ring) more.
/// Source  EPARA, section 3.4 (ring, groups, servers that do not answer); semantics, section 11.
class ring_sync {
 public:
  explicit ring_sync(const edge_cloud& cloud);

  /// The servers of a ring: [first, first + count).
  struct ring {
    std::int32_t first = 0;
    std::int32_t count = 0;
  };
  [[nodiscard]] std::size_t rings() const { return rings_.size(); }
  [[nodiscard]] const ring& operator[](std::size_t r) const { return rings_[r].where; }
  [[nodiscard]] std::size_t ring_of(server_id s) const { return static_cast<std::size_t>(s.value) / group_; }

  /// From a period on a server is out, or in again; periods ascend.
  void set_out(server_id s, bool out, std::int64_t period);
  /// From a period on the gap behind a server is cut, or closed again.
  void set_cut(server_id s, bool cut, std::int64_t period);

  /// The period whose publication of `other` is known to `observer` in period k; none if it never heard of it, or it is older than
  /// max_age. Negative: from before the first one.
  [[nodiscard]] std::optional<std::int64_t> known_period(server_id observer, server_id other, std::int64_t k) const {
    const auto& r = rings_[ring_of(observer)];
    if (!r.then.empty()) {
      const auto j = known_with_faults(r, observer, other, k);
      return j != never_heard ? std::optional(j) : std::nullopt;
    }
    const auto apart = observer.value < other.value ? other.value - observer.value : observer.value - other.value;
    const auto d = apart < r.where.count - apart ? apart : r.where.count - apart;
    if (d > max_age(r)) return std::nullopt;
    return k - d;
  }
  /// Is a server in its ring in a period?
  [[nodiscard]] bool is_in(server_id s, std::int64_t k) const { return rings_[ring_of(s)].then.empty() || distance(s, s, k).has_value(); }
  /// Hops between two servers in a period; none where no way is left.
  [[nodiscard]] std::optional<std::int64_t> distance(server_id a, server_id b, std::int64_t k) const;

  /// Periods that must be remembered: the oldest that is believed, and all since.
  [[nodiscard]] std::int64_t history() const { return history_; }
  /// As long as nothing happens to a ring: no way is longer than half of it.
  [[nodiscard]] std::int64_t history_when_whole() const { return history_when_whole_; }

 private:
  /// A ring from a period on.
  struct topology {
    std::int64_t from = 0;
    std::vector<int> out, cut;             ///< by position: whether; how many cuts at a time
    std::vector<std::int32_t> rank, cuts;  ///< servers that are in before a position, cut gaps before it
  };
  struct ring_state {
    ring where;
    std::vector<topology> then;  ///< ascending; empty as long as nothing has happened
  };

  [[nodiscard]] std::int64_t max_age(const ring_state& r) const { return max_age_ > 0 ? max_age_ : r.where.count; }
  [[nodiscard]] topology& at(ring_state& r, std::int64_t period);
  static void count(topology& t);
  [[nodiscard]] static std::optional<std::int64_t> distance(const topology& t, std::int32_t a, std::int32_t b);
  static constexpr std::int64_t never_heard = std::numeric_limits<std::int64_t>::min();
  [[nodiscard]] std::int64_t known_with_faults(const ring_state& r, server_id observer, server_id other, std::int64_t k) const;

  std::size_t group_;
  std::int64_t max_age_;
  std::int64_t history_ = 0;
  std::int64_t history_when_whole_ = 0;
  std::vector<ring_state> rings_;
};

}  // namespace hetplan::serve

#ifndef HETPLAN_COMPILED
#include <hetplan/serve/ring_sync.ipp>
#endif
