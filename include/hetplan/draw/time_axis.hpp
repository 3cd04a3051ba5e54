// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Charts over time: axis, ticks, signs, and values that change more often than there are pixels.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/core/version.hpp>
#include <hetplan/draw/svg.hpp>

namespace hetplan::draw::detail {

/// Maps time to pixels.
struct time_axis {
  double left = 0, width = 1, latency_s = 1;
  [[nodiscard]] double at(double t) const { return left + width * std::clamp(t / latency_s, 0.0, 1.0); }
  [[nodiscard]] std::size_t pixels() const { return static_cast<std::size_t>(std::max(1.0, std::ceil(width))); }
  [[nodiscard]] std::size_t pixel(double t) const {
    return std::min(pixels() - 1, static_cast<std::size_t>(std::max(0.0, std::floor(at(t) - left))));
  }
};

struct row_box {
  double top = 0, height = 0;
  [[nodiscard]] double level(double share) const { return top + height * (1 - std::clamp(share, 0.0, 1.0)); }
};

/// Stacked areas for details finer than bars: the mean share of each kind in every pixel.
template <std::size_t Kinds>
class pixel_areas {
 public:
  pixel_areas(time_axis axis, row_box box) : axis_(axis), box_(box) {
    for (auto& kind : mean_) kind.assign(axis_.pixels(), 0);
  }

  void add(std::size_t kind, double start_s, double end_s, double share) {
    const double pixel_s = axis_.latency_s / static_cast<double>(axis_.pixels());
    for (std::size_t x = axis_.pixel(start_s); x <= axis_.pixel(end_s); ++x) {
      const double from = std::max(start_s, static_cast<double>(x) * pixel_s), to = std::min(end_s, static_cast<double>(x + 1) * pixel_s);
      if (to > from) mean_[kind][x] += (to - from) / pixel_s * share;
    }
  }

  void paint(svg_writer& out, const std::array<std::string, Kinds>& fills, const std::array<std::string, Kinds>& hovers) const {
    std::vector<double> below(axis_.pixels(), 0);
    for (std::size_t k = 0; k < Kinds; ++k) {
      if (std::none_of(mean_[k].begin(), mean_[k].end(), [](double share) { return share > 0; })) continue;
      const auto outline = [&](std::size_t x) { return fixed(box_.level(below[x] + mean_[k][x]), 1); };
      const auto base = [&](std::size_t x) { return fixed(box_.level(below[x]), 1); };
      std::string d = "M" + fixed(axis_.left) + " " + base(0);
      for (std::size_t x = 0; x < below.size(); ++x) {
        if (x == 0 || outline(x) != outline(x - 1)) d += "H" + edge(x) + "V" + outline(x);
      }
      d += "H" + edge(below.size()) + "V" + base(below.size() - 1);
      for (std::size_t x = below.size(); x-- > 0;) {
        if (x == 0 || base(x) != base(x - 1)) d += "H" + edge(x) + "V" + base(x == 0 ? 0 : x - 1);
      }
      out.path(d + "Z", fills[k], hovers[k]);
      for (std::size_t x = 0; x < below.size(); ++x) below[x] += mean_[k][x];
    }
  }

 private:
  [[nodiscard]] std::string edge(std::size_t x) const { return fixed(axis_.left + std::min(static_cast<double>(x), axis_.width)); }

  time_axis axis_;
  row_box box_;
  std::array<std::vector<double>, Kinds> mean_;
};

/// Kind of a sign, shown by its shape: an event, the rung of an adaptation to it, or the end of a job (or deadline).
enum class sign { event, network, known_plan, replanned, done };

/// Returns the path of a sign around its place, in relative steps.
[[nodiscard]] constexpr std::string_view shape_of(sign s) {
  return s == sign::network      ? "m0-5.2l5 9h-10Z"
         : s == sign::known_plan ? "m-4.6 0a4.6 4.6 0 1 0 9.2 0a4.6 4.6 0 1 0-9.2 0Z"
         : s == sign::replanned  ? "m0-6l6 6l-6 6l-6-6Z"
         : s == sign::done       ? "m-1-6h9l-2.5 3l2.5 3h-7v6h-2Z"
                                 : "m-4.5-4h9l-4.5 8Z";
}

/// Attribute of elements that keep their shape when the page's script stretches a chart.
inline constexpr std::string_view unstretched =
    " style=\"transform:scaleX(calc(1/var(--zoom,1)));transform-box:fill-box;transform-origin:center\"";

/// Returns the smallest step of 1, 2 or 5 times a power of ten of which at most `most` fit into a span.
[[nodiscard]] double round_step(double span, double most);

/// A unit of time. The table is sorted from large to small.
struct unit_of_time {
  double seconds;
  std::string_view name;
};
inline constexpr std::array<unit_of_time, 6> units_of_time{{{3600, "h"}, {60, "min"}, {1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}}};

inline constexpr double largest_zoom = 100;

/// Labels of a time axis: seconds in a unit that fits the visible span, "20 ms"; or times as on a clock, "1 min 30 s".
enum class time_labels { seconds, clock };

/// Positions and labels of ticks on a time axis. A page passes the steps to its script, which redraws ticks on zooming.
struct tick_rule {
  tick_rule(const time_axis& axis, time_labels labels);

  time_axis axis;
  time_labels labels;
  std::vector<std::pair<double, double>> steps = {};  ///< ascending (until_s, step_s): longest visible span for each step

  [[nodiscard]] double step_s(double span_s) const;
  [[nodiscard]] std::string label(double at_s, double span_s) const;
  /// Draws a line through all rows at each tick of the whole axis, and labels below.
  void paint(svg_writer& out, double top, double bottom) const;
};

/// Draws the axis with ticks that the page's script finds again.
void paint_time_axis(svg_writer& out, const tick_rule& rule, double top, double bottom);

/// A value that is constant for some time.
struct level {
  double from_s, to_s, value;
};

/// Returns levels as a path for a line: steps between adjacent levels, gaps elsewhere.
[[nodiscard]] std::string step_line(const std::vector<level>& levels, const time_axis& axis, row_box box, double full);
/// Returns levels as a path for the area above the bottom of the row.
[[nodiscard]] std::string step_area(const std::vector<level>& levels, const time_axis& axis, row_box box, double full);

/// Returns a time in words: "42.5 s", "12 min 5 s", "3 h 20 min".
[[nodiscard]] std::string clock_text(double s);

/// Minimum, maximum and mean of a value over equal time bins: one outline for any number of changes.
class value_band {
 public:
  value_band(const time_axis& axis, std::size_t bins);

  void add(double start_s, double end_s, double value);
  /// Returns the seconds for which a bin has values.
  [[nodiscard]] double weight(std::size_t b) const { return weight_[b]; }
  /// Returns the means of the bins selected by `which`.
  template <class Which>
  [[nodiscard]] std::vector<level> means(Which&& which) const {
    std::vector<level> all;
    const auto edge = [&](std::size_t b) { return axis_.latency_s * static_cast<double>(b) / bins(); };
    for (std::size_t b = 0; b < most_.size(); ++b) {
      if (weight_[b] > 0 && which(b)) all.push_back({edge(b), edge(b + 1), sum_[b] / weight_[b]});
    }
    return all;
  }
  [[nodiscard]] std::size_t first_bin(double t) const;
  [[nodiscard]] std::size_t last_bin(double start_s, double end_s) const;

  /// Returns the outline from minimum to maximum. Adjacent bins are joined.
  [[nodiscard]] std::string range(row_box box, double full) const;
  /// Returns the outline from the bottom of the row to the maximum.
  [[nodiscard]] std::string area(row_box box, double full) const;

 private:
  static constexpr double infinite = std::numeric_limits<double>::infinity();
  [[nodiscard]] double bins() const { return static_cast<double>(most_.size()); }
  [[nodiscard]] bool has(std::size_t b) const { return most_[b] >= least_[b]; }

  /// Writer of paths in relative steps between rounded points: short, and errors do not accumulate.
  class pen {
   public:
    void move(double x, double y) { d_ += "M" + fixed(x_ = round(x)) + " " + fixed(y_ = round(y)); }
    void across(double x) { d_ += step("h", x_, round(x)); }
    void up_or_down(double y) { d_ += step("v", y_, round(y)); }
    void close() { d_ += "Z"; }
    [[nodiscard]] std::string text() && { return std::move(d_); }

   private:
    [[nodiscard]] static double round(double v) { return std::round(v * 10) / 10; }
    [[nodiscard]] static std::string step(const char* letter, double& from, double to);
    std::string d_;
    double x_ = 0, y_ = 0;
  };

  [[nodiscard]] std::string outline(const std::vector<double>& top, const std::vector<double>& bottom) const;

  time_axis axis_;
  std::vector<double> least_, most_, sum_, weight_;
};

}  // namespace hetplan::draw::detail

#ifndef HETPLAN_SEPARATE
#include <hetplan/draw/time_axis.ipp>
#endif
