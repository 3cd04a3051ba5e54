// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/core/error.hpp>

#include <chrono>
#include <cstddef>
#include <cstdio>

namespace hetplan {

namespace detail {

[[nodiscard]] HETPLAN_INLINE long long now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace detail

HETPLAN_INLINE stopwatch::stopwatch() : begin_ns_(detail::now_ns()) {}

HETPLAN_INLINE double stopwatch::elapsed_s() const { return static_cast<double>(detail::now_ns() - begin_ns_) * 1e-9; }

HETPLAN_INLINE std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F, the second block of control characters, are 0xC2 followed by the code in UTF-8.
    const bool second_block = c == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) >= 0x80 &&
                              static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c < 0x20 || c == 0x7F || second_block) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04X", second_block ? static_cast<unsigned char>(text[++i]) : c);
      out += code;
    } else {
      out += static_cast<char>(c);
    }
  }
  return out;
}

}  // namespace hetplan
