// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The head of the page of serving: the numbers that matter, what became of requests, and a row for each service.

#include <string>

#include <hetplan/draw/serving_view.hpp>

namespace hetplan::draw::detail {

[[nodiscard]] color outcome_color(serve::request_outcome o);

/// "timed out".
[[nodiscard]] std::string outcome_words(serve::request_outcome o);

/// "pole: 200 000 requests over 2 min 5 s".
[[nodiscard]] std::string serving_title(const serving_view& view);

/// The title, the facts, and a bar of outcomes: of all requests, and of those not served larger.
[[nodiscard]] std::string serving_header(const serving_view& view);

/// What each service asked for, what it got, and how long it took.
[[nodiscard]] std::string services_table(const serving_view& view);

}  // namespace hetplan::draw::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/serving_summary.ipp>
#endif
