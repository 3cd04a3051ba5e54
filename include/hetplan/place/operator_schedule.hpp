// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Schedule of a placement table: the device and start of every operator, with a bound on every schedule.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/coarsen/merge_small.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/place/placement_table.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::place {

/// Transfers that may not overlap: `none` of them; `per_link`, those that share a network resource; `one_port`, those that leave one
/// device, and those that enter one. `shared` searches with transfers that take turns on each resource, latencies aside, and is judged
/// under fair sharing, where transfers that take turns run at full rate.
/// Source  `none`, `one_port`: Moirai, eq. 7 and eq. 8. `per_link`, `shared`: ours, for networks whose wires are known.
enum class contention { none, per_link, one_port, shared };

inline constexpr std::array all_contentions{contention::none, contention::per_link, contention::one_port, contention::shared};

/// Rules of a schedule that its table does not contain.
struct placement_rules {
  place::contention contention = contention::none;
  transfer_copies copies = transfer_copies::per_edge;

  friend bool operator==(const placement_rules&, const placement_rules&) = default;
};

[[nodiscard]] constexpr std::string_view to_string(contention c) {
  switch (c) {
    case contention::none: return "none";
    case contention::per_link: return "per_link";
    case contention::one_port: return "one_port";
    case contention::shared: break;
  }
  return "shared";
}

/// Returns the network policy under which the simulator runs a schedule of this contention.
[[nodiscard]] constexpr sharing policy_of(contention c) {
  switch (c) {
    case contention::none: return sharing::unlimited;
    case contention::per_link: return sharing::per_link;
    case contention::one_port: return sharing::exclusive;
    case contention::shared: break;
  }
  return sharing::fair_share;
}

/// Channels (ports, resources or none) that a transfer between two devices holds up to its end, for held_s. A channel serves one transfer
/// at a time. All searches model contention by channels alone.
/// Complexity  O(devices^2 x resources of a route).
class channels {
 public:
  channels(const placement_table& t, contention c);

  /// Returns the number of channels, which are numbered from 0.
  [[nodiscard]] std::size_t size() const { return size_; }
  /// Returns the channels that a transfer holds, ascending.
  [[nodiscard]] std::span<const std::size_t> of(std::size_t from, std::size_t to) const {
    return std::span(all_).subspan(first_[from * devices_ + to], first_[from * devices_ + to + 1] - first_[from * devices_ + to]);
  }

 private:
  std::size_t devices_, size_ = 0;
  std::vector<std::size_t> first_, all_;
};

/// Returns the seconds of the transfer that carries an edge's data. With copies per device, an operator's output goes once to each device
/// that reads it and takes as long as its longest edge.
[[nodiscard]] inline double carried_s(const placement_table& t, transfer_copies copies, std::size_t edge, std::size_t from,
                                      std::size_t to) {
  if (from == to) return 0;
  return copies == transfer_copies::per_edge ? t.transfer_s(edge, from, to) : t.output_s(t.edges()[edge].from, from, to);
}

/// Returns the bytes of the transfer that carries an edge's data.
[[nodiscard]] inline double carried_bytes(const placement_table& t, transfer_copies copies, std::size_t edge) {
  return t.edges()[copies == transfer_copies::per_edge ? edge : t.largest_out(t.edges()[edge].from)].bytes;
}

/// Returns how long, up to its end, the transfer of an edge's data holds its channels: all its time, or under contention::shared the time
/// of its bytes, which follow the latency. 0 if it holds nothing.
[[nodiscard]] inline double held_s(const placement_table& t, const placement_rules& r, std::size_t edge, std::size_t from, std::size_t to) {
  if (r.contention != contention::shared || from == to || !t.data().edge_time_s.empty()) return carried_s(t, r.copies, edge, from, to);
  const double bytes = carried_bytes(t, r.copies, edge);
  return bytes > 0 ? bytes * t.pair(from, to).s_per_byte : 0;
}

/// Returns how long the transfer of an edge's data keeps busy the channel at index `at` of its pair's channels. Under contention::shared a
/// wide resource has capacity to spare; 0 if the table does not say how much.
[[nodiscard]] inline double busy_s(const placement_table& t, const placement_rules& r, std::size_t edge, std::size_t from, std::size_t to,
                                   std::size_t at) {
  if (r.contention != contention::shared) return carried_s(t, r.copies, edge, from, to);
  const auto& s_per_byte = t.pair(from, to).busy_s_per_byte;
  return s_per_byte.empty() || !t.data().edge_time_s.empty() ? 0 : carried_bytes(t, r.copies, edge) * s_per_byte[at];
}

/// Bytes in use on each device: bytes held by its operators, each tied tensor once, plus the largest working bytes of an operator, since
/// only one runs at a time. A sum of whole numbers below 2^53 is exact in any order; otherwise capacities have a little slack
/// (placement_table::capacity_bytes).
/// Complexity  fits: O(1). add, remove: O(log of the device's operators), and a shift of the larger working sizes.
/// Source      Moirai, eq. 5. Deviations: m_i is split into bytes held and bytes needed only while an operator runs.
class device_memory {
 public:
  explicit device_memory(const placement_table& t)
      : table_(&t), held_(t.devices(), 0), working_(t.devices()), holders_(t.tied().size() * t.devices(), 0) {}

  /// Returns true if the operator fits on the device beside its operators, exact to the byte.
  [[nodiscard]] bool fits(std::size_t op, std::size_t device) const { return bytes_with(op, device) <= table_->capacity_bytes(device); }
  [[nodiscard]] double bytes_with(std::size_t op, std::size_t device) const {
    return held_[device] + added_bytes(op, device) + std::max(largest_working(device), table_->working_bytes(op));
  }
  /// Returns the held bytes that the operator would add to the device, working bytes aside; its tied tensors may already be there.
  [[nodiscard]] double added_bytes(std::size_t op, std::size_t device) const { return held_beside(op, device, 0); }
  /// Returns the held bytes that removing the operator from the device would free; its tied tensors may stay.
  [[nodiscard]] double freed_bytes(std::size_t op, std::size_t device) const { return held_beside(op, device, 1); }
  [[nodiscard]] double bytes(std::size_t device) const { return held_[device] + largest_working(device); }
  /// Returns the free capacity of a device; negative if exceeded.
  [[nodiscard]] double free_bytes(std::size_t device) const { return table_->capacity_bytes(device) - bytes(device); }

  void add(std::size_t op, std::size_t device) {
    held_[device] += added_bytes(op, device);
    for (const std::uint32_t x : table_->tied_of(op)) ++holders_[x * held_.size() + device];
    if (const double w = table_->working_bytes(op); w > 0) {
      auto& all = working_[device];
      all.insert(std::upper_bound(all.begin(), all.end(), w), w);
    }
  }
  void remove(std::size_t op, std::size_t device) {
    held_[device] -= freed_bytes(op, device);
    for (const std::uint32_t x : table_->tied_of(op)) --holders_[x * held_.size() + device];
    if (const double w = table_->working_bytes(op); w > 0) {
      auto& all = working_[device];
      all.erase(std::lower_bound(all.begin(), all.end(), w));
    }
  }

 private:
  /// Returns the own bytes of an operator, plus those of its tied tensors that exactly `holders` operators of the device hold.
  [[nodiscard]] double held_beside(std::size_t op, std::size_t device, std::uint32_t holders) const {
    double sum = table_->held_bytes(op);
    for (const std::uint32_t x : table_->tied_of(op)) {
      if (holders_[x * held_.size() + device] == holders) sum += table_->tied()[x].bytes;
    }
    return sum;
  }
  [[nodiscard]] double largest_working(std::size_t device) const { return working_[device].empty() ? 0 : working_[device].back(); }

  const placement_table* table_;
  std::vector<double> held_;
  std::vector<std::vector<double>> working_;  ///< by device, ascending
  std::vector<std::uint32_t> holders_;        ///< tied tensors x devices: number of the device's operators that hold it
};

/// Transfer between two devices. With copies per device it serves every reader on the receiver, and `edge` is the first of their edges.
struct scheduled_transfer {
  std::size_t edge = 0;
  std::size_t from = 0;
  std::size_t to = 0;
  double start_s = 0;
  double end_s = 0;

  friend bool operator==(const scheduled_transfer&, const scheduled_transfer&) = default;
};

/// Devices and starts of all operators. Infeasible or none found: no devices, and the status says why. Stopped: the best so far.
struct operator_schedule {
  hetplan::status status = {};
  std::vector<std::size_t> device = {};            ///< by operator; empty without a schedule
  std::vector<double> start_s = {};                ///< by operator; it ends after its time on its device
  std::vector<scheduled_transfer> transfers = {};  ///< in order of (start, end, edge)
  double makespan_s = std::numeric_limits<double>::infinity();
  double bound_s = 0;      ///< lower bound on every makespan under these rules; the makespan if proven optimal; infinite if infeasible
  long long steps = 0;     ///< taken by the search; see step_budget
  bool exhausted = false;  ///< true if no schedule with transfers in turn is shorter; the gap left is the bound's, under sharing

  [[nodiscard]] bool found() const { return !device.empty(); }
  /// Returns the most by which the makespan exceeds the optimum, relative to the optimum; 0 if proven optimal, infinite without a schedule.
  [[nodiscard]] double gap() const { return found() && makespan_s <= bound_s ? 0 : makespan_s / bound_s - 1; }
};

/// Sorts transfers by (start, end, edge, receiver).
void sort_transfers(std::vector<scheduled_transfer>& transfers);

/// Returns the first rule that a schedule breaks, as a sentence, or nothing. Times may be off by a part in 1e9.
///
/// Checked: every operator once, on a device that can run it; memory; one operator at a time on a device; every edge between devices
/// carried after its producer and before its reader, for its full time; one transfer at a time on a channel; the makespan.
/// Complexity  O((operators + transfers) log).
/// Source      Moirai, eqs. 4a-4c, 5, 6, 7 and 8.
[[nodiscard]] std::optional<std::string> find_broken_rule(const placement_table& t, const placement_rules& r, const operator_schedule& s);

/// Returns the operators in the order in which devices run them: by start, then by end, since operators without duration run before those
/// that start with them, then producers first.
/// Complexity  O(operators log operators).
[[nodiscard]] std::vector<std::size_t> sequence_of(const placement_table& t, const operator_schedule& s);

/// Returns, by device, the bytes that placed operators need beyond its capacity; negative: free bytes.
/// @param device  of each operator; not a device number: not placed.
/// Source         Moirai, eq. 5; beside weights, the working bytes of a device's largest operator, since only one runs at a time.
[[nodiscard]] std::vector<double> excess_bytes(const placement_table& t, const std::vector<std::size_t>& device);

/// Returns the largest of excess_bytes; 0 or less if the placement fits.
[[nodiscard]] double largest_overflow_bytes(const placement_table& t, const std::vector<std::size_t>& device);

/// Returns the table of one inference: all samples of the job's batch at once, forward passes only, every block of layers an operator.
///
/// Times are the cost model's for the block's layers in sequence, as in a plan's stage, on the fastest number of the device's
/// accelerators; infinite where a layer cannot run on the device (no profile, no such batch). An edge has the bytes that a plan would
/// send from block to block. A device's capacity is its memory budget.
///
/// @param blocks   operators that stay together, for example from coarsen::fuse_operators; by default every layer alone.
/// Complexity      O(layers x devices x accelerators + edges log edges + devices^2).
/// Throws          invalid_input (a job that is not inference), invalid_model (a user's model misbehaves).
/// Source          Moirai, section III-C. Deviations: a weight shared by layers of several blocks is a tied tensor, held once per device
///                 as in the simulator.
[[nodiscard]] placement_table make_placement_table(const planning_problem& problem, const coarsen::blocks& blocks);
[[nodiscard]] placement_table make_placement_table(const planning_problem& problem);

/// Returns the plan of a schedule: a stage for each block, the order of operators on each device and, if transfers contend, the start of
/// each transfer as its release. The simulator reproduces the schedule's makespan.
///
/// @param t        make_placement_table(problem, blocks).
/// @param s        found by a search of the table under these rules.
/// @param planner  name of the planner in the plan.
/// Complexity      O(layers + (blocks + transfers) log).
/// Source          ours: greedy grants of ports do not give the start times of an exact schedule, so the plan records them.
[[nodiscard]] plan plan_of(const planning_problem& problem, const coarsen::blocks& blocks, const placement_table& t,
                           const placement_rules& r, const operator_schedule& s, std::string planner);

}  // namespace hetplan::place

#ifndef HETPLAN_SEPARATE
#include <hetplan/place/operator_schedule.ipp>
#endif
