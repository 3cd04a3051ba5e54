// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Where a graph of operators is narrow: operators that all others come before or after.

#include <cstddef>
#include <vector>

#include <hetplan/place/placement_table.hpp>

namespace hetplan::place {

/// Milestones are operators of one path; what lies between two of them, and nowhere else, is a part. All of a part runs after the
/// milestone before it and before the one behind it, so that the makespan is at least the sum of the parts', on whichever devices
/// the milestones are.
struct series_parts {
  std::vector<std::size_t> milestones = {};          ///< in the order of the path
  std::vector<std::vector<std::size_t>> parts = {};  ///< milestones + 1, each in topological order; may be empty
  std::vector<std::size_t> sides = {};               ///< operators that run beside a milestone: in no part
  std::size_t crossing_edges = 0;                    ///< between operators of parts or milestones, past another milestone

  /// Is the makespan without contention exactly the sum?
  [[nodiscard]] bool exact() const { return sides.empty() && crossing_edges == 0; }
};

struct series_options {
  std::size_t wanted_operators = 40;  ///< of the largest part; where sharp milestones give that, no others are taken
  double most_dropped = 0.3;          ///< seconds of sides, and of transfers along crossing edges, at most, relative to all work
};

/// Milestones of a longest path: at first those with nothing beside them; where parts are still large, also those with little.
///
/// Complexity   O(operators log operators + edges x devices^2), at most 16 times.
/// Determinism  yes; the longest path by fastest times, then by operators, then by the smallest numbers.
/// Source       ours: dominators of a flow graph, relaxed so that a mask that all layers read does no harm.
[[nodiscard]] series_parts find_series_parts(const placement_table& t, const series_options& options = {});

}  // namespace hetplan::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/series_parts.ipp>
#endif
