// SPDX-License-Identifier: BSL-1.0
#pragma once
/// How charts over minutes and hours put time on paper, and values that change more often than there are pixels.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/io/gantt_scale.hpp>

namespace hetplan::io::detail {

/// Round times as on a clock: hours from three hours on, minutes from three minutes on, below that as time_ticks.
struct clock_ticks {
  double unit_s = 1, step = 1;
  std::string unit;

  clock_ticks(double span_s, double most) {
    if (span_s < 180) {
      const time_ticks fine(span_s, most);
      unit_s = fine.unit_s, step = fine.step, unit = fine.unit;
      return;
    }
    constexpr std::array<double, 8> hours{0.25, 0.5, 1, 2, 3, 6, 12, 24}, minutes{0.25, 0.5, 1, 2, 5, 10, 20, 30};
    const bool long_run = span_s >= 10800;
    const auto& steps = long_run ? hours : minutes;
    unit_s = long_run ? 3600 : 60;
    unit = long_run ? "h" : "min";
    std::size_t i = 0;
    while (i + 1 < steps.size() && span_s / unit_s / steps[i] > most) ++i;
    step = steps[i];
    while (span_s / unit_s / step > most) step *= 2;
  }
};

/// "42.5 s", "12 min 5 s", "3 h 20 min".
[[nodiscard]] inline std::string clock_text(double s) {
  if (!(s >= 120)) return s >= 1 || s <= 0 ? fixed(s, s < 10 ? 2 : 1) + " s" : engineering(s, "s");
  const auto parts = [](double whole, double each, const char* large, const char* small) {
    const double n = std::floor(whole / each), rest = whole - n * each;
    return fixed(n, 0) + " " + large + (rest > 0 ? " " + fixed(rest, 0) + " " + small : "");
  };
  return s < 7200 ? parts(std::round(s), 60, "min", "s") : parts(std::round(s / 60), 60, "h", "min");
}

/// Digits in groups of three: 86 400. The space is a narrow one that does not break.
[[nodiscard]] inline std::string grouped(long long n) {
  std::string text = std::to_string(n);
  for (std::size_t i = text.size(); i > 3 && text[i - 4] != '-';) text.insert(i -= 3, "\xE2\x80\xAF");
  return text;
}

/// The least, the most and the mean of a value in each of many equal parts of the time: one outline however often it changed.
class value_band {
 public:
  value_band(const time_axis& axis, std::size_t bins) : axis_(axis), least_(bins, infinite), most_(bins, -infinite), sum_(bins, 0), weight_(bins, 0) {}

  void add(double start_s, double end_s, double value) {
    for (std::size_t b = first_bin(start_s); b <= last_bin(start_s, end_s); ++b) {
      least_[b] = std::min(least_[b], value);
      most_[b] = std::max(most_[b], value);
      const double part_s = axis_.latency_s / bins(), from = part_s * static_cast<double>(b);
      const double length = std::max(0.0, std::min(end_s, from + part_s) - std::max(start_s, from));
      sum_[b] += value * length;
      weight_[b] += length;
    }
  }
  /// How long something was added to a part [s].
  [[nodiscard]] double weight(std::size_t b) const { return weight_[b]; }
  /// The means of those parts that `which` picks, as a line without height.
  template <class Which>
  [[nodiscard]] value_band means(Which&& which) const {
    value_band m(axis_, most_.size());
    for (std::size_t b = 0; b < most_.size(); ++b) {
      if (weight_[b] > 0 && which(b)) m.least_[b] = m.most_[b] = sum_[b] / weight_[b];
    }
    return m;
  }
  [[nodiscard]] std::size_t first_bin(double t) const {
    return static_cast<std::size_t>(std::clamp(std::floor(t / axis_.latency_s * bins()), 0.0, bins() - 1));
  }
  [[nodiscard]] std::size_t last_bin(double start_s, double end_s) const {
    return std::max(first_bin(start_s), static_cast<std::size_t>(std::clamp(std::ceil(end_s / axis_.latency_s * bins()) - 1, 0.0, bins() - 1)));
  }

  /// From least to most, but never thinner than `thickness` pixels: a line where the value is steady. Parts that touch are joined.
  [[nodiscard]] std::string line(row_box box, double full, double thickness) const {
    std::vector<double> top(most_.size()), bottom(most_.size());
    for (std::size_t b = 0; b < most_.size(); ++b) {
      if (!has(b)) continue;
      double least = least_[b], most = most_[b];
      if (b > 0 && has(b - 1)) least = std::min(least, most_[b - 1]), most = std::max(most, least_[b - 1]);
      const double y = (box.level(least / full) + box.level(most / full)) / 2;
      const double half = std::max(thickness, box.level(least / full) - box.level(most / full)) / 2;
      const double middle = std::clamp(y, box.top + half, std::max(box.top + half, box.top + box.height - half));
      top[b] = middle - half;
      bottom[b] = middle + half;
    }
    return outline(top, bottom);
  }
  /// From the bottom of the row to the most.
  [[nodiscard]] std::string area(row_box box, double full) const {
    std::vector<double> top(most_.size()), bottom(most_.size(), box.top + box.height);
    for (std::size_t b = 0; b < most_.size(); ++b) top[b] = box.level(std::max(0.0, most_[b]) / full);
    return outline(top, bottom);
  }

 private:
  static constexpr double infinite = std::numeric_limits<double>::infinity();
  [[nodiscard]] double bins() const { return static_cast<double>(most_.size()); }
  [[nodiscard]] bool has(std::size_t b) const { return most_[b] >= least_[b]; }

  /// Relative steps between rounded places: short, and the errors do not add up.
  class pen {
   public:
    void move(double x, double y) { d_ += "M" + fixed(x_ = round(x)) + " " + fixed(y_ = round(y)); }
    void across(double x) { d_ += step("h", x_, round(x)); }
    void up_or_down(double y) { d_ += step("v", y_, round(y)); }
    void close() { d_ += "Z"; }
    [[nodiscard]] std::string text() && { return std::move(d_); }

   private:
    [[nodiscard]] static double round(double v) { return std::round(v * 10) / 10; }
    [[nodiscard]] static std::string step(const char* letter, double& from, double to) {
      if (from == to) return {};
      const std::string d = letter + fixed(to - from, 1);
      from = to;
      return d;
    }
    std::string d_;
    double x_ = 0, y_ = 0;
  };

  [[nodiscard]] std::string outline(const std::vector<double>& top, const std::vector<double>& bottom) const {
    const auto edge = [&](std::size_t b) { return axis_.left + axis_.width * static_cast<double>(b) / bins(); };
    pen p;
    for (std::size_t b = 0; b < most_.size();) {
      if (!has(b)) {
        ++b;
        continue;
      }
      std::size_t end = b;
      p.move(edge(b), bottom[b]);
      for (; end < most_.size() && has(end); ++end) {
        if (end > b && fixed(top[end], 1) == fixed(top[end - 1], 1)) continue;
        p.across(edge(end));
        p.up_or_down(top[end]);
      }
      p.across(edge(end));
      for (std::size_t k = end; k-- > b;) {
        if (k + 1 < end && fixed(bottom[k], 1) == fixed(bottom[k + 1], 1)) continue;
        p.across(edge(k + 1));
        p.up_or_down(bottom[k]);
      }
      p.close();
      b = end;
    }
    return std::move(p).text();
  }

  time_axis axis_;
  std::vector<double> least_, most_, sum_, weight_;
};

}  // namespace hetplan::io::detail
