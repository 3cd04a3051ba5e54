// SPDX-License-Identifier: BSL-1.0
#pragma once
/// How messages show what a file says: short, on one line, with the name that was perhaps meant.

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace hetplan::io {

/// The text with control characters written as \n, \t or \u00XX, so that a message stays on one line and
/// a hostile file cannot speak to the terminal.
[[nodiscard]] inline std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    // The second control block (U+0080 to U+009F) is 0xC2 and the code in UTF-8.
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

/// At most `limit` bytes of the text, never half a UTF-8 character; "..." where something was cut.
[[nodiscard]] inline std::string shortened(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return std::string(text);
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0) == 0x80) --limit;
  return std::string(text.substr(0, limit)) + "...";
}

/// A value of type string as messages show it: `"six"`.
[[nodiscard]] inline std::string in_quotes(std::string_view text, std::size_t limit = 40) {
  return "\"" + escaped(shortened(text, limit)) + "\"";
}

/// Insertions, deletions, changes and swaps of neighbours that turn a into b.
///
/// Complexity  O(|a| |b|).
[[nodiscard]] inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) now[j] = std::min(now[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(now);
  }
  return last[b.size()];
}

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
