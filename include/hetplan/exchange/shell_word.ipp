// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/shell_word.hpp>

#include <cctype>

namespace hetplan::exchange {

HETPLAN_INLINE std::string shell_word(std::string_view text) {
  bool plain = !text.empty();
  for (const char c : text) {
    plain = plain && (std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("_-.,:/@+%").find(c) != std::string_view::npos);
  }
  if (plain) return std::string(text);
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace hetplan::exchange
