// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Report of an adaptation: a page that compares policies, shows their actions over time, and gives the reasons.

#include <span>
#include <string>
#include <string_view>

#include <hetplan/adapt/timeline.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/io/timeline_json.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::draw {

namespace detail {

/// Returns the title, such as "qwen on home: 3 policies over 2 h".
[[nodiscard]] std::string adaptation_title(std::span<const io::policy_history> policies, const adapt::timeline& t, std::string_view model,
                                           const cluster& c);

}  // namespace detail

/// Returns a static picture with a common time axis. Conditions are above: capacities, speeds, absent devices, foreign traffic, targets.
/// Below is a row per policy: the plan that runs, adoptions, and the response against its target.
///
/// The picture stays small and readable with any number of stretches: details finer than a pixel become a band from minimum to maximum.
/// @param policies  histories over `t` on `c`, with distinct names.
/// @param wanted    the target at the start, from the job.
/// Complexity       O(events + stretches + pixels) per policy, and a comparison of each plan with each different one.
/// Determinism      same input, same bytes.
[[nodiscard]] std::string adaptation_svg(std::span<const io::policy_history> policies, const adapt::timeline& t,
                                         const planning_graph& model, const cluster& c, const qoe_target& wanted = {});

/// Returns a self-contained HTML page: a table of the policies with the best of each column marked, a zooming chart over time with hover
/// texts, every policy's adoptions with their reasons, and the plans that ran.
///
/// @param policies  histories over `t` of job `j` on `c`; >= 1.
/// Complexity       as adaptation_svg; at most some megabytes of text for any number of stretches.
/// Determinism      same input, same bytes.
[[nodiscard]] std::string adaptation_report_html(std::span<const io::policy_history> policies, const adapt::timeline& t,
                                                 const planning_graph& model, const cluster& c, const job& j);

}  // namespace hetplan::draw

#ifndef HETPLAN_SEPARATE
#include <hetplan/draw/adaptation_report.ipp>
#endif
