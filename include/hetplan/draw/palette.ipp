// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/palette.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace hetplan::draw {

HETPLAN_INLINE std::string color::hex() const {
  constexpr char digits[] = "0123456789abcdef";
  std::string text = "#";
  for (const std::uint8_t c : {red, green, blue}) text += {digits[c / 16], digits[c % 16]};
  return text;
}

HETPLAN_INLINE double color::luminance() const {
  const auto linear = [](std::uint8_t c) {
    const double v = c / 255.0;
    return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
}

HETPLAN_INLINE color mix(color a, color b, double share) {
  const auto blend = [&](std::uint8_t x, std::uint8_t y) { return static_cast<std::uint8_t>(std::lround((1 - share) * x + share * y)); };
  return {blend(a.red, b.red), blend(a.green, b.green), blend(a.blue, b.blue)};
}

namespace palette {

HETPLAN_INLINE double lightening(std::size_t stage, std::size_t stages) {
  return stages > 1 ? 0.5 * static_cast<double>(std::min(stage, stages - 1)) / static_cast<double>(stages - 1) : 0;
}

HETPLAN_INLINE color phase_color(phase p, std::size_t stage, std::size_t stages) {
  constexpr std::array<color, phase_count> base{{{31, 95, 168}, {214, 106, 18}, {26, 138, 107}, {108, 62, 128}}};
  return mix(base[static_cast<std::size_t>(p)], paper, lightening(stage, stages));
}

HETPLAN_INLINE color transfer_color(transfer_kind k, std::size_t from_stage, std::size_t stages) {
  constexpr std::array<color, transfer_kind_count> base{
      {{122, 173, 224}, {243, 178, 100}, {166, 140, 204}, {104, 188, 170}, {150, 186, 108}, {222, 148, 170}, {172, 156, 138}}};
  return mix(base[static_cast<std::size_t>(k)], paper, 0.6 * lightening(from_stage, stages));
}

HETPLAN_INLINE color category_color(std::size_t i) {
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

HETPLAN_INLINE color category_line_color(std::size_t i) {
  constexpr std::array<color, 10> lines{{{50, 118, 196},
                                         {214, 106, 18},
                                         {26, 138, 107},
                                         {143, 100, 190},
                                         {206, 82, 80},
                                         {158, 136, 8},
                                         {22, 142, 164},
                                         {154, 106, 70},
                                         {116, 128, 141},
                                         {104, 142, 36}}};
  return lines[i % lines.size()];
}

HETPLAN_INLINE color text_on(color fill) {
  const double l = fill.luminance();
  return (1.05 / (l + 0.05)) > (l + 0.05) / (ink.luminance() + 0.05) ? paper : ink;
}

}  // namespace palette

}  // namespace hetplan::draw
