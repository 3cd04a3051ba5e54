// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The table of a search as a picture: the partial plans kept by each cell, and the path of the best plan from the sinks to the head.

#include <span>
#include <string>
#include <string_view>

#include <hetplan/partition/search_context.hpp>

namespace hetplan::draw {

/// Data of a cell, recorded by an observer of cell_filled.
struct table_cell {
  std::size_t first_block, state;
  int stages;
  std::size_t kept;
  double best_rank;  ///< least possible score of completions of its partial plans
};

/// Returns the cells filled by a search as a picture. Columns are boundaries between blocks from the head (left) to the sinks, rows are
/// states of the device space, with a bar per number of stages; dark is a good rank. Plans found fill the column of the head. Arrows show
/// how the best plan was built, stage by stage from the sinks.
///
/// @param cells  as reported by cell_filled; complete plans are in `result`.
/// @param search the options of the search, which tell the number of stages from which plans share a cell.
/// @param unit   of scores; "" for plain numbers.
/// Complexity    linear in boundaries x states x stages.
/// Determinism   same input, same bytes.
[[nodiscard]] std::string search_table_svg(const partition::search_tables& tables, const partition::device_space& space,
                                           std::span<const table_cell> cells, const partition::search_result& result,
                                           const partition::search_options& search = {}, std::string_view unit = "s");

}  // namespace hetplan::draw

#ifndef HETPLAN_SEPARATE
#include <hetplan/draw/search_table_svg.ipp>
#endif
