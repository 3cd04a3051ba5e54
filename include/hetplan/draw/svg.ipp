// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/svg.hpp>

namespace hetplan::draw {

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
