// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/mix/pareto_set.hpp>

#include <array>
#include <map>

#include <range/v3/view/enumerate.hpp>

namespace hetplan::mix {

namespace detail {

/// The area dominated by the points added so far, up to the reference point (x, y).
class dominated_area {
 public:
  dominated_area(double x, double y) : x_(x), y_(y) {}
  [[nodiscard]] double area() const { return area_; }

  /// Adds a point better than the reference. O(log n) amortized: each step of the staircase is inserted and erased once.
  void add(double x, double y) {
    auto right = steps_.upper_bound(x);
    double above = y_;  // height of the staircase at x
    if (right != steps_.begin()) above = std::prev(right)->second;
    if (above <= y) return;
    auto at = x;
    while (right != steps_.end() && right->second >= y) {
      area_ += (right->first - at) * (above - y);
      at = right->first;
      above = right->second;
      right = steps_.erase(right);
    }
    area_ += ((right == steps_.end() ? x_ : right->first) - at) * (above - y);
    steps_[x] = y;
  }

 private:
  double x_, y_, area_ = 0;
  std::map<double, double> steps_ = {};  // x ascending, y descending
};

}  // namespace detail

HETPLAN_INLINE double hypervolume(std::span<const std::vector<double>> points, std::span<const double> reference) {
  const std::size_t n = reference.size();
  if (n != 2 && n != 3) throw invalid_input("hypervolume: " + std::to_string(n) + " criteria; expected 2 or 3");
  for (const double r : reference) {
    if (!std::isfinite(r)) throw invalid_input("hypervolume: the reference has a coordinate " + to_text(r) + "; expected finite ones");
  }
  std::vector<std::array<double, 3>> inside;  // sorted for the sweep: the last coordinate first
  for (const auto& [i, p] : ranges::views::enumerate(points)) {
    if (p.size() != n) {
      throw invalid_input("hypervolume: point " + std::to_string(i) + " has " + std::to_string(p.size()) + " coordinates; expected " +
                          std::to_string(n));
    }
    bool better = true;
    for (std::size_t k = 0; k < n; ++k) {
      if (std::isnan(p[k]) || (std::isinf(p[k]) && p[k] < 0)) {
        throw invalid_input("hypervolume: point " + std::to_string(i) + " has a coordinate " + to_text(p[k]) +
                            "; expected a number above -inf");
      }
      better = better && p[k] < reference[k];
    }
    if (better) inside.push_back({n == 3 ? p[2] : 0, p[0], p[1]});
  }
  std::ranges::sort(inside);
  detail::dominated_area slice(reference[0], reference[1]);
  double volume = 0;
  for (std::size_t i = 0; i < inside.size(); ++i) {
    slice.add(inside[i][1], inside[i][2]);
    const double next = i + 1 < inside.size() ? inside[i + 1][0] : n == 3 ? reference[2] : 0;
    volume += slice.area() * (next - inside[i][0]);
  }
  return n == 3 ? volume : slice.area();
}

}  // namespace hetplan::mix
