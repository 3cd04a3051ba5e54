// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Very many flows of one rate, which wait for their ends in one heap.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace hetplan::detail {

/// A group of equal flows: they always have one rate. What each has moved since the group was made is the same for all, so a
/// flow ends when that reaches a mark of its own, and a change of the rate touches none of them.
///
/// Complexity  O(log) per flow, O(1) per change of rate.
class crowd {
 public:
  using flow_id = std::uint32_t;

  [[nodiscard]] double rate() const { return rate_; }
  void begin(double now) {
    marks_.clear();
    moved_ = rate_ = 0;
    since_ = now;
  }
  void add(double now, flow_id f, double volume) {
    if (mark_of_.size() <= f) mark_of_.resize(f + 1);
    mark_of_[f] = moved_by(now) + volume;
    marks_.emplace_back(mark_of_[f], f);
    std::push_heap(marks_.begin(), marks_.end(), later);
  }
  void remove(flow_id f) {
    std::erase_if(marks_, [&](const mark& m) { return m.second == f; });
    std::make_heap(marks_.begin(), marks_.end(), later);
  }
  void set_rate(double now, double rate) {
    moved_ = moved_by(now);
    since_ = now;
    rate_ = rate;
  }
  [[nodiscard]] double left(flow_id f, double now) const { return std::max(0.0, mark_of_[f] - moved_by(now)); }
  [[nodiscard]] double next_end() const { return marks_.empty() ? never : end_of(marks_.front().first); }
  /// Takes the flows that end by then.
  void take_until(double time, std::vector<flow_id>& ended) {
    while (!marks_.empty() && end_of(marks_.front().first) <= time) {
      ended.push_back(marks_.front().second);
      std::pop_heap(marks_.begin(), marks_.end(), later);
      marks_.pop_back();
    }
  }

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

}  // namespace hetplan::detail
