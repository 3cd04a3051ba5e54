// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The table of a search as a picture: what each cell kept, and the way of the best plan from the sinks to the head.

#include <span>
#include <string>
#include <string_view>

#include <hetplan/partition/search_context.hpp>

namespace hetplan::draw {

/// What an observer of cell_filled writes down of a cell.
struct table_cell {
  std::size_t first_block, state;
  int stages;
  std::size_t kept;
  double best_rank;  ///< the least score that completions of its partial plans may have
};

/// Draws the cells that a search filled: columns are boundaries from the head (left) to the sinks, rows the states of
/// the device space, one bar per number of stages; dark is a good rank. The plans found fill the column of the head, and
/// arrows show how the best of them was put together, stage by stage from the sinks.
///
/// @param cells  what cell_filled told; whole plans are in `result`.
/// @param search what the search was given: it says from how many stages on plans share a cell.
/// @param unit   of scores; "" for a number without one.
/// Complexity    linear in boundaries x states x stages.
/// Determinism   same input, same bytes.
[[nodiscard]] std::string search_table_svg(const partition::search_tables& tables, const partition::device_space& space,
                                           std::span<const table_cell> cells, const partition::search_result& result,
                                           const partition::search_options& search = {}, std::string_view unit = "s");

}  // namespace hetplan::draw

#ifndef HETPLAN_SEPARATE
#include <hetplan/draw/search_table_svg.ipp>
#endif
