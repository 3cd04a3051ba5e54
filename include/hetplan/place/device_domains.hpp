// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Which devices each operator may still go to, and what follows from that: the node of an exact search.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/place/operator_schedule.hpp>
#include <hetplan/place/placement_table.hpp>
#include <hetplan/solve/preemptive_machine.hpp>

namespace hetplan::place {

// What no schedule of a placement table can beat, whatever contends.

/// Lower bounds on the makespan [s], each for all placements within memory, any contention and either rule of copies.
struct placement_bounds {
  double path_s = 0;             ///< the longest path, with the best device at each operator and its transfers
  double load_s = 0;             ///< all work, shared out in fractions over devices within memory
  double path_and_memory_s = 0;  ///< a longest path whose devices have room for all operators
  double interval_s = 0;         ///< work that must lie in an interval of time, over all devices
  hetplan::status status = {};   ///< infeasible: no placement can be

  [[nodiscard]] double best_s() const;
};

/// Prices that make a bound of the load: those of devices' seconds sum to 1.
struct load_prices {
  std::vector<double> of_second = {};  ///< by device
  std::vector<double> of_byte = {};    ///< by device [s per byte]
  double paid_for_capacity = 0;        ///< of_byte times the devices' capacities
  double bound_s = 0;                  ///< the sum over operators of their least price, less what is paid for capacity
};

/// Complexity  O(rounds x operators x devices), 200 rounds.   Source  see bounds_of.
[[nodiscard]] load_prices load_prices_of(const placement_table& t);

/// All of them.
///
/// path: the longest of min over devices k of (longest way to v on k, v on k, longest way from there), ways relaxed to trees (tails_s).
/// load: for prices w of devices that sum to 1 and prices m of their bytes, the sum over operators of the least w_k t_k + m_k bytes,
/// less m times capacity, is a bound (Lagrange); subgradient steps look for good prices. path_and_memory: the same with prices
/// of bytes and one longest path, whose best devices are found by dynamic programming; other operators add only their bytes' prices.
/// interval: where the work that cannot leave [a, b] even if all is done by the best bound exceeds devices x (b - a), the end moves on.
///
/// Complexity   O((operators x devices + edges x devices^2) + rounds x operators x devices + points^2 x operators); 200 rounds, at most
///              48 points of time at which intervals begin or end.
/// Determinism  yes.
/// Source       Fernandez and Bussell, 1973, for intervals; the load is the relaxation of Moirai's eqs. 4c, 5 and 6; the rest is ours.
[[nodiscard]] placement_bounds bounds_of(const placement_table& t);

/// A set of at most 64 devices.
using device_set = std::uint64_t;

/// Calls with each device of a set, in their order.
template <class F>
void each_device(device_set s, F&& f) {
  for (; s != 0; s &= s - 1) f(static_cast<std::size_t>(std::countr_zero(s)));
}

/// What a search knows of devices while it chooses them: for each operator the set that is left. Narrowing takes away what cannot be
/// part of a schedule below a limit, and bounds all that can.
///
/// Paths: earliest ends and longest tails of each operator on each device of its set, relaxed to trees as in tails_s; with one port a
/// device, transfers that surely arrive there, or leave from there, wait for each other. Memory: by what is decided. Load: the prices of
/// load_prices; and all work in fractions within each device's window, from the first that may start there to the least that follows
/// there, by prices that are kept from call to call. Machines: every device with the operators that are decided for it, and every
/// channel with the transfers that surely run on it, as if they could be interrupted.
///
/// The table must outlive it. At most 64 devices.
/// Complexity  narrow: O(rounds x (edges x devices^2 + operators log operators)).
/// Source      heads, tails and selection by a limit: Carlier and Pinson, "An algorithm for solving the job-shop problem", 1989; machines
///             that may be interrupted: Jackson, Carlier 1982 (preemptive_machine.hpp); prices: duality of linear programs. Deviations:
///             an operator has a set of devices instead of one, and windows of fractions are ours.
class device_domains {
 public:
  device_domains(const placement_table& t, const placement_rules& r);

  /// The sets of all operators, to begin with: where each can run.
  [[nodiscard]] std::vector<device_set> all() const;
  /// Takes away what cannot be part of a schedule shorter than `limit_s`.
  ///
  /// @return  what no schedule of these sets can beat [s]; infinite: there is none below the limit.
  [[nodiscard]] double narrow(std::vector<device_set>& sets, double limit_s);
  /// Of the last narrow: the longest path through an operator on a device.
  [[nodiscard]] double through_s(std::size_t op, std::size_t device) const {
    return end_s_[op * devices_ + device] - table_.time_s(op, device) + tail_s_[op * devices_ + device];
  }
  /// Of the last narrow: the earliest end of an operator on a device.
  [[nodiscard]] double end_s(std::size_t op, std::size_t device) const { return end_s_[op * devices_ + device]; }
  /// Of the transfer that carries an edge.
  [[nodiscard]] double carried_s(std::size_t edge, std::size_t from, std::size_t to) const {
    return carried_s_[(edge * devices_ + from) * devices_ + to];
  }
  [[nodiscard]] const channels& holds() const { return holds_; }

 private:
  /// A transfer that surely runs on a channel. Those of one channel and key may be one and the same, so that only one of them counts.
  struct sure_transfer {
    std::size_t channel, key;
    machine_job job;
  };

  [[nodiscard]] bool measure_ends(const std::vector<device_set>& sets);
  void measure_tails(const std::vector<device_set>& sets);
  /// When the transfers that surely arrive at a device before an operator are all there.
  [[nodiscard]] double ports_in_s(const std::vector<device_set>& sets, std::size_t op, std::size_t device);
  /// From an operator's end on a device to the end of all, by the transfers that surely leave from there.
  [[nodiscard]] double ports_out_s(const std::vector<device_set>& sets, std::size_t op, std::size_t device);
  /// Takes away what is too long, or has no room; false: an operator has no device left.
  [[nodiscard]] bool filter(std::vector<device_set>& sets, double limit_s, bool& changed);
  [[nodiscard]] bool filter_memory(std::vector<device_set>& sets, bool& changed);
  [[nodiscard]] double load_s(const std::vector<device_set>& sets) const;
  /// Is there more work than the devices' windows below a limit hold?
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
  std::vector<device_set> tied_on_;                            ///< by tied tensor: where an operator that holds it is decided
  std::vector<machine_job> jobs_;
  std::vector<sure_transfer> sure_;
};

/// The only device of a set of one.
[[nodiscard]] std::size_t only(device_set s);
[[nodiscard]] constexpr bool is_one(device_set s) { return s != 0 && (s & (s - 1)) == 0; }
[[nodiscard]] constexpr bool has(device_set s, std::size_t device) { return (s >> device & 1) != 0; }

}  // namespace hetplan::place

#ifndef HETPLAN_SEPARATE
#include <hetplan/place/device_domains.ipp>
#endif
