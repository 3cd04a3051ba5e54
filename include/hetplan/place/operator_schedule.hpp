// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The answer to a placement table: which device runs which operator when, and what no schedule can beat.

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <hetplan/core/status.hpp>
#include <hetplan/place/placement_rules.hpp>
#include <hetplan/place/placement_table.hpp>

namespace hetplan::place {

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

}  // namespace hetplan::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/operator_schedule.ipp>
#endif
