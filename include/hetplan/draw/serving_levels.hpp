// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Service levels on the page of serving: how tight or loose an objective would have been met.

#include <string>

#include <hetplan/draw/serving_view.hpp>

namespace hetplan::draw::detail {

/// By service the share of its requests that were answered within x times its SLO, x from a quarter to four; streams, which have a rate
/// instead, as bars of the share of their frames.
[[nodiscard]] std::string levels_chart(const serving_view& view);

/// Share of a service's requests that were answered within `times` its SLO. At 1 it is the share that was served, exactly.
[[nodiscard]] double answered_within(const serve::service& s, const serve::service_totals& t, double times);

}  // namespace hetplan::draw::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/serving_levels.ipp>
#endif
