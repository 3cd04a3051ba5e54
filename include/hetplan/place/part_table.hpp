// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A part of a series of parts as a placement table of its own.

#include <cstddef>
#include <optional>
#include <vector>

#include <hetplan/place/placement_table.hpp>
#include <hetplan/place/series_parts.hpp>

namespace HETPLAN_NAMESPACE::place {

/// A part with the milestones around it.
struct part_of_series {
  std::vector<std::size_t> operators = {};  ///< of the whole table, in topological order: the entry, what is inside, the exit
  bool entry = false;                       ///< is the first one the milestone before the part
  bool exit = false;                        ///< is the last one the milestone behind it
};

/// All parts of a series, in the order of its path.
[[nodiscard]] std::vector<part_of_series> list_parts(const series_parts& s);

/// The edges among the operators of a part, in the order of part_data's.
[[nodiscard]] std::vector<std::size_t> part_edges(const placement_table& t, const part_of_series& p);

/// What the operators and the edges among them are in a table: the same for parts that are the same. No names. Of a tied tensor that
/// operators of other parts hold, too, each operator has its share (shared_out_bytes): so parts never hold more than the whole.
///
/// Complexity  O(operators x devices + edges x (devices^2 + log operators)) of the part.
/// Source      ours: networks repeat their blocks, and what is the same is searched once.
[[nodiscard]] placement_data part_data(const placement_table& t, const part_of_series& p);

/// That with the milestones on given devices, from the end of the entry to the end of the exit: the entry takes no time and holds nothing.
///
/// Source  ours: with its ends on known devices a part is a table like any other, so that every search takes it.
[[nodiscard]] placement_table part_table(placement_data data, const part_of_series& p, std::optional<std::size_t> entry_on,
                                         std::optional<std::size_t> exit_on);

}  // namespace HETPLAN_NAMESPACE::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/part_table.ipp>
#endif
