// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The colours of all pictures: blue goes forward, orange comes back, told apart by colour-blind people and in
/// print (by lightness); crimson is kept for what needs attention.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include <hetplan/cost/work.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::io {

/// An sRGB colour.
struct color {
  std::uint8_t red = 0, green = 0, blue = 0;

  [[nodiscard]] std::string hex() const {
    constexpr char digits[] = "0123456789abcdef";
    std::string text = "#";
    for (const std::uint8_t c : {red, green, blue}) text += {digits[c / 16], digits[c % 16]};
    return text;
  }
  /// Relative luminance (WCAG 2): 0 black, 1 white.
  [[nodiscard]] double luminance() const {
    const auto linear = [](std::uint8_t c) {
      const double v = c / 255.0;
      return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
    };
    return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  }
  friend bool operator==(const color&, const color&) = default;
};

/// (1 - share) a + share b.
[[nodiscard]] inline color mix(color a, color b, double share) {
  const auto blend = [&](std::uint8_t x, std::uint8_t y) { return static_cast<std::uint8_t>(std::lround((1 - share) * x + share * y)); };
  return {blend(a.red, b.red), blend(a.green, b.green), blend(a.blue, b.blue)};
}

/// How many phases and kinds of transfer there are: tables of colours are indexed by them.
inline constexpr std::size_t phase_count = static_cast<std::size_t>(phase::optimizer_step) + 1;
inline constexpr std::size_t transfer_kind_count = static_cast<std::size_t>(transfer_kind::token) + 1;

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
[[nodiscard]] inline double lightening(std::size_t stage, std::size_t stages) {
  return stages > 1 ? 0.5 * static_cast<double>(std::min(stage, stages - 1)) / static_cast<double>(stages - 1) : 0;
}

/// A phase of a stage; later stages are lighter.
[[nodiscard]] inline color phase_color(phase p, std::size_t stage, std::size_t stages) {
  constexpr std::array<color, phase_count> base{{{31, 95, 168}, {214, 106, 18}, {26, 138, 107}, {108, 62, 128}}};
  return mix(base[static_cast<std::size_t>(p)], paper, lightening(stage, stages));
}

/// A kind of transfer; those of later stages are lighter.
[[nodiscard]] inline color transfer_color(transfer_kind k, std::size_t from_stage = 0, std::size_t stages = 1) {
  constexpr std::array<color, transfer_kind_count> base{{{122, 173, 224}, {243, 178, 100}, {166, 140, 204}, {104, 188, 170}}};
  return mix(base[static_cast<std::size_t>(k)], paper, 0.6 * lightening(from_stage, stages));
}

/// Light fills for things that have no order (devices); repeats after ten.
[[nodiscard]] inline color category_color(std::size_t i) {
  constexpr std::array<color, 10> fills{{{174, 205, 236},
                                         {250, 209, 158},
                                         {163, 217, 199},
                                         {208, 190, 230},
                                         {244, 180, 177},
                                         {240, 228, 140},
                                         {176, 224, 232},
                                         {226, 201, 178},
                                         {205, 211, 218},
                                         {200, 222, 148}}};
  return fills[i % fills.size()];
}

/// Text on a fill: paper or ink, whichever stands out more.
[[nodiscard]] inline color text_on(color fill) {
  const double l = fill.luminance();
  return (1.05 / (l + 0.05)) > (l + 0.05) / (ink.luminance() + 0.05) ? paper : ink;
}

}  // namespace palette

}  // namespace hetplan::io
