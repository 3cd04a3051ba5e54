// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/stream_set.hpp>

#include <algorithm>

namespace HETPLAN_NAMESPACE::serve {

namespace detail {
struct ends_later {
  template <class S>
  bool operator()(const S& a, const S& b) const {
    return a.end_s != b.end_s ? a.end_s > b.end_s : a.number > b.number;
  }
};
}  // namespace detail

HETPLAN_INLINE void stream_set::advance(double now_s, ended_requests& out) {
  while (!under_way_.empty() && is_over(under_way_.front().end_s, now_s)) {
    const auto s = under_way_.front();
    std::ranges::pop_heap(under_way_, detail::ends_later());
    under_way_.pop_back();
    held_ = under_way_.empty() ? 0 : held_ - s.rate;
    out.emplace_back(s.number, ended_request::how::done, s.end_s, s.rate / wanted_);
  }
}

HETPLAN_INLINE double stream_set::free_rate(double now_s) const {
  if (!is_over(ready_s_, now_s)) return 0;
  const double left = times_->stream_capacity(static_cast<int>(under_way_.size()) + 1) - held_;
  return left > relative_tolerance * wanted_ ? left : 0;
}

HETPLAN_INLINE void stream_set::begin(request_number r, double frames, double now_s) {
  const double rate = has_whole_rate(now_s) ? wanted_ : free_rate(now_s);
  held_ += rate;
  under_way_.push_back({now_s + frames / wanted_, r, rate, now_s});
  std::ranges::push_heap(under_way_, detail::ends_later());
}

HETPLAN_INLINE void stream_set::fail(double now_s, ended_requests& out) {
  for (const auto& s : under_way_) {
    const double part = (now_s - s.begin_s) / (s.end_s - s.begin_s);
    out.emplace_back(s.number, ended_request::how::failed, now_s, part * s.rate / wanted_);
  }
  under_way_.clear();
  held_ = 0;
}

}  // namespace HETPLAN_NAMESPACE::serve
