// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The report of an adaptation: one page that sets policies side by side, shows what each did when, and says why.

#include <span>
#include <string>

#include <hetplan/adapt/timeline.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/io/policy_history.hpp>
#include <hetplan/problem/job.hpp>

namespace hetplan::draw {

/// One self-contained HTML page: a table of the policies with the best of each column marked, one chart over time that zooms and
/// explains itself under the pointer, every policy's adoptions with their reasons, and the plans that ran.
///
/// @param policies  histories over `t` of job `j` on `c`; >= 1.
/// Complexity       as adaptation_svg; some megabytes of text at most, whatever the number of stretches.
/// Determinism      same input, same bytes.
[[nodiscard]] std::string adaptation_report_html(std::span<const io::policy_history> policies, const adapt::timeline& t,
                                                 const planning_graph& model, const cluster& c, const job& j);

}  // namespace hetplan::draw

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/adaptation_report.ipp>
#endif
