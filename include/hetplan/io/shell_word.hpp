// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Names in command lines that people paste.

#include <cctype>
#include <string>
#include <string_view>

namespace hetplan::io {

/// The text as one word of a POSIX shell: as it is where no character means anything to the shell, else between single quotes.
///
/// Source  POSIX.1-2017, Shell Command Language, section 2.2, Quoting.
[[nodiscard]] inline std::string shell_word(std::string_view text) {
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

}  // namespace hetplan::io
