// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Faults and changes of the deployment on the axes of time.

#include <string>

#include <hetplan/draw/report_time_chart.hpp>
#include <hetplan/draw/serving_view.hpp>

namespace HETPLAN_NAMESPACE::draw::detail {

/// A row of signs with words, in as many lanes as these need to stand side by side; a bar says how long a fault lasts. Where lanes run
/// out, words are left to the pointer.
///
/// @return  where the row ends.
double paint_marks(time_chart& chart, const serving_view& view, double top);

/// Lines from the signs through the rows below; none where they would be a carpet.
[[nodiscard]] std::string mark_lines(const time_chart& chart, const serving_view& view, double top, double bottom);

}  // namespace HETPLAN_NAMESPACE::draw::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/serving_marks.ipp>
#endif
