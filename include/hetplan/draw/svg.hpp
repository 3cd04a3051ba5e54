// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Just enough SVG: shapes with an optional hover text, numbers in pixels with two decimals.

#include <string>
#include <string_view>
#include <utility>

#include <hetplan/draw/markup.hpp>
#include <hetplan/draw/palette.hpp>

namespace hetplan::draw {

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
