// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <string_view>

#include <hetplan/core/linkage.hpp>

namespace hetplan {

/// The length of the UTF-8 character that starts at `i`, 0 where there is none (also for surrogates and codes beyond Unicode).
[[nodiscard]] std::size_t utf8_length(std::string_view text, std::size_t i);

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/core/utf8.ipp>
#endif
