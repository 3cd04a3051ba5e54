// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Goodput over time on the page of serving: what was served, stacked by service, below what was asked for.

#include <string>

#include <hetplan/draw/serving_view.hpp>

namespace HETPLAN_NAMESPACE::draw::detail {

/// Requests and the frames of streams apart, since one cannot be added to the other; faults and changes above them.
[[nodiscard]] std::string goodput_chart(const serving_view& view);

}  // namespace HETPLAN_NAMESPACE::draw::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/serving_goodput.ipp>
#endif
