// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a placement cannot separate, merged: colors, cycles between them, and leaves that cost nothing.

#include <cstddef>
#include <utility>
#include <vector>

#include <hetplan/place/placement_workload.hpp>

namespace hetplan::place {

/// Units of operators, numbered 0, 1, ...; each is on one device.
struct placement_units {
  /// Outputs that the same units make or read: a part that holds some of these units but not all pays for the transfer.
  struct tensor {
    double transfer_s = 0;
    std::vector<std::size_t> units = {};  ///< at least two
  };

  std::vector<std::size_t> unit_of = {};                        ///< by operator
  std::vector<std::pair<std::size_t, std::size_t>> edges = {};  ///< between units; no cycle, none twice
  std::vector<tensor> tensors = {};
  std::vector<double> accelerator_s = {}, cpu_s = {};  ///< by unit; infinite where an accelerator cannot run it
  std::vector<double> size_bytes = {};
  bool leaves_take_memory = false;  ///< a merged leaf has a size and memory could be short: merging may have lost the optimum

  [[nodiscard]] std::size_t size() const { return cpu_s.size(); }
};

namespace detail {

/// Names that are used, renumbered 0, 1, ... by first use.
std::size_t renumber(std::vector<std::size_t>& label);

}  // namespace detail

/// Merges what is on one device in every placement, and leaves where that loses nothing: operators of a color, units on a common
/// cycle of the order that contiguity asks for, and units without work that hang on a single other one.
///
/// @param w       checked by check_placement_workload.
/// Complexity     O(rounds (operators + edges) log), a round per operator in the longest chain of free leaves.
/// Determinism    units are numbered by their first operator.
/// Source         Tarnawski et al., NeurIPS 2020 (colors, training workloads), and what their published program does before it searches
///                (backward operators without a forward partner, circles, leaves). Deviations: a leaf is merged only where its tensors
///                concern its neighbour, so that the optimum without memory limit is kept; where memory could be short, the result
///                says so.
[[nodiscard]] placement_units make_placement_units(const placement_workload& w);

}  // namespace hetplan::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/placement_units.ipp>
#endif
