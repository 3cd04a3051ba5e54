// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The report's tables: the stages of the plan, and the critical path in words.

#include <string>

#include <hetplan/draw/report_timeline.hpp>
#include <hetplan/draw/svg.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan::draw::detail {

[[nodiscard]] std::string cell(std::string_view text, std::string_view more = "");

/// A bar of a share of a whole, crimson beyond it; the text says it in numbers.
[[nodiscard]] std::string meter(double share, bool alarm, std::string_view text);

/// Stage, layers, and by device: samples, accelerators, memory against its limit, busy share.
[[nodiscard]] std::string plan_table(const report_run& run, const planning_graph& model);

/// The critical path: where its seconds went in total, then link by link with what each waited for.
[[nodiscard]] std::string critical_section(const report_run& run);

}  // namespace hetplan::draw::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/report_tables.ipp>
#endif
