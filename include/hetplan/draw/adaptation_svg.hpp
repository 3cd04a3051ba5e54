// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Histories of several policies over one timeline as a picture.

#include <span>
#include <string>
#include <string_view>

#include <hetplan/adapt/timeline.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/io/policy_history.hpp>
#include <hetplan/problem/job.hpp>

namespace hetplan::draw {

namespace detail {

/// "qwen on home: 3 policies over 2 h".
[[nodiscard]] std::string adaptation_title(std::span<const io::policy_history> policies, const adapt::timeline& t, std::string_view model,
                                           const cluster& c);

}  // namespace detail

/// A static picture: above what changed (capacities, speeds, devices that were away, other traffic, targets), below a row per policy
/// with what ran, when plans were adopted, and its response against the wanted one; all on one time axis.
///
/// Stays small and readable with any number of stretches: what is finer than a pixel becomes the band from least to most.
/// @param policies  histories over `t` on `c`; a name each.
/// @param wanted    at the start, as the job says it.
/// Complexity       O(events + stretches + pixels) by policy, and a comparison of each plan with each different one.
/// Determinism      same input, same bytes.
[[nodiscard]] std::string adaptation_svg(std::span<const io::policy_history> policies, const adapt::timeline& t,
                                         const planning_graph& model, const cluster& c, const qoe_target& wanted = {});

}  // namespace hetplan::draw

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/adaptation_svg.ipp>
#endif
