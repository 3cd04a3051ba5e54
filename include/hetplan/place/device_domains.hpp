// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Devices that each operator may still use, and what follows from them: the node of an exact search.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/place/operator_schedule.hpp>
#include <hetplan/place/placement_table.hpp>
#include <hetplan/solve/preemptive_machine.hpp>

namespace hetplan::place {

/// Lower bounds on the makespan [s], each for all placements within memory, any contention and either rule of copies.
struct placement_bounds {
  double path_s = 0;             ///< longest path, with the best devices for each operator and its transfers
  double load_s = 0;             ///< all work, divided among devices within memory in any fractions
  double path_and_memory_s = 0;  ///< longest path on devices that have room for all operators
  double interval_s = 0;         ///< work that must lie in an interval of time, over all devices
  hetplan::status status = {};   ///< infeasible if there is no placement

  [[nodiscard]] double best_s() const;
};

/// Prices of a lower bound on the load; the prices of devices' seconds sum to 1.
struct load_prices {
  std::vector<double> of_second = {};  ///< by device
  std::vector<double> of_byte = {};    ///< by device [s per byte]
  double paid_for_capacity = 0;        ///< of_byte times the devices' capacities
  double bound_s = 0;                  ///< sum over operators of their least price, minus paid_for_capacity
};

/// Returns the best prices found. Complexity  O(rounds x operators x devices), 200 rounds.   Source  see bounds_of.
[[nodiscard]] load_prices load_prices_of(const placement_table& t);

/// Returns all lower bounds.
///
/// path: the largest over operators v of min over devices k of (longest path to v on k, v on k, longest path from there), with paths
/// relaxed to trees (tails_s). load: for prices w of devices that sum to 1 and prices m of their bytes, the sum over operators of the least
/// w_k t_k + m_k bytes, minus m times capacity, is a bound (Lagrange); subgradient steps look for good prices. path_and_memory: the same
/// with prices of bytes and one longest path, whose best devices are found by dynamic programming; other operators add only the prices of
/// their bytes. interval: if the work that cannot leave [a, b] when all is done by the best bound exceeds devices x (b - a), the end moves.
///
/// Complexity   O((operators x devices + edges x devices^2) + rounds x operators x devices + points^2 x operators); 200 rounds, at most
///              48 points of time at which intervals begin or end.
/// Determinism  yes.
/// Source       Fernandez and Bussell, 1973, for intervals; the load is the relaxation of Moirai's eqs. 4c, 5 and 6; the rest is ours.
[[nodiscard]] placement_bounds bounds_of(const placement_table& t);

/// A set of at most 64 devices.
using device_set = std::uint64_t;

/// Calls f with each device of a set, in ascending order.
template <class F>
void each_device(device_set s, F&& f) {
  for (; s != 0; s &= s - 1) f(static_cast<std::size_t>(std::countr_zero(s)));
}

/// Narrowing of the sets of devices that a search leaves to each operator. It removes devices that cannot be part of a schedule below a
/// limit, and bounds the schedules that are left.
///
/// Paths: earliest ends and longest tails of each operator on each device of its set, relaxed to trees as in tails_s; with one port per
/// device, transfers that surely arrive at a device, or leave it, wait for each other. Memory: of decided operators. Load: the prices of
/// load_prices; and all work in fractions within each device's window, from the earliest start there to the least tail behind it, by
/// prices that are kept from call to call. Machines: every device with its decided operators, and every channel with the transfers that
/// surely run on it, as if preemptive. The table must outlive the object. At most 64 devices.
///
/// Complexity  narrow: O(rounds x (edges x devices^2 + operators log operators)).
/// Source      heads, tails and selection by a limit: Carlier and Pinson, "An algorithm for solving the job-shop problem", 1989;
///             preemptive machines: Jackson, Carlier 1982 (preemptive_machine.hpp); prices: duality of linear programs. Deviations: an
///             operator has a set of devices instead of one, and windows of fractions are ours.
class device_domains {
 public:
  device_domains(const placement_table& t, const placement_rules& r);

  /// Returns the initial sets, with every device that can run the operator.
  [[nodiscard]] std::vector<device_set> all() const;
  /// Removes devices that cannot be part of a schedule shorter than `limit_s`.
  /// @return  a lower bound on the schedules of the sets [s]; infinite: there is none below the limit.
  [[nodiscard]] double narrow(std::vector<device_set>& sets, double limit_s);
  /// Returns the longest path through an operator on a device, as of the last narrow.
  [[nodiscard]] double through_s(std::size_t op, std::size_t device) const {
    return end_s_[op * devices_ + device] - table_.time_s(op, device) + tail_s_[op * devices_ + device];
  }
  /// Returns the earliest end of an operator on a device, as of the last narrow.
  [[nodiscard]] double end_s(std::size_t op, std::size_t device) const { return end_s_[op * devices_ + device]; }
  /// Returns the seconds of the transfer that carries an edge.
  [[nodiscard]] double carried_s(std::size_t edge, std::size_t from, std::size_t to) const {
    return carried_s_[(edge * devices_ + from) * devices_ + to];
  }
  [[nodiscard]] const channels& holds() const { return holds_; }

 private:
  /// Transfer that surely runs on a channel. Those of one channel and key may be the same transfer, so only one of them counts.
  struct sure_transfer {
    std::size_t channel, key;
    machine_job job;
  };

  [[nodiscard]] bool measure_ends(const std::vector<device_set>& sets);
  void measure_tails(const std::vector<device_set>& sets);
  /// Returns the time when all transfers that surely arrive at a device before an operator have arrived.
  [[nodiscard]] double ports_in_s(const std::vector<device_set>& sets, std::size_t op, std::size_t device);
  /// Returns the time from an operator's end on a device to the end of all, by the transfers that surely leave the device.
  [[nodiscard]] double ports_out_s(const std::vector<device_set>& sets, std::size_t op, std::size_t device);
  /// Removes devices with too long paths or too little room; false if an operator has no device left.
  [[nodiscard]] bool filter(std::vector<device_set>& sets, double limit_s, bool& changed);
  [[nodiscard]] bool filter_memory(std::vector<device_set>& sets, bool& changed);
  [[nodiscard]] double load_s(const std::vector<device_set>& sets) const;
  /// Returns true if there is more work than the devices' windows below a limit hold.
  [[nodiscard]] bool overfull(const std::vector<device_set>& sets, double limit_s);
  [[nodiscard]] double devices_s(const std::vector<device_set>& sets);
  [[nodiscard]] double channels_s(const std::vector<device_set>& sets);

  const placement_table& table_;
  placement_rules rules_;
  channels holds_;
  std::size_t devices_;
  load_prices prices_;
  std::vector<double> window_price_, window_s_, window_load_;  ///< by device
  std::vector<double> carried_s_;                              ///< edges x devices x devices
  std::vector<double> end_s_, tail_s_;                         ///< operators x devices; a tail begins with the operator
  std::vector<double> first_end_s_;                            ///< by operator
  std::vector<device_set> tied_on_;                            ///< by tied tensor: devices of decided operators that hold it
  std::vector<machine_job> jobs_;
  std::vector<sure_transfer> sure_;
};

/// Returns the only device of a set of one.
[[nodiscard]] std::size_t only(device_set s);
[[nodiscard]] constexpr bool is_one(device_set s) { return s != 0 && (s & (s - 1)) == 0; }
[[nodiscard]] constexpr bool has(device_set s, std::size_t device) { return (s >> device & 1) != 0; }

}  // namespace hetplan::place

#ifndef HETPLAN_SEPARATE
#include <hetplan/place/device_domains.ipp>
#endif
