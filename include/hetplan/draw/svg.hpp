// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A minimal SVG writer: shapes with optional hover texts, coordinates in pixels with two decimals.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <hetplan/core/version.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::draw {

// Text of pictures: escaped for XML and DOT, the same bytes in every locale.

/// Returns a number with at most `decimals` decimals: no trailing zeros, no exponent, no "-0"; "0" if not finite.
[[nodiscard]] std::string fixed(double v, int decimals = 2);

/// Returns a number with three digits and a prefix: "1.93 s", "214 ms", "600 Mbit/s". Seconds take none above 1, bytes and bits none below.
[[nodiscard]] std::string engineering(double v, std::string_view unit);

/// Escapes a text for XML content and attributes in double quotes. Characters that XML 1.0 forbids even escaped become U+FFFD.
[[nodiscard]] std::string xml_text(std::string_view text);

/// Returns a quoted DOT string. & is escaped, as DOT reads character references such as &lt; in labels; a line break breaks the label.
[[nodiscard]] std::string dot_string(std::string_view text);

/// Returns the number of characters of a UTF-8 text, on which its width depends.
[[nodiscard]] std::size_t characters(std::string_view text);

/// Returns at most `limit` characters of a text, with "…" as the last one if shortened.
[[nodiscard]] std::string fitted(std::string_view text, std::size_t limit);

}  // namespace hetplan::draw

namespace hetplan::draw::detail {

/// Returns an integer with digits in groups of three: 86 400. The space is narrow and does not break.
[[nodiscard]] std::string grouped(long long n);
template <std::unsigned_integral Number>
[[nodiscard]] std::string grouped(Number n) {
  return grouped(static_cast<long long>(n));
}

/// Returns a number in little space: "0.25", "1 240", "124 k".
[[nodiscard]] std::string short_number(double v);

}  // namespace hetplan::draw::detail

namespace hetplan::draw {

// Colours of all pictures. Forward is blue, backward orange: distinct for colour-blind people and, by lightness, in print. Crimson is
// reserved for what needs attention.

/// An sRGB colour.
struct color {
  std::uint8_t red = 0, green = 0, blue = 0;

  [[nodiscard]] std::string hex() const;
  /// Returns the relative luminance (WCAG 2): 0 black, 1 white.
  [[nodiscard]] double luminance() const;
  friend bool operator==(const color&, const color&) = default;
};

/// Returns (1 - share) a + share b.
[[nodiscard]] color mix(color a, color b, double share);

/// Numbers of phases and of kinds of transfer, which index tables of colours.
inline constexpr std::size_t phase_count = static_cast<std::size_t>(phase::optimizer_step) + 1;
inline constexpr std::size_t transfer_kind_count = static_cast<std::size_t>(transfer_kind::read) + 1;
inline constexpr std::array<std::string_view, transfer_kind_count> transfer_kind_names{
    "forward transfer", "backward transfer", "gradient reduction",       "token",
    "weight gather",    "gradient scatter",  "all-reduce, inside tasks", "read of a tier"};

namespace palette {

inline constexpr color paper{255, 255, 255};
inline constexpr color ink{31, 41, 51};      ///< titles and names
inline constexpr color quiet{98, 110, 123};  ///< secondary text
inline constexpr color grid{228, 232, 237};
inline constexpr color track{245, 247, 249};  ///< background of bars
inline constexpr color frame{214, 220, 227};
inline constexpr color alarm{183, 22, 66};   ///< contention, memory over budget
inline constexpr color held{196, 203, 212};  ///< memory held for the whole run
inline constexpr color activations{134, 146, 160};

/// Returns the share of paper in a stage's colours: 0 in the first stage, half in the last.
[[nodiscard]] double lightening(std::size_t stage, std::size_t stages);

/// Returns the colour of a phase of a stage; later stages are lighter.
[[nodiscard]] color phase_color(phase p, std::size_t stage, std::size_t stages);

[[nodiscard]] color transfer_color(transfer_kind k, std::size_t from_stage = 0, std::size_t stages = 1);

/// Returns a light fill for unordered things (devices); repeats after ten.
[[nodiscard]] color category_color(std::size_t i);

/// Returns the same hue, strong enough for lines on white or dark paper.
[[nodiscard]] color category_line_color(std::size_t i);

/// Returns the colour of text on a fill: paper or ink, whichever has more contrast.
[[nodiscard]] color text_on(color fill);

}  // namespace palette

struct text_style {
  double size = 11;
  color fill = palette::ink;
  std::string_view anchor = "start";  ///< start, middle, end
  int weight = 400;
};

/// Writer of SVG elements. The output is self-contained: no style sheet, no script, no link.
class svg_writer {
 public:
  /// Returns the width of a text in a wide sans-serif font, in pixels: for digits and capitals, bold text, or prose.
  [[nodiscard]] static double text_width(std::string_view text, double size) { return 0.62 * size * static_cast<double>(characters(text)); }
  [[nodiscard]] static double bold_width(std::string_view text, double size) { return 0.69 * size * static_cast<double>(characters(text)); }
  [[nodiscard]] static double prose_width(std::string_view text, double size);

  void rect(double x, double y, double width, double height, std::string_view fill, std::string_view hover = {},
            std::string_view more = {});
  void path(std::string_view d, std::string_view fill, std::string_view hover = {}, std::string_view more = {});
  void line(double x1, double y1, double x2, double y2, color stroke, double width = 1, std::string_view more = {});
  void text(double x, double y, std::string_view content, const text_style& style = {}, std::string_view more = {});
  void open_group(std::string_view more) { out_.append("<g").append(more) += ">\n"; }
  void close_group() { out_ += "</g>\n"; }
  void raw(std::string_view markup) { out_ += markup; }
  void append(svg_writer&& other) { out_ += std::exchange(other.out_, {}); }

  [[nodiscard]] static std::string attribute(std::string_view name, double value);

  /// Returns the document with a background of its own, so that it is readable on any page.
  [[nodiscard]] std::string document(double width, double height, std::string_view title) &&;

  /// Returns the SVG element for an HTML page, which provides background, font and size.
  ///
  /// @param more  attributes, each with a space before it.
  [[nodiscard]] std::string embedded(double width, double height, std::string_view label, std::string_view more = {}) &&;

 private:
  void paint(std::string_view fill, std::string_view more);
  void close(std::string_view element, std::string_view hover);

  std::string out_;
};

}  // namespace hetplan::draw

#ifndef HETPLAN_SEPARATE
#include <hetplan/draw/svg.ipp>
#endif
