// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The report's curves: how much of each resource is used over time, and of each device's memory.

#include <string>

#include <hetplan/draw/report_run.hpp>

namespace HETPLAN_NAMESPACE::draw::detail {

/// Bandwidth by resource, stacked by kind of transfer; "" where nothing was sent.
[[nodiscard]] std::string bandwidth_chart(const report_run& run);

/// Memory by used device: state held all the time, activations on top, and the limit.
[[nodiscard]] std::string memory_chart(const report_run& run);

}  // namespace HETPLAN_NAMESPACE::draw::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/report_curves.ipp>
#endif
