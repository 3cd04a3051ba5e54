// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Groups of devices on a page: regions and classes as a table, the merge tree and the distances as a picture.

#include <string>
#include <string_view>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/coarsen/device_groups.hpp>

namespace hetplan::draw {

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

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/groups_report.ipp>
#endif
