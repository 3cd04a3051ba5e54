// SPDX-License-Identifier: BSL-1.0
#pragma once
/// How messages show what a file says: short, on one line, with the name that was perhaps meant.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include <hetplan/core/error.hpp>

namespace hetplan::io {

using hetplan::escaped;

/// At most `limit` bytes of the text, never half a UTF-8 character; "..." where something was cut.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t limit);

/// A value of type string as messages show it: `"six"`.
[[nodiscard]] std::string in_quotes(std::string_view text, std::size_t limit = 40);

/// `a, b, c`.
template <class Names>
[[nodiscard]] std::string joined(const Names& names, std::string_view separator = ", ") {
  std::string text;
  for (const auto& name : names) text.append(text.empty() ? "" : separator).append(name);
  return text;
}

/// Insertions, deletions, changes and swaps of neighbours that turn a into b.
///
/// Complexity  O(|a| |b|).
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// `; did you mean "x"?` for the nearest known name, if one is near enough to be a slip of the hand; else "".
template <class Names>
[[nodiscard]] std::string suggestion(std::string_view given, const Names& known) {
  constexpr std::size_t longest = 64, most = 10000;  // an error message must not take seconds
  if (given.size() > longest) return {};
  std::size_t best = std::max<std::size_t>(1, given.size() / 3) + 1, seen = 0;
  std::string_view nearest;
  for (const auto& name : known) {
    const std::string_view candidate(name);
    if (++seen > most) break;
    if (candidate.size() > longest || candidate == given) continue;
    const std::size_t distance = edit_distance(given, candidate);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest.empty() ? std::string() : "; did you mean " + in_quotes(nearest) + "?";
}

}  // namespace hetplan::io

#ifndef HETPLAN_COMPILED
#include <hetplan/io/text.ipp>
#endif
