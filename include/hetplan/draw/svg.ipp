// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/svg.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>

#include <hetplan/core/error.hpp>

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
  // 999.5 would be rounded to 1000: the next prefix gives 1.
  while (p < highest && scaled >= 999.5) scaled /= 1000, ++p;
  while (p > lowest && scaled > 0 && scaled < 0.9995) scaled *= 1000, --p;
  const int decimals = scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0;
  return (v < 0 ? "-" : "") + fixed(scaled, decimals) + " " + std::string(prefixes[p]) + std::string(unit);
}

namespace detail {

inline constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

/// Calls put(out, character) for every character. Every byte of invalid UTF-8 becomes U+FFFD.
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

namespace detail {

HETPLAN_INLINE std::string grouped(long long n) {
  std::string text = std::to_string(n);
  for (std::size_t i = text.size(); i > 3 && text[i - 4] != '-';) text.insert(i -= 3, "\xE2\x80\xAF");
  return text;
}

HETPLAN_INLINE std::string short_number(double v) {
  if (v >= 99'999.5) {
    std::string text = engineering(v, "");
    while (text.back() == ' ') text.pop_back();
    return text;
  }
  return v == std::floor(v) || v >= 100 ? grouped(std::llround(v)) : fixed(v, v < 10 ? 2 : 1);
}

}  // namespace detail

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
  constexpr std::array<color, transfer_kind_count> base{{{122, 173, 224},
                                                         {243, 178, 100},
                                                         {166, 140, 204},
                                                         {104, 188, 170},
                                                         {150, 186, 108},
                                                         {222, 148, 170},
                                                         {172, 156, 138},
                                                         {128, 146, 178}}};
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

HETPLAN_INLINE double svg_writer::prose_width(std::string_view text, double size) {
  return 0.56 * size * static_cast<double>(characters(text));
}

HETPLAN_INLINE void svg_writer::rect(double x, double y, double width, double height, std::string_view fill, std::string_view hover,
                                     std::string_view more) {
  out_ += "<rect" + attribute("x", x) + attribute("y", y) + attribute("width", width) + attribute("height", height);
  paint(fill, more);
  close("rect", hover);
}

HETPLAN_INLINE void svg_writer::path(std::string_view d, std::string_view fill, std::string_view hover, std::string_view more) {
  out_.append("<path d=\"").append(d) += "\"";
  paint(fill, more);
  close("path", hover);
}

HETPLAN_INLINE void svg_writer::line(double x1, double y1, double x2, double y2, color stroke, double width, std::string_view more) {
  out_ += "<line" + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) + attribute("y2", y2) + " stroke=\"" + stroke.hex() +
          "\"" + attribute("stroke-width", width);
  out_ += more;
  close("line", {});
}

HETPLAN_INLINE void svg_writer::text(double x, double y, std::string_view content, const text_style& style, std::string_view more) {
  out_ += "<text" + attribute("x", x) + attribute("y", y) + attribute("font-size", style.size) + " fill=\"" + style.fill.hex() + "\"";
  if (style.anchor != "start") out_.append(" text-anchor=\"").append(style.anchor) += "\"";
  if (style.weight != 400) out_ += " font-weight=\"" + std::to_string(style.weight) + "\"";
  out_ += more;
  out_ += ">" + xml_text(content) + "</text>\n";
}

HETPLAN_INLINE std::string svg_writer::attribute(std::string_view name, double value) {
  return " " + std::string(name) + "=\"" + fixed(value) + "\"";
}

HETPLAN_INLINE std::string svg_writer::document(double width, double height, std::string_view title) && {
  svg_writer page;
  page.out_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + fixed(width) + " " + fixed(height) + "\"" +
              attribute("width", width) + attribute("height", height) +
              " role=\"img\" font-family=\"system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, "
              "'DejaVu Sans', sans-serif\">\n<title>" +
              xml_text(title) + "</title>\n";
  page.rect(0.5, 0.5, width - 1, height - 1, palette::paper.hex(), {}, " rx=\"10\" stroke=\"" + palette::frame.hex() + "\"");
  return std::move(page.out_) + out_ + "</svg>\n";
}

HETPLAN_INLINE std::string svg_writer::embedded(double width, double height, std::string_view label, std::string_view more) && {
  return "<svg viewBox=\"0 0 " + fixed(width) + " " + fixed(height) + "\" role=\"img\" aria-label=\"" + xml_text(label) + "\"" +
         std::string(more) + ">\n" + std::move(out_) + "</svg>\n";
}

HETPLAN_INLINE void svg_writer::paint(std::string_view fill, std::string_view more) {
  out_.append(" fill=\"").append(fill) += "\"";
  out_ += more;
}

HETPLAN_INLINE void svg_writer::close(std::string_view element, std::string_view hover) {
  if (hover.empty()) {
    out_ += "/>\n";
  } else {
    out_ += "><title>" + xml_text(hover) + "</title></" + std::string(element) + ">\n";
  }
}

}  // namespace hetplan::draw
