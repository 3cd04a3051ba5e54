// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Groups of devices as a picture: the merge tree on the left, the distances of all pairs on the right, in the order of the tree.

#include <cstddef>
#include <string>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/coarsen/device_groups.hpp>

namespace hetplan::draw::detail {

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
