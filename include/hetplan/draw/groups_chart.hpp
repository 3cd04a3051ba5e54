// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Groups of devices as a picture: the merge tree on the left, the distances of all pairs on the right, in the order of the tree.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/coarsen/device_groups.hpp>
#include <hetplan/core/linkage.hpp>
#include <hetplan/draw/svg.hpp>

namespace hetplan::draw {

// Groups of devices on a page: regions and classes as a table, the merge tree and the distances as a picture.

/// What groups were made with.
struct groups_source {
  bytes message = {};
  std::string score_unit = "FLOP/s";
  coarsen::group_options thresholds = {};
};

/// A section for a page of this library's. Cells say their distance under the pointer; with more than 64 devices a row of the picture is
/// a region.
///
/// Determinism  same input, same bytes.
[[nodiscard]] std::string groups_section(const coarsen::device_groups& g, const cluster& c, const groups_source& from);

/// The section as a self-contained HTML page.
[[nodiscard]] std::string groups_report_html(const coarsen::device_groups& g, const cluster& c, const groups_source& from);

}  // namespace hetplan::draw

namespace hetplan::draw::detail {

// A table of numbers as a picture: the larger, the deeper the colour. One path for each depth, however many cells there are.

/// Depths of colour; 0 is paper. A depth is as strong on dark paper as on white, since it is an opacity.
inline constexpr std::size_t heat_depths = 8;

/// The depth of a value: by its square root, so that little is told from nothing.
[[nodiscard]] std::size_t heat_depth(double value, double most);

/// Rows from the top and columns from the left, all of one size.
struct heat_grid {
  double left = 0, top = 0, width = 0, height = 0;
  std::vector<std::vector<double>> values = {};      ///< rows x columns, >= 0; infinite is written ∞
  std::vector<double> most = {};                     ///< deepest of each row, or one for all
  std::vector<std::string> rows = {}, columns = {};  ///< what they are called under the pointer
  std::vector<std::string> units = {};               ///< of each row, or one for all
  std::string_view kind = "load";                    ///< load: blue; queue: orange
  std::string_view id = {};
  std::vector<std::vector<std::size_t>> depths = {};  ///< of each cell; empty: heat_depth of its value

  [[nodiscard]] double row_height() const { return height / static_cast<double>(values.size()); }
  [[nodiscard]] double column_width() const { return width / static_cast<double>(columns.size()); }
  [[nodiscard]] double most_of(std::size_t row) const { return most.size() == 1 ? most.front() : most[row]; }
  [[nodiscard]] std::size_t depth(std::size_t row, std::size_t column) const {
    return depths.empty() ? heat_depth(values[row][column], most_of(row)) : depths[row][column];
  }
};

/// The cells, the numbers in them where there is room, and over them what the page's script asks for what is under the pointer.
void paint(svg_writer& out, const heat_grid& g);

/// "0 ▯▯▯▯▯▯▯▯ 45 requests waiting".
[[nodiscard]] std::string heat_legend(std::string_view kind, std::string_view least, std::string_view most);

// What a page with grids does beside the report's script: it says which cell is under the pointer.

/// The report's script asks what is under the pointer for its `tipAt`, where it has one.
inline constexpr std::string_view grid_script = R"js(
"use strict";
for (const grid of document.querySelectorAll(".grid")) {
  const [rows, columns, units] = ["rows", "columns", "units"].map((name) => JSON.parse(grid.dataset[name]));
  const values = grid.dataset.values.split(";").map((row) => row.split(","));
  const clamp = (share, count) => Math.max(0, Math.min(count - 1, Math.floor(share * count)));
  grid.tipAt = (event) => {
    const box = grid.getBoundingClientRect();
    const row = clamp((event.clientY - box.top) / box.height, rows.length);
    const column = clamp((event.clientX - box.left) / box.width, columns.length);
    const [whole, part] = values[row][column].split(".");
    const number = whole.replace(/\B(?=(\d{3})+$)/g, "\u202f") + (part ? `.${part}` : "");
    return `${rows[row]} · ${columns[column]}\n${number} ${units[row] ?? units[0]}`;
  };
}
)js";

/// With more devices a row is a region.
inline constexpr std::size_t most_grouped_rows = 64;

/// "1a": the first class of the first region.
[[nodiscard]] std::string class_name(std::size_t region, std::size_t number);

/// An SVG for a page with grid_script in it. Distances on a logarithmic scale: the nearer, the deeper; without a route, blank.
///
/// Complexity  O(N^2) for N rows of the picture, and for the devices behind them.
[[nodiscard]] std::string groups_chart(const coarsen::device_groups& g, const cluster& c);

/// What its shades mean: the distances at both ends of the scale.
[[nodiscard]] std::string groups_legend(const coarsen::device_groups& g, const cluster& c);

}  // namespace hetplan::draw::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/groups_chart.ipp>
#endif
