// SPDX-License-Identifier: BSL-1.0
#pragma once
/// How charts over time put seconds and shares on paper.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <hetplan/draw/svg.hpp>

namespace hetplan::draw::detail {

/// Time to pixels.
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

/// What is too fine for bars: the mean share of each kind in every pixel, stacked.
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

}  // namespace hetplan::draw::detail
