// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Formulation of Moirai's placement problem with a close relaxation, for solvers that are to finish.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <hetplan/place/operator_schedule.hpp>
#include <hetplan/place/placement_table.hpp>
#include <hetplan/solve/lp.hpp>

namespace hetplan::place {

/// Terms of a row: (column, coefficient).
using row_terms = std::vector<std::pair<int, double>>;

/// Transfer that a placement may need: of an edge, or with copies per device of an output to one device.
struct possible_transfer {
  /// Pair of devices between which the transfer runs if the producer and a reader are on them.
  struct way {
    std::size_t from, to;
    double takes;  ///< duration, in the program's unit
    int column;    ///< 1 if the way is taken
  };
  std::size_t producer;
  std::size_t to = 0;                ///< with copies per device: receiving device
  std::vector<std::uint32_t> edges;  ///< edges that the transfer may serve
  std::vector<way> ways;             ///< one for each joined pair of devices
  int needed = -1;                   ///< column that is 1 if any way is taken; -1: none
};

/// Column that orders two nodes of the program; nodes are operators, then transfers.
struct node_order {
  static constexpr std::size_t any_machine = ~std::size_t{0};
  static constexpr int always = -1;

  std::size_t first, second;
  std::size_t machine;    ///< the order applies if both nodes use this one: a device, or devices + a channel
  int column;             ///< 1 if first is before second; or always
  bool reverses = false;  ///< true if 0 puts second before first
};

/// Program under construction. Times are in a unit near the makespan, bytes in units of the device's capacity.
/// Complexity  O(operators x devices + operators x edges + edges x devices^2).
/// Source      Moirai, eqs. 4c and 5. Deviations: memory is split as device_memory does.
struct placement_columns {
  /// @param limit  upper bound on the makespan, in units.
  placement_columns(const placement_table& t, const placement_rules& r, double unit_s, double limit);

  [[nodiscard]] double time(std::size_t op, std::size_t device) const { return table->time_s(op, device) / unit_s; }
  [[nodiscard]] int on(std::size_t op, std::size_t device) const { return on_device[op * table->devices() + device]; }
  [[nodiscard]] bool may_be_on(std::size_t op, std::size_t device) const { return upper(on(op, device)) > 0; }
  [[nodiscard]] double& upper(int column) { return program.relaxation.upper[static_cast<std::size_t>(column)]; }
  [[nodiscard]] double upper(int column) const { return program.relaxation.upper[static_cast<std::size_t>(column)]; }
  [[nodiscard]] std::size_t nodes() const { return table->size() + transfers.size(); }
  [[nodiscard]] bool is_operator(std::size_t node) const { return node < table->size(); }
  [[nodiscard]] const possible_transfer& transfer(std::size_t node) const { return transfers[node - table->size()]; }

  /// Returns true if node a ends before node b starts, whatever the devices of the operators.
  [[nodiscard]] bool precedes(std::size_t a, std::size_t b) const;

  int add_column(double lower, double upper_limit) { return program.relaxation.add_column(0, lower, upper_limit); }
  int add_binary();
  void add_row(row_terms terms, double lower, double upper_limit = std::numeric_limits<double>::infinity());
  /// Adds sign * the duration of a node to a row.
  void add_duration(row_terms& terms, std::size_t node, double sign) const;
  /// Adds a row that keeps these operators from being all on the device.
  void forbid(const std::vector<std::size_t>& operators, std::size_t device);

  /// Returns the way that a transfer takes; null if it is not needed or has no route.
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

  std::vector<char> reaches_;  ///< operators x operators: 1 if there is a path
};

/// Adds the rules of time to a program.
///
/// transport: a column for each edge and pair of devices, the flow from the producer's device to the reader's. Times of transfers are
/// columns only if transfers contend.
/// order: for two nodes that may meet on a machine (a device, a channel) and that no path orders, a binary for each direction and
/// machine. It is 0 unless both nodes use the machine, and one of the two is 1 if they do.
/// windows: a head (least time before it) and a tail (least time of it and its successors) of each operator on each device. Devices
/// outside the windows are fixed to 0, and the windows are the big-M.
/// instants: operators and transfers without duration at the ends of the graph come first and last without a binary.
/// loads: a node starts after all work that a path or an order puts before it on its machine; likewise for the work behind it, and for
/// all work between the first and the last node.
///
/// Complexity  O(nodes^2 x machines) rows and binaries.
/// Source      ours, for Moirai's eqs. 4a, 4b, 6, 7 and 8.
void add_tight_rows(placement_columns& c);

}  // namespace hetplan::place

#ifndef HETPLAN_SEPARATE
#include <hetplan/place/tight_rows.ipp>
#endif
