// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The answer to a placement table: which device runs which operator when, and what no schedule can beat.

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

// What transfers of a placement hold while they run, and how often an output is sent.

/// Which transfers may not overlap: none of them; those that share a resource of the network; those that leave one device, and those
/// that enter one.
///
/// `shared` searches as if transfers took turns on each resource, latencies aside, and is judged under fair sharing: where transfers take
/// turns, nobody's share shrinks.
/// Source  `none`, `one_port`: Moirai, eq. 7 and eq. 8. `per_link`, `shared`: ours, for networks whose wires are known.
enum class contention { none, per_link, one_port, shared };

inline constexpr std::array all_contentions{contention::none, contention::per_link, contention::one_port, contention::shared};

/// The rules of a schedule beside its table.
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

/// The network policy under which the simulator runs such a schedule.
[[nodiscard]] constexpr sharing policy_of(contention c) {
  switch (c) {
    case contention::none: return sharing::unlimited;
    case contention::per_link: return sharing::per_link;
    case contention::one_port: return sharing::exclusive;
    case contention::shared: break;
  }
  return sharing::fair_share;
}

/// What a transfer between two devices holds to its end (held_s): one transfer at a time holds a channel. Ports, resources, or nothing; the
/// one form of contention that all searches know.
///
/// Complexity  O(devices^2 x resources of a route).
class channels {
 public:
  channels(const placement_table& t, contention c);

  /// 0 ... size() - 1 are the channels.
  [[nodiscard]] std::size_t size() const { return size_; }
  /// Ascending.
  [[nodiscard]] std::span<const std::size_t> of(std::size_t from, std::size_t to) const {
    return std::span(all_).subspan(first_[from * devices_ + to], first_[from * devices_ + to + 1] - first_[from * devices_ + to]);
  }

 private:
  std::size_t devices_, size_ = 0;
  std::vector<std::size_t> first_, all_;
};

/// Seconds of the transfer that carries an edge's data. With copies per device, an operator's output goes once to each device that
/// reads it, as long as its longest edge.
[[nodiscard]] inline double carried_s(const placement_table& t, transfer_copies copies, std::size_t edge, std::size_t from,
                                      std::size_t to) {
  if (from == to) return 0;
  return copies == transfer_copies::per_edge ? t.transfer_s(edge, from, to) : t.output_s(t.edges()[edge].from, from, to);
}

/// The bytes of that transfer.
[[nodiscard]] inline double carried_bytes(const placement_table& t, transfer_copies copies, std::size_t edge) {
  return t.edges()[copies == transfer_copies::per_edge ? edge : t.largest_out(t.edges()[edge].from)].bytes;
}

/// For how long, up to its end, that transfer holds its channels: all of it, or under contention::shared its bytes alone, which flow
/// behind the latency. 0: it holds nothing.
[[nodiscard]] inline double held_s(const placement_table& t, const placement_rules& r, std::size_t edge, std::size_t from, std::size_t to) {
  if (r.contention != contention::shared || from == to || !t.data().edge_time_s.empty()) return carried_s(t, r.copies, edge, from, to);
  const double bytes = carried_bytes(t, r.copies, edge);
  return bytes > 0 ? bytes * t.pair(from, to).s_per_byte : 0;
}

/// How long that transfer keeps a channel of its pair busy, the one at place `at` among them. Under contention::shared a wide resource has
/// room beside it; 0 where the table does not say how much.
[[nodiscard]] inline double busy_s(const placement_table& t, const placement_rules& r, std::size_t edge, std::size_t from, std::size_t to,
                                   std::size_t at) {
  if (r.contention != contention::shared) return carried_s(t, r.copies, edge, from, to);
  const auto& s_per_byte = t.pair(from, to).busy_s_per_byte;
  return s_per_byte.empty() || !t.data().edge_time_s.empty() ? 0 : carried_bytes(t, r.copies, edge) * s_per_byte[at];
}

// How full the devices are while operators are placed.

/// Bytes on each device: what its operators hold, a tied tensor once, and what the largest of them works with: only one runs at a time.
///
/// A sum of many bytes is exact where it is a whole number below 2^53, in any order; elsewhere capacities have a little slack
/// (placement_table::capacity_bytes).
/// Complexity  fits: O(1). add, remove: O(log of the device's operators), and the sizes behind one move.
/// Source      Moirai, eq. 5. Deviations: m_i is split into what is held and what is only needed while an operator runs.
class device_memory {
 public:
  explicit device_memory(const placement_table& t)
      : table_(&t), held_(t.devices(), 0), working_(t.devices()), holders_(t.tied().size() * t.devices(), 0) {}

  /// Would the operator fit beside what is there? By the byte: a full device is full.
  [[nodiscard]] bool fits(std::size_t op, std::size_t device) const { return bytes_with(op, device) <= table_->capacity_bytes(device); }
  [[nodiscard]] double bytes_with(std::size_t op, std::size_t device) const {
    return held_[device] + added_bytes(op, device) + std::max(largest_working(device), table_->working_bytes(op));
  }
  /// What the device would hold more with an operator that is not there, whatever it works with: tied tensors may be there already.
  [[nodiscard]] double added_bytes(std::size_t op, std::size_t device) const { return held_beside(op, device, 0); }
  /// What the device would hold less without one of its operators: tied tensors may stay.
  [[nodiscard]] double freed_bytes(std::size_t op, std::size_t device) const { return held_beside(op, device, 1); }
  [[nodiscard]] double bytes(std::size_t device) const { return held_[device] + largest_working(device); }
  /// What is left of a device's capacity; negative: it is over it.
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
  /// Of an operator's bytes, those of tied tensors that so many operators of the device hold, and its own.
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
  std::vector<std::uint32_t> holders_;        ///< tied tensors x devices: operators there that hold it
};

/// A transfer between two devices. With copies per device it serves every reader there; `edge` is then the first of their edges.
struct scheduled_transfer {
  std::size_t edge = 0;
  std::size_t from = 0;
  std::size_t to = 0;
  double start_s = 0;
  double end_s = 0;

  friend bool operator==(const scheduled_transfer&, const scheduled_transfer&) = default;
};

/// Operators on devices, in time. Infeasible, or none found: no device for any operator, and the status says why. Stopped: the best so
/// far.
struct operator_schedule {
  hetplan::status status = {};
  std::vector<std::size_t> device = {};            ///< by operator; empty: there is no schedule
  std::vector<double> start_s = {};                ///< by operator; it ends after its time on that device
  std::vector<scheduled_transfer> transfers = {};  ///< in order of (start, end, edge)
  double makespan_s = std::numeric_limits<double>::infinity();
  double bound_s = 0;   ///< no schedule of the table under these rules is shorter; the makespan where proven optimal; infinite: none exists
  long long steps = 0;  ///< that the search took; see step_budget
  bool exhausted = false;  ///< no schedule whose transfers take turns is shorter: what is left of the gap is the bound's, under sharing

  [[nodiscard]] bool found() const { return !device.empty(); }
  /// By how much the makespan may exceed the optimum, relative to it; 0: proven optimal. Infinite where there is no schedule.
  [[nodiscard]] double gap() const { return found() && makespan_s <= bound_s ? 0 : makespan_s / bound_s - 1; }
};

/// In the order of (start, end, edge, receiver).
void sort_transfers(std::vector<scheduled_transfer>& transfers);

/// The first rule that a schedule breaks, as a sentence; nothing: it keeps all of them. Times may be off by a part in 1e9.
///
/// Checked: every operator once, on a device that can run it; memory; one operator at a time on a device; every edge between devices
/// carried, after its producer and before its reader, for as long as it takes; one transfer at a time on a channel; the makespan.
/// Complexity  O((operators + transfers) log).
/// Source      Moirai, eqs. 4a-4c, 5, 6, 7 and 8.
[[nodiscard]] std::optional<std::string> find_broken_rule(const placement_table& t, const placement_rules& r, const operator_schedule& s);

/// Operators in the order in which devices run them: by start, then by end, for what takes no time runs before what starts with it; then
/// producers first.
///
/// Complexity  O(operators log operators).
[[nodiscard]] std::vector<std::size_t> sequence_of(const placement_table& t, const operator_schedule& s);

/// By device: what operators that are placed need beyond its capacity; negative: room.
///
/// @param device  of each operator; no number of a device: it is not placed.
/// Source         Moirai, eq. 5; beside weights, what the largest operator of a device works with: only one runs at a time.
[[nodiscard]] std::vector<double> excess_bytes(const placement_table& t, const std::vector<std::size_t>& device);

/// By how many bytes the placement exceeds a device's capacity; 0 or less: it fits everywhere.; the largest of
/// excess_bytes.
[[nodiscard]] double largest_overflow_bytes(const placement_table& t, const std::vector<std::size_t>& device);

// Between a planning problem and a placement table: the models are asked, and a schedule becomes a plan.

/// The table of one inference: all samples of the job's batch at once, forwards only, every block of layers an operator.
///
/// Seconds are the cost model's for the block's layers one behind the other, as a plan's stage has them, on as many of the device's
/// accelerators as is fastest; infinite where a layer cannot run on the device (no profile, no such batch). An edge has the bytes that
/// a plan would send from block to block. A device takes what its memory budget allows.
///
/// @param blocks   operators that stay together, such as coarsen::fuse_operators gives; without: every layer alone.
/// Complexity      O(layers x devices x accelerators + edges log edges + devices^2).
/// Throws          invalid_input (a job that is not inference), invalid_model (a user's model misbehaves).
/// Source          Moirai, section III-C. Deviations: a weight that layers of several blocks share is a tied tensor, once per device as in
///                 the simulator.
[[nodiscard]] placement_table make_placement_table(const planning_problem& problem, const coarsen::blocks& blocks);
[[nodiscard]] placement_table make_placement_table(const planning_problem& problem);

/// The plan of a schedule: a stage for each block, the order of operators on each device, and, where transfers contend, each transfer
/// released when the schedule starts it. The simulator then gives the schedule's makespan again.
///
/// @param t        make_placement_table(problem, blocks).
/// @param s        found by a search of the table under these rules.
/// @param planner  its name in the plan.
/// Complexity      O(layers + (blocks + transfers) log).
/// Source          ours: greedy grants of ports are not the start times of an exact schedule, so those are written down.
[[nodiscard]] plan plan_of(const planning_problem& problem, const coarsen::blocks& blocks, const placement_table& t,
                           const placement_rules& r, const operator_schedule& s, std::string planner);

}  // namespace hetplan::place

#ifndef HETPLAN_SEPARATE
#include <hetplan/place/operator_schedule.ipp>
#endif
