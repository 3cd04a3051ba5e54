// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/running_set.hpp>

#include <algorithm>
#include <cmath>

namespace HETPLAN_NAMESPACE::serve {

namespace detail {
/// First the smaller step, then the smaller number, at the front of a heap.
struct leaves_later {
  template <class M>
  bool operator()(const M& a, const M& b) const {
    return a.leaves != b.leaves ? a.leaves > b.leaves : a.number > b.number;
  }
};
}  // namespace detail

HETPLAN_INLINE double running_set::boundary_s(std::int64_t steps) const {
  if (steps == 0) return boundary_s_;
  return boundary_s_ + static_cast<double>(steps) * times_->step_s(static_cast<int>(set_.size()));
}

HETPLAN_INLINE std::int64_t running_set::next_change() const {
  if (set_.empty()) return line_.empty() ? never : 0;
  const auto leaves = set_.front().leaves - steps_done_;
  return room() && looks_ < leaves ? looks_ : leaves;
}

HETPLAN_INLINE std::int64_t running_set::next_boundary(double now_s) const {
  if (set_.empty() || !is_over(boundary_s_, now_s)) return 0;
  const double step_s = times_->step_s(static_cast<int>(set_.size()));
  auto k = static_cast<std::int64_t>(std::floor((now_s - boundary_s_) / step_s));
  while (!is_over(boundary_s(k), now_s)) --k;  // the quotient was rounded
  while (is_over(boundary_s(k), now_s)) ++k;
  return k;
}

HETPLAN_INLINE void running_set::advance(double now_s, const request_stream& all, ended_requests& out) {
  for (;;) {
    const auto k = next_change();
    if (k == never || !is_over(boundary_s(k), now_s)) return;
    change(k, all, out);
  }
}

HETPLAN_INLINE void running_set::change(std::int64_t steps, const request_stream& all, ended_requests& out) {
  boundary_s_ = boundary_s(steps);
  steps_done_ += steps;
  looks_ = never;
  while (!set_.empty() && set_.front().leaves <= steps_done_) {
    out.emplace_back(set_.front().number, ended_request::how::done, boundary_s_, 1);
    std::ranges::pop_heap(set_, detail::leaves_later());
    set_.pop_back();
    ++done_;
  }
  let_in(all, out);
}

HETPLAN_INLINE void running_set::let_in(const request_stream& all, ended_requests& out) {
  int joined = 0;
  double tokens_in = 0;
  while (room() && !line_.empty()) {
    const auto number = line_[0];
    line_.pop();
    const auto& r = all[number];
    if (is_over(all.arrival_s(number) + times_->latency_s(), boundary_s_)) {
      out.emplace_back(number, ended_request::how::timed_out, boundary_s_, 0);
      continue;
    }
    ++joined;
    tokens_in += static_cast<double>(r.tokens_in);
    set_.push_back({steps_done_ + static_cast<std::int64_t>(r.length) - 1, number});
    std::ranges::push_heap(set_, detail::leaves_later());
  }
  if (joined > 0) {
    boundary_s_ += times_->pass_s(joined, tokens_in);
    looks_ = 0;
  }
}

HETPLAN_INLINE void running_set::join(request_number r, double now_s, const request_stream& all, ended_requests& out) {
  line_.push(r);
  if (set_.empty()) {
    if (!is_over(boundary_s_, now_s)) return;  // it loads
    boundary_s_ = now_s;
    change(0, all, out);
  } else if (line_.size() == 1) {
    looks_ = next_boundary(now_s);
  }
}

HETPLAN_INLINE double running_set::expected_start_s(double now_s, double there_s, std::size_t coming) const {
  const double next_s = std::max(there_s, set_.empty() ? boundary_s_ : boundary_s(next_boundary(now_s)));
  const auto free = static_cast<std::int64_t>(times_->batch()) - static_cast<std::int64_t>(set_.size());
  const auto late = static_cast<std::int64_t>(line_.size() + coming) + 1 - free;
  if (late <= 0) return next_s;
  const auto batch = times_->batch();
  return next_s + static_cast<double>(late) * times_->typical_in_set_s(batch) / static_cast<double>(batch);
}

HETPLAN_INLINE double running_set::expected_end_s(double now_s, double there_s, std::size_t coming) const {
  const auto after = std::min(static_cast<std::size_t>(times_->batch()), set_.size() + line_.size() + coming + 1);
  return expected_start_s(now_s, there_s, coming) + times_->typical_in_set_s(static_cast<int>(after));
}

HETPLAN_INLINE void running_set::fail(double now_s, ended_requests& out) {
  for (const auto& m : set_) out.emplace_back(m.number, ended_request::how::failed, now_s, 0);
  set_.clear();
}

}  // namespace HETPLAN_NAMESPACE::serve
