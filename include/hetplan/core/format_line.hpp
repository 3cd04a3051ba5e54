// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Numbers in sentences.

#include <cstddef>
#include <cstdio>
#include <string>

#include <hetplan/core/linkage.hpp>

namespace hetplan {

/// What std::printf would write. Arguments are numbers and C strings.
template <class... Args>
[[nodiscard]] std::string format_line(const char* format, Args... args) {
  const int length = std::snprintf(nullptr, 0, format, args...);
  std::string text(static_cast<std::size_t>(length), '\0');
  std::snprintf(text.data(), text.size() + 1, format, args...);
  return text;
}

}  // namespace hetplan
