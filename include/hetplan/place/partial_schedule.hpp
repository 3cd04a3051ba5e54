// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Schedule that grows operator by operator with insertion, the step that all list schedulers share; placements within memory.

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

struct fitting {
  hetplan::status status = {};           ///< infeasible: proven; none found: the search was cut off
  std::vector<std::size_t> device = {};  ///< by operator; empty if none was found
};

/// Checks memory for all operators one by one and together. Returns infeasible, with the row that proves it, if no device can run or hold
/// one of them, or if there are more bytes than room.
/// Complexity  O(operators x devices).   Source  ours.
[[nodiscard]] status refute_placements(const placement_table& t);

/// Returns infeasible for an exhausted search, with the cause: memory, routes, or both together.
/// @param searched  choices of devices for some or all operators, each examined, or left out as an extension of an examined one.
[[nodiscard]] status infeasible_after(const placement_table& t, long long searched);

/// Returns the name of the problem for a proof: "placements of 5 operators on 2 devices".
[[nodiscard]] std::string named_problem(const placement_table& t);

/// Returns any placement within memory: operators by falling size, each on the device with most room left, then a depth-first search.
/// @param most_nodes  limit on the nodes of the search.
/// @return            infeasible if proven by refute_placements or by a complete search.
/// Complexity         O(operators x devices) if sizes fit easily; bin packing otherwise, up to most_nodes.
/// Source             ours: memory may be full to the byte (Moirai's example-1), where list schedules run into a dead end.
[[nodiscard]] fitting find_fitting_placement(const placement_table& t, long long most_nodes = 200'000);

/// Repairs a placement that exceeds memory. While a device is over its capacity, the operator whose move costs the least time per freed
/// byte goes to a device with room, or two operators are swapped. If that fails, find_fitting_placement is used.
///
/// @param device  of each operator, on devices that can run them.
/// Complexity     O(moves x operators of a device x devices); swaps are tried for up to 200 operators of a device. Operators that hold a
///                tied tensor move one by one, or all of the device together.
/// Source         ours: the list schedulers' papers have no memory limits (HEFT, GETF) or no repair (m-ETF, m-SCT).
[[nodiscard]] fitting repair_memory(const placement_table& t, std::vector<std::size_t> device);

/// Disjoint busy intervals in ascending order; adjacent intervals are merged. A job without duration may be at any point that is not inside
/// an interval, and no other job runs across that point.
/// Complexity  earliest: O(log intervals + intervals that are passed). add: a shift of the later intervals.
/// Source      insertion into idle slots: HEFT (Topcuoglu et al., 2002, section 4). Deviations: jobs without duration, as above.
class busy_intervals {
 public:
  struct interval {
    double start_s, end_s;
  };

  /// Returns the earliest start, from `ready_s` on, of a gap of length `duration_s`.
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

/// Returns the earliest start, from `ready_s` on, of a gap of length `duration_s` in all channels at once. Each channel is queried in turn
/// until none delays the start.
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

/// Times of an operator if it ran on a device.
struct trial {
  double data_s = 0;   ///< arrival of its last input
  double start_s = 0;  ///< infinite if the device cannot run it or a route is missing
  double end_s = 0;
};

/// Schedule built in an order in which producers come before readers. Each operator goes into the first gap of its device, and its
/// transfers into the first gaps of their channels, in the order of its edges. The table must outlive the schedule.
/// Complexity  try_on, place: O(in-edges x intervals that are passed).
/// Source      insertion: HEFT (Topcuoglu et al., 2002, section 4); transfers that take turns on a channel: ours.
class partial_schedule {
 public:
  partial_schedule(const placement_table& t, const placement_rules& r);
  partial_schedule(const placement_table&& the_table_must_outlive_it, const placement_rules&) = delete;

  /// Returns the times of an operator on a device. Memory is not checked; see memory().
  [[nodiscard]] trial try_on(std::size_t op, std::size_t device);
  /// Places an operator at the times of try_on. Its producers must be placed, and the device must be able to run it.
  void place(std::size_t op, std::size_t device);

  [[nodiscard]] bool placed(std::size_t op) const { return schedule_.device[op] != none; }
  [[nodiscard]] std::size_t device_of(std::size_t op) const { return schedule_.device[op]; }
  [[nodiscard]] double start_s(std::size_t op) const { return schedule_.start_s[op]; }
  [[nodiscard]] double end_s(std::size_t op) const { return end_s_[op]; }
  [[nodiscard]] const device_memory& memory() const { return memory_; }
  /// Returns the operator of a device that ends last; `none` if the device is idle.
  [[nodiscard]] std::size_t last_on(std::size_t device) const { return last_[device]; }
  [[nodiscard]] double makespan_s() const { return makespan_s_; }
  [[nodiscard]] const placement_table& table() const { return table_; }
  [[nodiscard]] const placement_rules& rules() const { return rules_; }

  /// Returns the schedule of all operators, which must all be placed. The bound is left at 0.
  [[nodiscard]] operator_schedule result() &&;

  static constexpr std::size_t none = ~std::size_t{0};

 private:
  /// Stores in arriving_ the transfers that `op` needs on the device. Returns the end of the last one.
  [[nodiscard]] double bring_data(std::size_t op, std::size_t device);

  /// Returns the channels that a transfer holds. Under contention::shared a transfer without duration holds none.
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
  std::vector<double> sent_s_;  ///< with copies per device: producers x devices, arrival of the output; negative: not sent
  std::vector<std::size_t> last_;
  double makespan_s_ = 0;
  std::vector<scheduled_transfer> arriving_;  ///< of the last bring_data
  std::vector<double> held_from_s_;           ///< by transfer of arriving_: when it begins to hold its channels
};

/// Returns the schedule of a placement for an order of operators in which producers come first.
/// @return  infinite makespan and no schedule if a device cannot run an operator or a route is missing.
[[nodiscard]] operator_schedule schedule_in_order(const placement_table& t, const placement_rules& r, const std::vector<std::size_t>& order,
                                                  const std::vector<std::size_t>& device);

}  // namespace hetplan::place

#ifndef HETPLAN_SEPARATE
#include <hetplan/place/partial_schedule.ipp>
#endif
