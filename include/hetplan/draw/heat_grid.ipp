// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/heat_grid.hpp>

#include <algorithm>
#include <array>
#include <cmath>

#include <hetplan/draw/clock_scale.hpp>

namespace hetplan::draw::detail {

HETPLAN_INLINE std::size_t heat_depth(double value, double most) {
  if (!(value > 0) || !(most > 0)) return 0;
  return static_cast<std::size_t>(std::ceil(std::sqrt(std::min(1.0, value / most)) * static_cast<double>(heat_depths) - 1e-9));
}

[[nodiscard]] HETPLAN_INLINE std::string opacity_of(std::size_t depth) {
  return fixed(0.08 + 0.92 * static_cast<double>(depth) / static_cast<double>(heat_depths), 2);
}

/// A list of texts in an attribute, as JSON.
[[nodiscard]] HETPLAN_INLINE std::string list_attribute(std::string_view name, const std::vector<std::string>& all) {
  std::string text;
  for (const auto& one : all) text += (text.empty() ? "[" : ",") + json_string(one);
  return " data-" + std::string(name) + "=\"" + xml_text(text + "]") + "\"";
}

HETPLAN_INLINE void paint(svg_writer& out, const heat_grid& g) {
  if (g.values.empty() || g.columns.empty()) return;
  const double wide = g.column_width(), high = g.row_height();
  std::array<std::string, heat_depths> cells;
  for (std::size_t r = 0; r < g.values.size(); ++r) {
    const auto& row = g.values[r];
    const std::string y = fixed(g.top + static_cast<double>(r) * high, 2), h = fixed(high, 2);
    for (std::size_t c = 0, end = 0; c < row.size(); c = end) {
      const std::size_t d = g.depth(r, c);
      for (end = c + 1; end < row.size() && g.depth(r, end) == d;) ++end;
      if (d == 0) continue;
      const std::string w = fixed(static_cast<double>(end - c) * wide, 2);
      cells[d - 1] += "M" + fixed(g.left + static_cast<double>(c) * wide, 2) + " " + y + "h" + w + "v" + h + "h-" + w + "z";
    }
  }
  out.rect(g.left, g.top, g.width, g.height, palette::track.hex());
  out.open_group(" class=\"heat " + std::string(g.kind) + "\"");
  for (std::size_t d = 0; d < heat_depths; ++d) {
    if (!cells[d].empty()) out.path(cells[d], "currentColor", {}, " fill-opacity=\"" + opacity_of(d + 1) + "\"");
  }
  const auto fits = [&](const std::vector<double>& row) {
    return std::ranges::all_of(row, [&](double v) { return svg_writer::text_width(short_number(v), 11) <= wide - 6; });
  };
  const bool numbers = high >= 12 && std::ranges::all_of(g.values, fits);
  for (std::size_t r = 0; numbers && r < g.values.size(); ++r) {
    for (std::size_t c = 0; c < g.values[r].size(); ++c) {
      const double v = g.values[r][c];
      if (v <= 0) continue;
      const bool deep = 2 * g.depth(r, c) > heat_depths + 1;
      out.text(g.left + (static_cast<double>(c) + 0.5) * wide, g.top + (static_cast<double>(r) + 0.5) * high + 4, short_number(v),
               {.anchor = "middle"}, deep ? " class=\"on-deep\"" : " class=\"on-pale\"");
    }
  }
  out.close_group();
  std::string values;
  for (std::size_t r = 0; r < g.values.size(); ++r) {
    if (r > 0) values += ";";
    for (std::size_t c = 0; c < g.values[r].size(); ++c)
      values += (c > 0 ? "," : "") + (std::isfinite(g.values[r][c]) ? fixed(g.values[r][c], 2) : "∞");
  }
  const std::string id = g.id.empty() ? std::string() : " id=\"" + std::string(g.id) + "\"";
  out.rect(g.left, g.top, g.width, g.height, "transparent", {},
           id + " class=\"grid\"" + list_attribute("rows", g.rows) + list_attribute("columns", g.columns) +
               list_attribute("units", g.units) + " data-values=\"" + values + "\"");
}

HETPLAN_INLINE std::string heat_legend(std::string_view kind, std::string_view least, std::string_view most) {
  std::string text = "<span class=\"heat " + std::string(kind) + "\"><b>" + xml_text(least) + "</b>";
  for (std::size_t d = 1; d <= heat_depths; ++d) text += "<i class=\"depth\" style=\"opacity:" + opacity_of(d) + "\"></i>";
  return text + "<b>" + xml_text(most) + "</b></span>";
}

}  // namespace hetplan::draw::detail
