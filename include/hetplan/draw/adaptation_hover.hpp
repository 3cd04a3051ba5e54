// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What the chart of an adaptation says under the pointer.

#include <cstddef>
#include <string>

#include <hetplan/draw/adaptation_canvas.hpp>

namespace HETPLAN_NAMESPACE::draw::detail {

/// An adoption in words: why, when, and what it took.
[[nodiscard]] std::string explain_adoption(const adaptation_view& view, std::size_t p, const adapt::adoption& a);

/// Explains a policy's row: stretch by stretch if they are few, else in equal parts of the time.
void explain_spans(adaptation_canvas& k, std::size_t p, row_box box);

}  // namespace HETPLAN_NAMESPACE::draw::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/adaptation_hover.ipp>
#endif
