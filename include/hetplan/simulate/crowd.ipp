// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/simulate/crowd.hpp>

namespace HETPLAN_NAMESPACE::detail {

HETPLAN_INLINE void crowd::begin(double now) {
  marks_.clear();
  moved_ = rate_ = 0;
  since_ = now;
}

HETPLAN_INLINE void crowd::add(double now, flow_id f, double volume) {
  if (mark_of_.size() <= f) mark_of_.resize(f + 1);
  mark_of_[f] = moved_by(now) + volume;
  marks_.emplace_back(mark_of_[f], f);
  std::push_heap(marks_.begin(), marks_.end(), later);
}

HETPLAN_INLINE void crowd::remove(flow_id f) {
  std::erase_if(marks_, [&](const mark& m) { return m.second == f; });
  std::make_heap(marks_.begin(), marks_.end(), later);
}

HETPLAN_INLINE void crowd::set_rate(double now, double rate) {
  moved_ = moved_by(now);
  since_ = now;
  rate_ = rate;
}

HETPLAN_INLINE void crowd::take_until(double time, std::vector<flow_id>& ended) {
  while (!marks_.empty() && end_of(marks_.front().first) <= time) {
    ended.push_back(marks_.front().second);
    std::pop_heap(marks_.begin(), marks_.end(), later);
    marks_.pop_back();
  }
}

}  // namespace HETPLAN_NAMESPACE::detail
