// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Charts of what limits the devices of a run, and of what their memory is for.

#include <string>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/simulate/explain.hpp>

namespace hetplan::draw::detail {

/// Returns a chart for each stretch of the run, with a bar of shares per used device, and one of its memory: a bar up to what a plan may
/// use.
[[nodiscard]] std::string limits_charts(const run_explanation& x, const cluster& c, const evaluation& e);

}  // namespace hetplan::draw::detail

#ifndef HETPLAN_SEPARATE
#include <hetplan/draw/report_limits.ipp>
#endif
