// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/core/error.hpp>

#include <chrono>

namespace hetplan {

HETPLAN_INLINE std::size_t utf8_length(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t k) {
    return i + k < text.size() ? static_cast<unsigned>(static_cast<unsigned char>(text[i + k])) : 0U;
  };
  const unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xC2 && first < 0xE0 ? 2 : first >= 0xE0 && first < 0xF0 ? 3 : first >= 0xF0 && first < 0xF5 ? 4 : 0;
  for (std::size_t k = 1; k < length; ++k) {
    if ((byte(k) & 0xC0) != 0x80) return 0;
  }
  const bool too_long = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool beyond = (first == 0xED && second >= 0xA0) || (first == 0xF4 && second >= 0x90);
  return too_long || beyond ? 0 : length;
}

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
