// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Device groups on a page: regions and classes as a table, the merge tree and all pairwise distances as a picture.

#include <cstddef>
#include <string>
#include <string_view>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/coarsen/device_groups.hpp>
#include <hetplan/core/version.hpp>

namespace hetplan::draw {

/// Parameters with which groups were made.
struct groups_source {
  bytes message = {};
  std::string score_unit = "FLOP/s";
  coarsen::group_options thresholds = {};
};

/// Returns a section of a page: regions and classes as a table and as a picture with distances as hover texts.
///
/// Determinism  same input, same bytes.
[[nodiscard]] std::string groups_section(const coarsen::device_groups& g, const cluster& c, const groups_source& from);

/// Returns the section as a self-contained HTML page.
[[nodiscard]] std::string groups_report_html(const coarsen::device_groups& g, const cluster& c, const groups_source& from);

}  // namespace hetplan::draw

namespace hetplan::draw::detail {

/// Most devices with rows of their own; beyond, a row of the picture is a region.
inline constexpr std::size_t most_grouped_rows = 64;

/// Returns the name of a class: "1a" for the first class of the first region.
[[nodiscard]] std::string class_name(std::size_t region, std::size_t number);

/// Returns the merge tree and the distances as an SVG. Distances are on a logarithmic scale: the nearer, the darker; blank without a route.
///
/// Complexity  O(N^2) for N rows of the picture, and for the devices behind them.
[[nodiscard]] std::string groups_chart(const coarsen::device_groups& g, const cluster& c);

/// Returns the legend of the picture: the distances at both ends of its scale.
[[nodiscard]] std::string groups_legend(const coarsen::device_groups& g, const cluster& c);

}  // namespace hetplan::draw::detail

#ifndef HETPLAN_SEPARATE
#include <hetplan/draw/groups_chart.ipp>
#endif
