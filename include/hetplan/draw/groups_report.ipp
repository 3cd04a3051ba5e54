// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/groups_report.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

#include <hetplan/draw/grid_script.hpp>
#include <hetplan/draw/groups_chart.hpp>
#include <hetplan/draw/markup.hpp>
#include <hetplan/draw/page.hpp>
#include <hetplan/draw/report_tables.hpp>

namespace hetplan::draw {

namespace detail {

/// "a, b, c", the first of many.
[[nodiscard]] HETPLAN_INLINE std::string listed(const std::vector<device_id>& devices, const cluster& c) {
  constexpr std::size_t most = 24;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, devices.size()); ++i) text += (i > 0 ? ", " : "") + c[devices[i]].name;
  if (devices.size() > most) text += " and " + std::to_string(devices.size() - most) + " more";
  return text;
}

[[nodiscard]] HETPLAN_INLINE std::string groups_table(const coarsen::device_groups& g, const cluster& c, std::string_view unit) {
  std::string text =
      "<table id=\"groups-table\">\n<thead><tr><th>Region</th><th class=\"n\">Apart inside</th><th>Nearest other region</th><th>Class</th>"
      "<th class=\"n\">Score</th><th class=\"n\">Devices</th><th>Names</th></tr></thead>\n<tbody>\n";
  for (std::size_t r = 0; r < g.regions.size(); ++r) {
    const coarsen::device_region& region = g.regions[r];
    for (std::size_t k = 0; k < region.classes.size(); ++k) {
      const auto& devices = region.classes[k];
      double score = 0;
      for (const device_id d : devices) score += g.scores[d.index()] / static_cast<double>(devices.size());
      std::string first = cell("") + cell("") + cell("");
      if (k == 0) {
        const auto nearest = g.nearest_region(r);
        first = cell(std::to_string(r + 1)) + cell(region.devices.size() > 1 ? engineering(region.inner_s, "s") : "", " class=\"n\"") +
                cell(nearest ? std::to_string(*nearest + 1) + ", " + engineering(g.distance_s(r, *nearest), "s") : "");
      }
      text += "<tr>" + first + cell(class_name(r, k)) + cell(engineering(score, unit), " class=\"n\"") +
              cell(std::to_string(devices.size()), " class=\"n\"") + cell(listed(devices, c)) + "</tr>\n";
    }
  }
  return text + "</tbody></table>\n";
}

}  // namespace detail

HETPLAN_INLINE std::string groups_section(const coarsen::device_groups& g, const cluster& c, const groups_source& from) {
  const std::string about =
      "The time of one message of " + engineering(from.message.value(), "B") +
      " is the distance of two devices. Two groups are one region if they are at most " + fixed(1 + from.thresholds.network_threshold) +
      " times as far apart as the devices inside the closer one; devices of a region are of one class if their scores differ by at most " +
      fixed(100 * from.thresholds.compute_threshold) + " %.";
  return detail::section("groups", "Regions and classes", about,
                         detail::groups_legend(g, c) + detail::scrolling(detail::groups_chart(g, c)) +
                             detail::groups_table(g, c, from.score_unit) + "<script>" + std::string(detail::grid_script) + "</script>\n");
}

HETPLAN_INLINE std::string groups_report_html(const coarsen::device_groups& g, const cluster& c, const groups_source& from) {
  std::size_t classes = 0;
  for (const coarsen::device_region& r : g.regions) classes += r.classes.size();
  const auto counted = [](std::size_t n, std::string_view one, std::string_view many) {
    return std::to_string(n) + " " + std::string(n == 1 ? one : many);
  };
  const std::string title = "Devices of " + c.name();
  return detail::page(title, "<header id=\"summary\">\n<h1>" + xml_text(title) + "</h1>\n<p class=\"quiet\">" +
                                 counted(c.size(), "device", "devices") + " · " + counted(g.regions.size(), "region", "regions") + " · " +
                                 counted(classes, "class", "classes") + "</p>\n</header>\n" + groups_section(g, c, from));
}

}  // namespace hetplan::draw
