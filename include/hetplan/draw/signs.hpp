// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Small signs on an axis of time; told apart by shape.

#include <string_view>

#include <hetplan/core/linkage.hpp>

namespace hetplan::draw::detail {

/// What happened, and what answered it: one sign for each rung of a ladder.
enum class sign { event, network, known_plan, replanned, done };

/// Around the place of the sign, in relative steps.
[[nodiscard]] constexpr std::string_view shape_of(sign s) {
  return s == sign::network      ? "m0-5.2l5 9h-10Z"
         : s == sign::known_plan ? "m-4.6 0a4.6 4.6 0 1 0 9.2 0a4.6 4.6 0 1 0-9.2 0Z"
         : s == sign::replanned  ? "m0-6l6 6l-6 6l-6-6Z"
         : s == sign::done       ? "m-1-6h9l-2.5 3l2.5 3h-7v6h-2Z"
                                 : "m-4.5-4h9l-4.5 8Z";
}

/// The attribute of what keeps its shape when the page's script stretches a chart.
inline constexpr std::string_view unstretched =
    " style=\"transform:scaleX(calc(1/var(--zoom,1)));transform-box:fill-box;transform-origin:center\"";

}  // namespace hetplan::draw::detail
