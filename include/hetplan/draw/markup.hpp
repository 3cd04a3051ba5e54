// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Names and numbers as pictures write them: escaped for XML, JSON and DOT, the same bytes in every locale.

#include <cstddef>
#include <string>
#include <string_view>

#include <hetplan/core/linkage.hpp>

namespace hetplan::draw {

/// `decimals` at most, no trailing zeros, never an exponent, never "-0"; "0" if not finite.
[[nodiscard]] std::string fixed(double v, int decimals = 2);

/// Three digits and the prefix that fits: "1.93 s", "214 ms", "4.1 GB", "600 Mbit/s". Seconds have no
/// prefix above one, bytes and bits none below.
[[nodiscard]] std::string engineering(double v, std::string_view unit);

/// For XML text and attributes in double quotes. What XML 1.0 forbids even escaped becomes U+FFFD.
[[nodiscard]] std::string xml_text(std::string_view text);

/// A JSON string with its quotes.
[[nodiscard]] std::string json_string(std::string_view text);

/// A DOT string with its quotes. DOT reads character references such as &lt; in labels, so & is one too; a line
/// break is a line of the label.
[[nodiscard]] std::string dot_string(std::string_view text);

/// Characters of a UTF-8 text: what its width follows from.
[[nodiscard]] std::size_t characters(std::string_view text);

/// At most `limit` characters, the last of them "…" where something was cut.
[[nodiscard]] std::string fitted(std::string_view text, std::size_t limit);

}  // namespace hetplan::draw

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/markup.ipp>
#endif
