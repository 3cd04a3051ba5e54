// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/adaptation_canvas.hpp>

namespace hetplan::draw::detail {

HETPLAN_INLINE std::string hatch_patterns() {
  const auto pattern = [](std::string_view id, color c) {
    return "<pattern id=\"hetplan-" + std::string(id) +
           "\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><rect width=\"5\" height=\"5\" "
           "fill=\"" +
           c.hex() + "\"/><rect width=\"1.6\" height=\"5\" fill=\"#ffffff\" fill-opacity=\"0.65\"/></pattern>";
  };
  return "<defs>" + pattern("away", adaptation_colors::away) + pattern("migrating", adaptation_colors::migrating) +
         pattern("outage", adaptation_colors::stalled) + pattern("lost", adaptation_colors::cut_off) + "</defs>\n";
}

HETPLAN_INLINE adaptation_canvas::adaptation_canvas(const adaptation_view& v, const hetplan::cluster& c, const adaptation_detail& d)
    : view(v), cluster(c), detail(d), chart(v.duration_s) {}

HETPLAN_INLINE void adaptation_canvas::track(row_box box) {
  chart.plot.rect(chart.axis().left, box.top, chart.axis().width, box.height, palette::track.hex());
  chart.plot.raw(marks(box.top, box.top + box.height));
}

HETPLAN_INLINE std::string adaptation_canvas::marks(double top, double bottom) const {
  if (view.marks.empty() || view.marks.size() > 80) return {};
  std::string d;
  for (const double at : view.marks) d += "M" + fixed(x(at), 1) + " " + fixed(top, 1) + "V" + fixed(bottom, 1);
  return "<path d=\"" + d + "\" fill=\"none\" stroke=\"" + palette::activations.hex() +
         "\" stroke-opacity=\"0.6\" stroke-dasharray=\"2 3\"/>\n";
}

HETPLAN_INLINE void adaptation_canvas::box(double from_s, double to_s, row_box b, std::string_view fill, std::string_view hover) {
  chart.plot.rect(x(from_s), b.top, std::max(1.0, x(to_s) - x(from_s)), b.height, fill, hover);
}

HETPLAN_INLINE void adaptation_canvas::stroke(const std::string& d, color c, double width) {
  if (!d.empty()) chart.plot.path(d, "none", {}, " stroke=\"" + c.hex() + "\" stroke-width=\"" + fixed(width) + "\"");
}

HETPLAN_INLINE void adaptation_canvas::cell(double from_s, double to_s, row_box b, std::string_view hover) {
  chart.plot.rect(x(from_s), b.top, x(to_s) - x(from_s), b.height, "transparent", hover);
}

HETPLAN_INLINE void adaptation_canvas::mark(sign s, double at_s, double y, std::string_view hover) {
  const std::string at = "M" + fixed(x(at_s)) + " " + fixed(y, 1);
  chart.plot.path(at + std::string(shape_of(s)), color_of(s).hex(), hover, detail.zooms ? unstretched : std::string_view());
}

HETPLAN_INLINE void adaptation_canvas::label(double at_s, double baseline, std::string_view text, double room, const text_style& style,
                                             std::string more) {
  const double width = svg_writer::prose_width(text, style.size) + 6, left = chart.axis().left, right = left + chart.axis().width;
  if (width > room && !detail.zooms) return;
  if (width > room) more += " data-show=\"" + fixed(width / std::max(room, 0.5), 2) + "\" visibility=\"hidden\"";
  text_style middle = style;
  middle.anchor = "middle";
  const double half = std::min(width, chart.axis().width) / 2;
  chart.plot.text(std::clamp(x(at_s), left + half, right - half), baseline, text, middle, more);
}

HETPLAN_INLINE void sign_row::paint(adaptation_canvas& k, double y) {
  std::stable_sort(all_.begin(), all_.end(), [](const item& a, const item& b) { return a.at_s < b.at_s; });
  if (all_.size() > k.detail.signs) thin(k);
  const auto width = [&](std::size_t i) { return i < all_.size() ? svg_writer::prose_width(all_[i].words, 9.5) + 6 : 0; };
  const double left = k.chart.axis().left, right = left + k.chart.axis().width;
  double free_from = left;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const double here = k.x(all_[i].at_s), before = i > 0 ? k.x(all_[i - 1].at_s) : left - 100;
    const double next = i + 1 < all_.size() ? k.x(all_[i + 1].at_s) : right + 100;
    // Words stand centred, at the edges of the chart beside that, and never above another sign.
    const double begin = std::clamp(here - width(i) / 2, left, std::max(left, right - width(i)));
    if (!all_[i].words.empty() && begin >= std::max(free_from, before + 5) && begin + width(i) <= next - 5) {
      k.label(all_[i].at_s, y - 8, all_[i].words, width(i), {.size = 9.5});
      free_from = begin + width(i);
    } else if (k.detail.zooms && !all_[i].words.empty()) {
      // Later, when both neighbours leave room for the widest of the three.
      const double widest = std::max({width(i), i > 0 ? width(i - 1) : 0, width(i + 1)});
      k.label(all_[i].at_s, y - 8, all_[i].words, width(i) * std::min(here - before, next - here) / widest, {.size = 9.5});
    }
    k.mark(all_[i].what, all_[i].at_s, y, all_[i].hover);
  }
}

HETPLAN_INLINE void sign_row::thin(const adaptation_canvas& k) {
  std::vector<item> few;
  std::size_t together = 1;
  const double apart = std::max(9.0, k.chart.axis().width / static_cast<double>(k.detail.signs));
  for (item& i : all_) {
    if (!few.empty() && k.x(i.at_s) - k.x(few.back().at_s) < apart) {
      ++together;
      few.back().what = std::max(few.back().what, i.what);
      few.back().words.clear();
      few.back().hover = std::to_string(together) + " from " + clock_text(few.back().at_s) + " on; the last:\n" + i.hover;
      continue;
    }
    together = 1;
    few.push_back(std::move(i));
  }
  all_ = std::move(few);
}

}  // namespace hetplan::draw::detail
