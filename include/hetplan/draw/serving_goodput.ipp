// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/serving_goodput.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include <hetplan/draw/clock_scale.hpp>
#include <hetplan/draw/report_time_chart.hpp>
#include <hetplan/draw/serving_marks.hpp>
#include <hetplan/draw/ticks.hpp>

namespace HETPLAN_NAMESPACE::draw::detail {

/// Some bins of the history together, as amounts a second.
struct goodput_bin {
  double from_s = 0, to_s = 0;
  std::vector<double> served, asked;  ///< by service
};

[[nodiscard]] HETPLAN_INLINE std::vector<goodput_bin> goodput_bins(const serving_view& view) {
  constexpr std::size_t most = 400;
  const auto& h = view.history;
  const std::size_t bins = std::max(h.goodput.size(), h.offered.size()), each = (bins + most - 1) / most;
  std::vector<goodput_bin> all;
  for (std::size_t first = 0; first < bins; first += each) {
    const std::size_t end = std::min(bins, first + each);
    goodput_bin b{static_cast<double>(first) * h.bin.value(), static_cast<double>(end) * h.bin.value(),
                  std::vector<double>(view.services.size()), std::vector<double>(view.services.size())};
    // The last one holds all that is later; the first one something even where nothing lasts.
    if (end == bins || b.to_s > view.duration_s) b.to_s = std::max(view.duration_s, b.from_s + 1e-9 * view.duration_s);
    const double width_s = std::max(static_cast<double>(each) * h.bin.value(), b.to_s - b.from_s);  // also of one that the end cuts short
    for (std::size_t k = first; k < end; ++k) {
      for (std::size_t l = 0; l < view.services.size(); ++l) {
        if (k < h.goodput.size()) b.served[l] += h.goodput[k][l] / width_s;
        if (k < h.offered.size()) b.asked[l] += h.offered[k][l] / width_s;
      }
    }
    all.push_back(std::move(b));
  }
  return all;
}

/// Services of one unit over time.
class goodput_panel {
 public:
  goodput_panel(const serving_view& view, const std::vector<goodput_bin>& bins, bool streams) : view_(view), bins_(bins) {
    for (std::size_t l = 0; l < view.services.size(); ++l) {
      if (view.services[l].is_stream() == streams) shown_.push_back(l);
    }
    for (const auto& b : bins) most_ = std::max({most_, sum(b.served), sum(b.asked)});
  }
  [[nodiscard]] bool empty() const { return shown_.empty(); }
  [[nodiscard]] std::string unit() const { return view_.unit(shown_.front()); }

  void paint(time_chart& chart, row_box box) const {
    const time_axis& axis = chart.axis();
    const double step = round_step(most_ > 0 ? most_ : 1, 4), full = std::max(1.0, std::ceil(most_ / step - 1e-9)) * step;
    chart.name((unit() == "frames" ? "Frames" : "Requests") + std::string(" a second"), "served, by service", box.top, box.height);
    chart.plot.rect(axis.left, box.top, axis.width, box.height, palette::track.hex());
    const double unit = full >= 1e5 ? 1000 : 1;
    for (double v = 0; v <= full * (1 + 1e-9); v += step) {
      const double y = box.level(v / full);
      chart.level(short_number(v / unit) + (unit > 1 && v > 0 ? " k" : ""), y + 3.5);
      if (v > 0) chart.plot.line(axis.left, y, axis.left + axis.width, y, palette::grid);
    }
    std::vector<double> below(bins_.size(), 0);
    for (const std::size_t l : shown_) area(chart, box, full, l, below);
    std::vector<level> asked;
    for (const auto& b : bins_) asked.push_back({b.from_s, b.to_s, sum(b.asked)});
    const std::string line = step_line(asked, axis, box, full);
    chart.plot.path(line, "none", {}, " class=\"offered halo\" stroke-width=\"3.6\"");  // or it would be lost on its way over the areas
    chart.plot.path(line, "none", {}, " class=\"offered\" stroke-width=\"1.4\"");
    names(chart, box);
    for (const auto& b : bins_)
      chart.plot.rect(axis.at(b.from_s), box.top, axis.at(b.to_s) - axis.at(b.from_s), box.height, "transparent", hover(b));
  }

 private:
  [[nodiscard]] double sum(const std::vector<double>& by_service) const {
    double all = 0;
    for (const std::size_t l : shown_) all += by_service[l];
    return all;
  }
  void area(time_chart& chart, row_box box, double full, std::size_t l, std::vector<double>& below) const {
    std::string up, back;
    bool any = false;
    for (std::size_t k = 0; k < bins_.size(); ++k) {
      const double v = bins_[k].served[l], base = below[k];
      any = any || v > 0;
      below[k] += v;
      up += "V" + fixed(box.level(below[k] / full), 1) + "H" + fixed(chart.axis().at(bins_[k].to_s), 1);
      back = "V" + fixed(box.level(base / full), 1) + "H" + fixed(chart.axis().at(bins_[k].from_s), 1) + back;
    }
    if (any) chart.plot.path("M" + fixed(chart.axis().left) + " " + fixed(box.top + box.height, 1) + up + back + "Z", view_.fill(l).hex());
  }
  /// On the right, from the top of the stack down.
  void names(time_chart& chart, row_box box) const {
    const double x = time_chart::width - time_chart::numbers + 12, line = 15;
    const auto room = static_cast<std::size_t>(box.height / line) - 1;
    const std::size_t shown = shown_.size() <= room ? shown_.size() : room - 1;
    double y = box.top + 10;
    for (std::size_t k = 0; k < shown; ++k, y += line) {
      const std::size_t l = shown_[shown_.size() - 1 - k];
      chart.still.rect(x, y - 9, 11, 11, view_.fill(l).hex());
      chart.still.text(x + 17, y, fitted(view_.services[l].name, 16), {.size = 11, .fill = palette::quiet});
    }
    if (shown < shown_.size()) {
      chart.still.text(x + 17, y, "and " + std::to_string(shown_.size() - shown) + " more", {.size = 11, .fill = palette::quiet});
      y += line;
    }
    chart.still.path("M" + fixed(x) + " " + fixed(y - 3.5, 1) + "h12", "none", {}, " class=\"offered\" stroke-width=\"1.4\"");
    chart.still.text(x + 17, y, "asked for", {.size = 11, .fill = palette::quiet});
  }
  [[nodiscard]] std::string hover(const goodput_bin& b) const {
    constexpr std::size_t most = 14;
    std::string text = clock_text(b.from_s) + " to " + clock_text(b.to_s) + ": " + short_number(sum(b.served)) + " of " +
                       short_number(sum(b.asked)) + " " + unit() + " a second";
    for (std::size_t k = 0; k < shown_.size() && k < most; ++k) {
      const std::size_t l = shown_[shown_.size() - 1 - k];
      text += "\n" + view_.services[l].name + ": " + short_number(b.served[l]) + " of " + short_number(b.asked[l]);
    }
    return shown_.size() <= most ? text : text + "\n…";
  }

  const serving_view& view_;
  const std::vector<goodput_bin>& bins_;
  std::vector<std::size_t> shown_;
  double most_ = 0;
};

HETPLAN_INLINE std::string goodput_chart(const serving_view& view) {
  const auto bins = goodput_bins(view);
  time_chart chart(view.duration_s);
  const double top = paint_marks(chart, view, 4);
  double y = top;
  for (const bool streams : {false, true}) {
    const goodput_panel panel(view, bins, streams);
    if (panel.empty()) continue;
    y += y > top ? 18 : 4;
    panel.paint(chart, {y, 150});
    y += 150;
  }
  chart.plot.raw(mark_lines(chart, view, top, y));
  const auto ticks = clock_ticks(chart.axis());
  return std::move(chart).finish("goodput-chart", "Goodput over time", top, y, ticks, {});
}

}  // namespace HETPLAN_NAMESPACE::draw::detail
