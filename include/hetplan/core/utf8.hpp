// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

#include <hetplan/core/version.hpp>

namespace hetplan {

/// Returns the text that std::printf would write. Arguments are numbers and C strings.
template <class... Args>
[[nodiscard]] std::string format_line(const char* format, Args... args) {
  const int length = std::snprintf(nullptr, 0, format, args...);
  std::string text(static_cast<std::size_t>(length), '\0');
  std::snprintf(text.data(), text.size() + 1, format, args...);
  return text;
}

/// Returns the length of the UTF-8 character at `i`; 0 if there is none (also for surrogates and codes beyond Unicode).
[[nodiscard]] std::size_t utf8_length(std::string_view text, std::size_t i);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/core/utf8.ipp>
#endif
