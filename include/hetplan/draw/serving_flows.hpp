// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Offloads on the page of serving: which server passed how many requests on to which.

#include <cstddef>
#include <string>

#include <hetplan/draw/serving_view.hpp>

namespace hetplan::draw::detail {

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
