// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The report of an adaptation: one page that sets policies side by side, shows what each did when, and says why.

#include <span>
#include <string>
#include <string_view>

#include <hetplan/adapt/timeline.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/io/timeline_json.hpp>
#include <hetplan/problem/planning_problem.hpp>

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

/// One self-contained HTML page: a table of the policies with the best of each column marked, one chart over time that zooms and
/// explains itself under the pointer, every policy's adoptions with their reasons, and the plans that ran.
///
/// @param policies  histories over `t` of job `j` on `c`; >= 1.
/// Complexity       as adaptation_svg; some megabytes of text at most, whatever the number of stretches.
/// Determinism      same input, same bytes.
[[nodiscard]] std::string adaptation_report_html(std::span<const io::policy_history> policies, const adapt::timeline& t,
                                                 const planning_graph& model, const cluster& c, const job& j);

}  // namespace hetplan::draw

#ifndef HETPLAN_SEPARATE
#include <hetplan/draw/adaptation_report.ipp>
#endif
