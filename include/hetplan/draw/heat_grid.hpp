// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A table of numbers as a picture: the larger, the deeper the colour. One path for each depth, however many cells there are.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/draw/svg.hpp>

namespace hetplan::draw::detail {

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

}  // namespace hetplan::draw::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/heat_grid.ipp>
#endif
