// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The answer to a name that nobody knows.

#include <span>
#include <string>
#include <string_view>

#include <hetplan/core/error.hpp>

namespace hetplan::zoo {

/// Throws invalid_input: `who: unknown model "x"; expected one of a, b, c`.
[[noreturn]] inline void throw_unknown(std::string_view who, std::string_view what, std::string_view given,
                                       std::span<const std::string_view> known) {
  std::string text(who);
  text.append(": unknown ").append(what).append(" \"").append(given).append("\"; expected one of ");
  for (std::size_t i = 0; i < known.size(); ++i) text.append(i == 0 ? "" : ", ").append(known[i]);
  throw invalid_input(text);
}

}  // namespace hetplan::zoo
