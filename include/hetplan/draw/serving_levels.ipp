// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/serving_levels.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/draw/clock_scale.hpp>
#include <hetplan/draw/gantt_scale.hpp>
#include <hetplan/draw/page.hpp>
#include <hetplan/draw/svg.hpp>

namespace hetplan::draw::detail {

HETPLAN_INLINE double answered_within(const serve::service& s, const serve::service_totals& t, double times) {
  const auto all = static_cast<double>(t.requests()), served = static_cast<double>(t[serve::request_outcome::served]);
  if (all == 0) return 0;
  if (times == 1) return served / all;
  // A bin of the histogram that holds the SLO itself is cut there.
  const double within = t.latency.count_within(seconds(times * s.latency.value()));
  return (times < 1 ? std::min(within, served) : std::max(within, served)) / all;
}

/// Curves on the left, bars of streams on the right.
class levels_painter {
 public:
  explicit levels_painter(const serving_view& view) : view_(view) {
    for (std::size_t l = 0; l < view.services.size(); ++l) {
      if (view.history.services[l].requests() > 0) (view.services[l].is_stream() ? streams_ : timed_).push_back(l);
    }
    if (timed_.empty()) bars_left_ = 172;
    if (streams_.empty()) right_ = 950;
    height_ = std::max(260.0, 15.0 * static_cast<double>(std::max(timed_.size(), streams_.size() * 2)));
  }

  [[nodiscard]] std::string paint() && {
    if (timed_.empty() && streams_.empty()) return {};
    if (!timed_.empty()) curves();
    if (!streams_.empty()) bars();
    return std::move(out_).embedded(1180, box_top + height_ + 52, "Share of requests answered within multiples of the SLO",
                                    " id=\"levels-chart\"");
  }

 private:
  static constexpr double left = 172, box_top = 14, octaves = 4;
  static constexpr std::size_t steps = 32;  ///< of an octave
  [[nodiscard]] row_box box() const { return {box_top, height_}; }
  [[nodiscard]] double x(double times) const { return left + (right_ - left) * (std::log2(times) + 2) / octaves; }

  void curves() {
    out_.rect(left, box_top, right_ - left, height_, palette::track.hex());
    for (int p = 0; p <= 100; p += 25) {
      const double y = box().level(p / 100.0);
      out_.line(left, y, right_, y, palette::grid);
      out_.text(left - 8, y + 3.5, std::to_string(p) + " %", {.size = 10.5, .fill = palette::quiet, .anchor = "end"});
    }
    out_.text(0, box_top + height_ / 2 - 4, "Answered", {.size = 12.5, .weight = 600});
    out_.text(0, box_top + height_ / 2 + 12, "share of requests", {.size = 10.5, .fill = palette::quiet});
    const double bottom = box_top + height_;
    for (const auto& [times, text] :
         std::array<std::pair<double, std::string_view>, 5>{{{0.25, "¼"}, {0.5, "½"}, {1, "SLO"}, {2, "2"}, {4, "4"}}}) {
      if (times == 1) out_.line(x(1), box_top, x(1), bottom + 4, palette::ink, 1.2, " stroke-dasharray=\"4 3\"");
      else out_.line(x(times), box_top, x(times), bottom + 4, palette::grid);
      out_.text(x(times), bottom + 20, text,
                {.fill = times == 1 ? palette::ink : palette::quiet, .anchor = "middle", .weight = times == 1 ? 600 : 400});
    }
    out_.text((left + right_) / 2, bottom + 40, "time to the answer, in multiples of the SLO",
              {.size = 10.5, .fill = palette::quiet, .anchor = "middle"});
    for (const std::size_t l : timed_) curve(l);
    labels();
  }
  [[nodiscard]] double share(std::size_t l, double times) const {
    return answered_within(view_.services[l], view_.history.services[l], times);
  }
  void curve(std::size_t l) {
    std::string d;
    for (std::size_t k = 0; k <= static_cast<std::size_t>(octaves) * steps; ++k) {
      const double times = std::exp2(static_cast<double>(k) / steps - 2);
      d += (k == 0 ? "M" : "L") + fixed(x(times), 1) + " " + fixed(box().level(share(l, times)), 1);
    }
    const std::string stroke = " stroke=\"" + view_.line(l).hex() + "\" stroke-width=\"2\" stroke-linejoin=\"round\"" +
                               (l >= 10 ? " stroke-dasharray=\"6 3\"" : "");  // colours begin again
    out_.path(d, "none", {}, stroke);
    std::string hover = view_.services[l].name + ": answered within";
    for (const auto& [times, words] : std::array<std::pair<double, std::string_view>, 4>{
             {{0.5, "half the SLO"}, {1, "the SLO"}, {2, "twice the SLO"}, {4, "four times the SLO"}}})
      hover +=
          "\n" + engineering(times * view_.services[l].latency.value(), "s") + ", " + std::string(words) + ": " + percent(share(l, times));
    out_.path(d, "none", hover, " class=\"curve\" stroke=\"transparent\" stroke-width=\"12\" pointer-events=\"stroke\"");
  }
  /// At the ends of the curves, moved apart, each with its share within the SLO.
  void labels() {
    constexpr double line = 15;
    std::vector<std::pair<double, std::size_t>> at;  // baseline, service
    for (const std::size_t l : timed_) at.emplace_back(box().level(share(l, 4)) + 4, l);
    std::ranges::sort(at);
    for (std::size_t i = 1; i < at.size(); ++i) at[i].first = std::max(at[i].first, at[i - 1].first + line);
    double lowest = box_top + height_ + 4;
    for (std::size_t i = at.size(); i-- > 0; lowest -= line) lowest = at[i].first = std::min(at[i].first, lowest);
    for (const auto& [y, l] : at) {
      const double end = box().level(share(l, 4));
      out_.path("M" + fixed(right_ + 2) + " " + fixed(end, 1) + "L" + fixed(right_ + 12) + " " + fixed(y - 4, 1), "none", {},
                " stroke=\"" + view_.line(l).hex() + "\"");
      out_.text(right_ + 16, y, fitted(view_.services[l].name, 18) + "  " + percent(share(l, 1)), {.size = 11, .fill = palette::quiet});
    }
  }
  void bars() {
    const double width = 1180 - bars_left_, pitch = std::min(44.0, height_ / static_cast<double>(streams_.size()));
    double y = box_top;
    for (const std::size_t l : streams_) {
      const auto& t = view_.history.services[l];
      out_.text(bars_left_, y + 11, fitted(view_.services[l].name, 22), {.size = 11.5, .weight = 600});
      out_.text(1180, y + 11, percent(t.attainment()), {.size = 11.5, .anchor = "end", .weight = 600});
      const std::string hover = view_.services[l].name + ", a stream at " + fixed(view_.services[l].rate, 2) + " frames/s\n" +
                                short_number(t.credit) + " of " + short_number(t.asked) + " frames served";
      out_.rect(bars_left_, y + 17, width, 9, palette::track.hex(), hover);
      out_.rect(bars_left_, y + 17, width * std::clamp(t.attainment(), 0.0, 1.0), 9, view_.line(l).hex(), hover);
      y += pitch;
    }
    out_.text(bars_left_, box_top + height_ + 40, "streams: share of their frames that was served", {.size = 10.5, .fill = palette::quiet});
  }

  const serving_view& view_;
  std::vector<std::size_t> timed_, streams_;
  double right_ = 700, bars_left_ = 930, height_ = 260;
  svg_writer out_;
};

HETPLAN_INLINE std::string levels_chart(const serving_view& view) { return levels_painter(view).paint(); }

}  // namespace hetplan::draw::detail
