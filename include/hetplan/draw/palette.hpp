// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The colours of all pictures: blue goes forward, orange comes back, told apart by colour-blind people and in
/// print (by lightness); crimson is kept for what needs attention.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <hetplan/cost/work.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::draw {

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

}  // namespace hetplan::draw

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/palette.ipp>
#endif
