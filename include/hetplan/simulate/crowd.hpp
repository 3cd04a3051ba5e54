// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Very many flows of one rate, which wait for their ends in one heap.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <hetplan/core/linkage.hpp>

namespace HETPLAN_NAMESPACE::detail {

/// A group of equal flows: they always have one rate. What each has moved since the group was made is the same for all, so a
/// flow ends when that reaches a mark of its own, and a change of the rate touches none of them.
///
/// Complexity  O(log) per flow, O(1) per change of rate.
class crowd {
 public:
  using flow_id = std::uint32_t;

  [[nodiscard]] double rate() const { return rate_; }
  void begin(double now);
  void add(double now, flow_id f, double volume);
  void remove(flow_id f);
  void set_rate(double now, double rate);
  [[nodiscard]] double left(flow_id f, double now) const { return std::max(0.0, mark_of_[f] - moved_by(now)); }
  [[nodiscard]] double next_end() const { return marks_.empty() ? never : end_of(marks_.front().first); }
  /// Takes the flows that end by then.
  void take_until(double time, std::vector<flow_id>& ended);

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();
  using mark = std::pair<double, flow_id>;

  [[nodiscard]] double moved_by(double now) const { return moved_ + rate_ * (now - since_); }
  [[nodiscard]] double end_of(double at) const { return rate_ > 0 ? since_ + std::max(0.0, at - moved_) / rate_ : never; }
  static bool later(const mark& a, const mark& b) { return a > b; }

  std::vector<mark> marks_;      ///< a heap, the next end on top
  std::vector<double> mark_of_;  ///< by flow
  double moved_ = 0, since_ = 0, rate_ = 0;
};

}  // namespace HETPLAN_NAMESPACE::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/simulate/crowd.ipp>
#endif
