// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What every page is made of: its frame with style and script, sections, facts.

#include <string>
#include <string_view>
#include <utility>

#include <hetplan/plan/evaluation.hpp>

namespace hetplan::draw::detail {

[[nodiscard]] std::string fact(std::string_view value, std::string_view about, std::string_view id, bool alarm = false);

[[nodiscard]] std::string percent(double share);

[[nodiscard]] inline std::string at_most(double gap) { return (gap >= 5e-5 ? "≤ " : "") + percent(readable_gap(gap)); }

[[nodiscard]] std::string page(std::string_view title, std::string_view body);

[[nodiscard]] std::string section(std::string_view id, std::string_view title, std::string_view about, std::string_view content);

[[nodiscard]] inline std::string scrolling(std::string chart) { return "<div class=\"chart\">" + std::move(chart) + "</div>\n"; }

}  // namespace hetplan::draw::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/page.ipp>
#endif
