// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Names and messages as a terminal may see them.

#include <string>
#include <string_view>

#include <hetplan/core/linkage.hpp>

namespace hetplan {

/// The text with control characters written as \n, \t or \u00XX, so that it stays on one line and
/// a hostile file cannot speak to the terminal. What was escaped stays as it is.
[[nodiscard]] std::string escaped(std::string_view text);

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/core/escaped.ipp>
#endif
