// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Offloads on the page of serving: which server passed how many requests on to which.

#include <cstddef>
#include <string>

#include <hetplan/draw/serving_summary.hpp>

namespace hetplan::draw::detail {

// The deployment as a picture, on the page of serving: servers, their GPUs, and the slices of these that services have.

/// Servers up to which their GPUs are drawn.
inline constexpr std::size_t most_drawn_servers = 64;

/// A bar for each GPU, as long as its compute; an instance on several GPUs is tied together by a line, across servers too.
/// Requires a cloud of at most most_drawn_servers.
[[nodiscard]] std::string deployment_picture(const serving_view& view);

// Service levels on the page of serving: how tight or loose an objective would have been met.

/// By service the share of its requests that were answered within x times its SLO, x from a quarter to four; streams, which have a rate
/// instead, as bars of the share of their frames.
[[nodiscard]] std::string levels_chart(const serving_view& view);

/// Share of a service's requests that were answered within `times` its SLO. At 1 it is the share that was served, exactly.
[[nodiscard]] double answered_within(const serve::service& s, const serve::service_totals& t, double times);

/// Flows that are drawn, the largest ones; and rings, those that pass on most.
inline constexpr std::size_t most_flows = 200;
inline constexpr std::size_t most_rings = 12;

/// A circle for each ring, its servers clockwise; a flow is a band across it, wide at its sender. Beside it the largest flows in numbers,
/// and below it how often requests were passed on.
[[nodiscard]] std::string flows_section(const serving_view& view);

}  // namespace hetplan::draw::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/serving_flows.ipp>
#endif
