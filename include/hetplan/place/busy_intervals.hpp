// SPDX-License-Identifier: BSL-1.0
#pragma once
/// When a device or a channel is busy, and where something still fits in.

#include <algorithm>
#include <cstddef>
#include <vector>

#include <hetplan/core/linkage.hpp>

namespace HETPLAN_NAMESPACE::place {

/// Disjoint intervals in ascending order; intervals that touch are one.
///
/// Something without duration may stand at any point that is not inside an interval, and nothing runs across that point.
/// Complexity  earliest: O(log intervals + intervals that are passed). add: the intervals behind move.
/// Source      insertion into idle slots: HEFT (Topcuoglu et al., 2002, section 4). Deviations: what takes no time, as above.
class busy_intervals {
 public:
  struct interval {
    double start_s, end_s;
  };

  /// The earliest start, from `ready_s` on, of a gap of that length.
  [[nodiscard]] double earliest(double ready_s, double duration_s) const {
    auto it = std::partition_point(all_.begin(), all_.end(), [&](const interval& i) { return i.end_s <= ready_s; });
    for (; it != all_.end() && it->start_s < ready_s + duration_s; ++it) ready_s = std::max(ready_s, it->end_s);
    return ready_s;
  }

  void add(double start_s, double end_s) {
    auto it = std::partition_point(all_.begin(), all_.end(), [&](const interval& i) { return i.end_s < start_s; });
    if (it != all_.end() && start_s == end_s && it->start_s <= start_s) return;
    if (it != all_.end() && it->end_s == start_s) {
      it->end_s = end_s;
      if (const auto next = it + 1; next != all_.end() && next->start_s == end_s) {
        it->end_s = next->end_s;
        all_.erase(next);
      }
    } else if (it != all_.end() && it->start_s == end_s) {
      it->start_s = start_s;
    } else {
      all_.insert(it, {start_s, end_s});
    }
  }

 private:
  std::vector<interval> all_;
};

/// The earliest start, from `ready_s` on, of a gap of that length in all of them: asked of each in turn until none moves it.
///
/// Complexity  O((intervals that are passed + 1) x channels) calls of earliest.
/// Source      ours: a transfer that holds several wires at once is inserted where all are idle.
template <class Channels>
[[nodiscard]] double earliest_in_all(const Channels& channels, const std::vector<busy_intervals>& busy, double ready_s, double duration_s) {
  for (bool moved = true; moved;) {
    moved = false;
    for (const std::size_t c : channels) {
      const double start_s = busy[c].earliest(ready_s, duration_s);
      moved |= start_s > ready_s;
      ready_s = start_s;
    }
  }
  return ready_s;
}

}  // namespace HETPLAN_NAMESPACE::place
