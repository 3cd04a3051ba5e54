// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Groups of devices on a page: regions and classes as a table, the merge tree and the distances of all pairs as a picture.

#include <cstddef>
#include <string>
#include <string_view>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/coarsen/device_groups.hpp>
#include <hetplan/core/version.hpp>

namespace hetplan::draw {

/// What groups were made with.
struct groups_source {
  bytes message = {};
  std::string score_unit = "FLOP/s";
  coarsen::group_options thresholds = {};
};

/// A section of a page: regions and classes as a table and as a picture whose cells tell their distances under the pointer.
///
/// Determinism  same input, same bytes.
[[nodiscard]] std::string groups_section(const coarsen::device_groups& g, const cluster& c, const groups_source& from);

/// The section as a self-contained HTML page.
[[nodiscard]] std::string groups_report_html(const coarsen::device_groups& g, const cluster& c, const groups_source& from);

}  // namespace hetplan::draw

namespace hetplan::draw::detail {

/// With more devices a row of the picture is a region.
inline constexpr std::size_t most_grouped_rows = 64;

/// "1a": the first class of the first region.
[[nodiscard]] std::string class_name(std::size_t region, std::size_t number);

/// The merge tree and the distances as an SVG. Distances are on a logarithmic scale: the nearer, the deeper; without a route, blank.
///
/// Complexity  O(N^2) for N rows of the picture, and for the devices behind them.
[[nodiscard]] std::string groups_chart(const coarsen::device_groups& g, const cluster& c);

/// The legend of the picture: the distances at both ends of its scale.
[[nodiscard]] std::string groups_legend(const coarsen::device_groups& g, const cluster& c);

}  // namespace hetplan::draw::detail

#ifndef HETPLAN_SEPARATE
#include <hetplan/draw/groups_chart.ipp>
#endif
