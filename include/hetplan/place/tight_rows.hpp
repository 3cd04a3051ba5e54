// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Rows of Moirai's placement problem whose relaxation is close: the formulation for solvers that are to come to an end.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <hetplan/place/operator_schedule.hpp>
#include <hetplan/place/placement_table.hpp>
#include <hetplan/solve/milp.hpp>

namespace hetplan::place {

// What every mixed-integer program about a placement says: a device for each operator, memory, transfers that may be needed.

/// Terms of a row: column, coefficient.
using row_terms = std::vector<std::pair<int, double>>;

/// A transfer that a placement may need: of an edge, or with copies per device of an output to one device.
struct possible_transfer {
  /// From one device to another, if the operators' devices are so.
  struct way {
    std::size_t from, to;
    double takes;  ///< in the program's unit
    int column;    ///< 1: it is taken
  };
  std::size_t producer;
  std::size_t to = 0;                ///< with copies per device: its destination
  std::vector<std::uint32_t> edges;  ///< that it may serve
  std::vector<way> ways;             ///< the pairs that are joined
  int needed = -1;                   ///< a column that says whether any way is taken, where there is one
};

/// A column that puts one node of the program before another; nodes are operators, then transfers.
struct node_order {
  static constexpr std::size_t any_machine = ~std::size_t{0};
  static constexpr int always = -1;

  std::size_t first, second;
  std::size_t machine;    ///< it speaks of nodes that both use this one: a device, or devices + a channel
  int column;             ///< 1: first is before second; or always
  bool reverses = false;  ///< and 0: it is behind it
};

/// A program as it grows. Times are in a unit near the makespan, bytes in units of the device's capacity.
///
/// Complexity  O(operators x devices + operators x edges + edges x devices^2).
/// Source      Moirai, eqs. 4c and 5. Deviations: memory is split as device_memory does.
struct placement_columns {
  /// @param limit  of the makespan, in units.
  placement_columns(const placement_table& t, const placement_rules& r, double unit_s, double limit);

  [[nodiscard]] double time(std::size_t op, std::size_t device) const { return table->time_s(op, device) / unit_s; }
  [[nodiscard]] int on(std::size_t op, std::size_t device) const { return on_device[op * table->devices() + device]; }
  [[nodiscard]] bool may_be_on(std::size_t op, std::size_t device) const { return upper(on(op, device)) > 0; }
  [[nodiscard]] double& upper(int column) { return program.relaxation.upper[static_cast<std::size_t>(column)]; }
  [[nodiscard]] double upper(int column) const { return program.relaxation.upper[static_cast<std::size_t>(column)]; }
  [[nodiscard]] std::size_t nodes() const { return table->size() + transfers.size(); }
  [[nodiscard]] bool is_operator(std::size_t node) const { return node < table->size(); }
  [[nodiscard]] const possible_transfer& transfer(std::size_t node) const { return transfers[node - table->size()]; }

  /// Is a over before b starts, wherever their operators and those between them are?
  [[nodiscard]] bool precedes(std::size_t a, std::size_t b) const;

  int add_column(double lower, double upper_limit) { return program.relaxation.add_column(0, lower, upper_limit); }
  int add_binary();
  void add_row(row_terms terms, double lower, double upper_limit = std::numeric_limits<double>::infinity());
  /// Adds sign * what a node takes.
  void add_duration(row_terms& terms, std::size_t node, double sign) const;
  /// All of these operators are not on the device together.
  void forbid(const std::vector<std::size_t>& operators, std::size_t device);

  /// The way that a transfer takes; none: it is not needed, or there is no route.
  [[nodiscard]] const possible_transfer::way* way_of(const possible_transfer& x, const std::vector<std::size_t>& device) const;

  const placement_table* table;
  placement_rules rules;
  channels holds;
  double unit_s, limit;
  milp_problem program;
  int makespan = -1;
  std::vector<int> on_device;  ///< operators x devices
  std::vector<int> start;      ///< by node; -1: none
  std::vector<possible_transfer> transfers;
  std::vector<node_order> orders;

 private:
  void add_memory();
  void find_transfers();
  void find_paths();
  [[nodiscard]] bool reaches(std::size_t a, std::size_t b) const { return reaches_[a * table->size() + b] != 0; }

  std::vector<char> reaches_;  ///< operators x operators: is there a path?
};

/// Adds the rules of time to a program.
///
/// transport: a column for each edge and pair of devices, the flow from its producer's device to its reader's. Columns for times of
/// transfers only where they contend.
/// order: for two nodes that may meet on a machine (a device, a channel) and that no path orders, a binary each way and machine; it
/// is 0 unless both use the machine, and one of the two is 1 if they do.
/// windows: each operator on each device has a head (what must come before it) and a tail (itself and what must come behind it). What they
/// leave no room for is fixed, and they are the big-M.
/// instants: operators at the ends of the graph that take no time, and their transfers that take none, come first and last without a
/// choice. loads: before a node its machine did all that a path or an order puts there; so behind it, and between the first and the last.
///
/// Complexity  O(nodes^2 x machines) rows and binaries.
/// Source      ours, for Moirai's eqs. 4a, 4b, 6, 7 and 8.
void add_tight_rows(placement_columns& c);

}  // namespace hetplan::place

#ifndef HETPLAN_SEPARATE
#include <hetplan/place/tight_rows.ipp>
#endif
