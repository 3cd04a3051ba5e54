// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A schedule that grows operator by operator: availability with insertion, the step that all list schedulers share.

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/version.hpp>
#include <hetplan/place/operator_schedule.hpp>
#include <hetplan/place/placement_table.hpp>

namespace hetplan::place {

// Placements that keep the devices' memory: found from nothing, or from one that does not.

struct fitting {
  hetplan::status status = {};           ///< infeasible: proven; none found: the search was cut off
  std::vector<std::size_t> device = {};  ///< by operator; empty: none was found
};

/// Whether operators one by one and all together leave room for any placement: infeasible where no device can run or hold one of them, or
/// where there are more bytes than room, with the row that proves it.
///
/// Complexity  O(operators x devices).   Source  ours.
[[nodiscard]] status refute_placements(const placement_table& t);

/// Infeasible, after every placement has been tried: whether memory or routes forbid them, or both together.
///
/// @param searched  choices of devices for some operators or all, each looked at, or left out with all that go on from one that was.
[[nodiscard]] status infeasible_after(const placement_table& t, long long searched);

/// The problem of a proof: "placements of 5 operators on 2 devices".
[[nodiscard]] std::string named_problem(const placement_table& t);

/// Any placement within memory: operators by falling size, each on the device with most room left, then a depth-first search.
///
/// @param most_nodes  of the search.
/// @return            infeasible where none can be: see refute_placements, or the search came to its end.
/// Complexity         O(operators x devices) where sizes go in easily; bin packing otherwise, up to most_nodes.
/// Source             ours: memory may be full to the byte (Moirai's example-1), where list schedules run into a dead end.
[[nodiscard]] fitting find_fitting_placement(const placement_table& t, long long most_nodes = 200'000);

/// A placement within memory from one that exceeds it: while a device is over its capacity, the operator whose move costs least time
/// for each byte that it frees goes to a device with room; or two operators change places. Then, if need be, find_fitting_placement.
///
/// @param device  of each operator, on devices that can run them.
/// Complexity     O(moves x operators of a device x devices); swaps are tried for up to 200 operators of a device.
///             Operators that hold a tied tensor move one by one, or all of the device together.
/// Source         ours: the list schedulers' papers have no memory (HEFT, GETF) or no way back (m-ETF, m-SCT).
[[nodiscard]] fitting repair_memory(const placement_table& t, std::vector<std::size_t> device);

// When a device or a channel is busy, and where something still fits in.

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

/// Where an operator would run on a device.
struct trial {
  double data_s = 0;   ///< all that it reads is there
  double start_s = 0;  ///< infinite: it cannot run there, or a route is missing
  double end_s = 0;
};

/// Operators in an order in which producers come before readers; each goes into the first gap of its device, and its transfers into the
/// first gaps of their channels, in the order of its edges.
///
/// The table must outlive it.
/// Complexity  try_on, place: O(in-edges x intervals that are passed).
/// Source      insertion: HEFT (Topcuoglu et al., 2002, section 4); transfers that take turns on a channel: ours.
class partial_schedule {
 public:
  partial_schedule(const placement_table& t, const placement_rules& r);
  partial_schedule(const placement_table&& the_table_must_outlive_it, const placement_rules&) = delete;

  /// Memory is the caller's business: see memory().
  [[nodiscard]] trial try_on(std::size_t op, std::size_t device);
  /// Puts it there as try_on says. The operators that it reads from are placed; the device can run it.
  void place(std::size_t op, std::size_t device);

  [[nodiscard]] bool placed(std::size_t op) const { return schedule_.device[op] != none; }
  [[nodiscard]] std::size_t device_of(std::size_t op) const { return schedule_.device[op]; }
  [[nodiscard]] double start_s(std::size_t op) const { return schedule_.start_s[op]; }
  [[nodiscard]] double end_s(std::size_t op) const { return end_s_[op]; }
  [[nodiscard]] const device_memory& memory() const { return memory_; }
  /// The operator of a device that ends last; none: it is idle.
  [[nodiscard]] std::size_t last_on(std::size_t device) const { return last_[device]; }
  [[nodiscard]] double makespan_s() const { return makespan_s_; }
  [[nodiscard]] const placement_table& table() const { return table_; }
  [[nodiscard]] const placement_rules& rules() const { return rules_; }

  /// All operators are placed. The bound is left at 0.
  [[nodiscard]] operator_schedule result() &&;

  static constexpr std::size_t none = ~std::size_t{0};

 private:
  /// The transfers that `op` needs on the device, into arriving_, and when the last one ends.
  [[nodiscard]] double bring_data(std::size_t op, std::size_t device);

  /// The channels of a transfer; what takes no time holds none under contention::shared.
  [[nodiscard]] std::span<const std::size_t> held_by(std::size_t from, std::size_t to, bool for_some_time) const {
    if (rules_.contention == contention::shared && !for_some_time) return {};
    return holds_.of(from, to);
  }

  const placement_table& table_;
  placement_rules rules_;
  channels holds_;
  device_memory memory_;
  operator_schedule schedule_;
  std::vector<double> end_s_;
  std::vector<busy_intervals> busy_, channel_busy_;
  std::vector<double> sent_s_;  ///< copies per device: producer x device, when the output is there; negative: not sent
  std::vector<std::size_t> last_;
  double makespan_s_ = 0;
  std::vector<scheduled_transfer> arriving_;  ///< of the last bring_data
  std::vector<double> held_from_s_;           ///< by transfer of arriving_: from when on it holds its channels
};

/// The schedule of a placement: operators in an order in which producers come first, each on its device.
///
/// @return  infinite makespan and no schedule where a device cannot run an operator or a route is missing.
[[nodiscard]] operator_schedule schedule_in_order(const placement_table& t, const placement_rules& r, const std::vector<std::size_t>& order,
                                                  const std::vector<std::size_t>& device);

}  // namespace hetplan::place

#ifndef HETPLAN_SEPARATE
#include <hetplan/place/partial_schedule.ipp>
#endif
