// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Just enough SVG: shapes with an optional hover text, numbers in pixels with two decimals.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <hetplan/core/linkage.hpp>
#include <hetplan/cost/work.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::draw {

// Names and numbers as pictures write them: escaped for XML, JSON and DOT, the same bytes in every locale.

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

namespace hetplan::draw::detail {

// Small signs on an axis of time; told apart by shape.

/// What happened, and what answered it: one sign for each rung of a ladder.
enum class sign { event, network, known_plan, replanned, done };

/// Around the place of the sign, in relative steps.
[[nodiscard]] constexpr std::string_view shape_of(sign s) {
  return s == sign::network      ? "m0-5.2l5 9h-10Z"
         : s == sign::known_plan ? "m-4.6 0a4.6 4.6 0 1 0 9.2 0a4.6 4.6 0 1 0-9.2 0Z"
         : s == sign::replanned  ? "m0-6l6 6l-6 6l-6-6Z"
         : s == sign::done       ? "m-1-6h9l-2.5 3l2.5 3h-7v6h-2Z"
                                 : "m-4.5-4h9l-4.5 8Z";
}

/// The attribute of what keeps its shape when the page's script stretches a chart.
inline constexpr std::string_view unstretched =
    " style=\"transform:scaleX(calc(1/var(--zoom,1)));transform-box:fill-box;transform-origin:center\"";

}  // namespace hetplan::draw::detail

namespace hetplan::draw {

// The colours of all pictures: blue goes forward, orange comes back, told apart by colour-blind people and in
// print (by lightness); crimson is kept for what needs attention.

/// An sRGB colour.
struct color {
  std::uint8_t red = 0, green = 0, blue = 0;

  [[nodiscard]] std::string hex() const;
  /// Relative luminance (WCAG 2): 0 black, 1 white.
  [[nodiscard]] double luminance() const;
  friend bool operator==(const color&, const color&) = default;
};

/// (1 - share) a + share b.
[[nodiscard]] color mix(color a, color b, double share);

/// How many phases and kinds of transfer there are: tables of colours are indexed by them.
inline constexpr std::size_t phase_count = static_cast<std::size_t>(phase::optimizer_step) + 1;
inline constexpr std::size_t transfer_kind_count = static_cast<std::size_t>(transfer_kind::all_reduce) + 1;
/// How legends call them.
inline constexpr std::array<std::string_view, transfer_kind_count> transfer_kind_names{
    "forward transfer", "backward transfer", "gradient reduction",      "token",
    "weight gather",    "gradient scatter",  "all-reduce, inside tasks"};

namespace palette {

inline constexpr color paper{255, 255, 255};
inline constexpr color ink{31, 41, 51};      ///< titles and names
inline constexpr color quiet{98, 110, 123};  ///< secondary text
inline constexpr color grid{228, 232, 237};
inline constexpr color track{245, 247, 249};  ///< where bars may lie
inline constexpr color frame{214, 220, 227};
inline constexpr color alarm{183, 22, 66};   ///< contention, memory over its budget
inline constexpr color held{196, 203, 212};  ///< memory held for the whole run
inline constexpr color activations{134, 146, 160};

/// How much paper a stage's colours get: none in the first stage, half in the last.
[[nodiscard]] double lightening(std::size_t stage, std::size_t stages);

/// A phase of a stage; later stages are lighter.
[[nodiscard]] color phase_color(phase p, std::size_t stage, std::size_t stages);

/// A kind of transfer; those of later stages are lighter.
[[nodiscard]] color transfer_color(transfer_kind k, std::size_t from_stage = 0, std::size_t stages = 1);

/// Light fills for things that have no order (devices); repeats after ten.
[[nodiscard]] color category_color(std::size_t i);

/// The same hues, strong enough for lines on paper that is white or dark.
[[nodiscard]] color category_line_color(std::size_t i);

/// Text on a fill: paper or ink, whichever stands out more.
[[nodiscard]] color text_on(color fill);

}  // namespace palette

struct text_style {
  double size = 11;
  color fill = palette::ink;
  std::string_view anchor = "start";  ///< start, middle, end
  int weight = 400;
};

/// Writes elements one after the other. Self-contained output: no style sheet, no script, no link.
class svg_writer {
 public:
  /// Pixels that a text needs in a wide sans-serif font; digits and capitals, bold, or running text.
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

  /// The whole document on a paper of its own, so that it reads on any background.
  [[nodiscard]] std::string document(double width, double height, std::string_view title) &&;

  /// For a page of HTML, which gives paper, font and size.
  ///
  /// @param more  attributes, each with a space before it.
  [[nodiscard]] std::string embedded(double width, double height, std::string_view label, std::string_view more = {}) &&;

 private:
  void paint(std::string_view fill, std::string_view more);
  void close(std::string_view element, std::string_view hover);

  std::string out_;
};

}  // namespace hetplan::draw

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/svg.ipp>
#endif
