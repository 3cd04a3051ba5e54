// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/markup.hpp>

#include <array>
#include <charconv>
#include <cmath>

#include <hetplan/core/utf8.hpp>

namespace hetplan::draw {

HETPLAN_INLINE std::string fixed(double v, int decimals) {
  if (!std::isfinite(v)) return "0";
  std::array<char, 400> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), v, std::chars_format::fixed, decimals).ptr;
  std::string text(buffer.data(), end);
  if (text.find('.') != std::string::npos) {
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
  }
  return text == "-0" ? "0" : text;
}

HETPLAN_INLINE std::string engineering(double v, std::string_view unit) {
  constexpr std::array<std::string_view, 8> prefixes{"n", "µ", "m", "", "k", "M", "G", "T"};
  constexpr std::size_t none = 3;
  const std::size_t lowest = unit == "s" ? 0 : none, highest = unit == "s" ? none : prefixes.size() - 1;
  if (!std::isfinite(v)) return (v < 0 ? "-∞ " : "∞ ") + std::string(unit);
  std::size_t p = none;
  double scaled = std::abs(v);
  // 999.5 would be written as 1000: the next prefix has it as 1.
  while (p < highest && scaled >= 999.5) scaled /= 1000, ++p;
  while (p > lowest && scaled > 0 && scaled < 0.9995) scaled *= 1000, --p;
  const int decimals = scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0;
  return (v < 0 ? "-" : "") + fixed(scaled, decimals) + " " + std::string(prefixes[p]) + std::string(unit);
}

namespace detail {

inline constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

/// Calls put(out, character) for every character; broken UTF-8 becomes U+FFFD, a byte at a time.
template <class Put>
[[nodiscard]] std::string rewrite(std::string_view text, Put&& put) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text, i);
    put(out, length == 0 ? replacement_character : text.substr(i, length));
    i += length == 0 ? 1 : length;
  }
  return out;
}

}  // namespace detail

HETPLAN_INLINE std::string xml_text(std::string_view text) {
  return detail::rewrite(text, [](std::string& out, std::string_view c) {
    if (c == "<") out += "&lt;";
    else if (c == ">") out += "&gt;";
    else if (c == "&") out += "&amp;";
    else if (c == "\"") out += "&quot;";
    else if (c == "\n") out += "&#10;";
    else if (c == "\t") out += "&#9;";
    else if (c == "\r") out += "&#13;";
    else if (static_cast<unsigned char>(c[0]) < 0x20 || c == "\xEF\xBF\xBE" || c == "\xEF\xBF\xBF") out += detail::replacement_character;
    else out += c;
  });
}

HETPLAN_INLINE std::string json_string(std::string_view text) {
  constexpr std::string_view hex = "0123456789abcdef";
  return '"' +
         detail::rewrite(text,
                         [&](std::string& out, std::string_view c) {
                           const auto code = static_cast<unsigned char>(c[0]);
                           if (c == "\"" || c == "\\") out.append("\\").append(c);
                           else if (c == "\n") out += "\\n";
                           else if (code < 0x20) out.append("\\u00") += {hex[code / 16U], hex[code % 16U]};
                           else out += c;
                         }) +
         '"';
}

HETPLAN_INLINE std::string dot_string(std::string_view text) {
  return '"' +
         detail::rewrite(text,
                         [](std::string& out, std::string_view c) {
                           if (c == "\"" || c == "\\") out.append("\\").append(c);
                           else if (c == "&") out += "&amp;";
                           else if (c == "\n") out += "\\n";
                           else if (static_cast<unsigned char>(c[0]) < 0x20) out += ' ';
                           else out += c;
                         }) +
         '"';
}

HETPLAN_INLINE std::size_t characters(std::string_view text) {
  std::size_t n = 0;
  for (const char c : text) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1U : 0U;
  return n;
}

HETPLAN_INLINE std::string fitted(std::string_view text, std::size_t limit) {
  if (characters(text) <= limit) return std::string(text);
  if (limit == 0) return {};
  std::size_t end = 0;
  for (std::size_t n = 0; n + 1 < limit; ++n) {
    const std::size_t length = utf8_length(text, end);
    end += length == 0 ? 1 : length;
  }
  return std::string(text.substr(0, end)) + "…";
}

}  // namespace hetplan::draw
