// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/batch_queue.hpp>

#include <algorithm>

namespace HETPLAN_NAMESPACE::serve {

HETPLAN_INLINE void batch_queue::play(double now_s, const request_stream& all, ended_requests& out) {
  for (;;) {
    const bool takes = !line_.empty() && is_over(take_s_, now_s);
    if (size_ > 0 && is_over(end_s_, takes ? take_s_ : now_s)) {
      end_first(out);
    } else if (takes) {
      take_batch(all, out);
    } else {
      return;
    }
  }
}

HETPLAN_INLINE void batch_queue::take_batch(const request_stream& all, ended_requests& out) {
  std::size_t size = 0;
  double tokens_in = 0;
  double tokens_out = 1;
  while (!line_.empty() && size < static_cast<std::size_t>(times_->batch())) {
    const auto number = line_[0];
    line_.pop();
    const auto& r = all[number];
    if (is_over(all.arrival_s(number) + times_->latency_s(), take_s_)) {
      out.emplace_back(number, ended_request::how::timed_out, take_s_, 0);
      continue;
    }
    computing_.push(number);
    ++size;
    if (times_->generates()) {
      tokens_in += static_cast<double>(r.tokens_in);
      tokens_out = std::max(tokens_out, static_cast<double>(r.length));
    }
  }
  if (size == 0) return;
  const int requests = static_cast<int>(size);
  double duration_s = times_->pass_s(requests, tokens_in);
  if (tokens_out > 1) duration_s += (tokens_out - 1) * times_->step_s(requests);
  const double end_s = take_s_ + duration_s;
  if (size_ == 0) {
    end_s_ = end_s;
    size_ = size;
  } else {
    if (!behind_) behind_ = std::make_unique<std::deque<batch_under_way>>();
    const double before_s = behind_->empty() ? end_s_ : behind_->back().end_s;
    behind_->push_back({std::max(end_s, before_s), size});  // nobody overtakes in a pipeline
  }
  take_s_ += times_->stages() == 1 ? duration_s : duration_s / static_cast<double>(times_->stages());
}

HETPLAN_INLINE void batch_queue::end_first(ended_requests& out) {
  for (std::size_t k = 0; k < size_; ++k) out.emplace_back(computing_[k], ended_request::how::done, end_s_, 1);
  computing_.pop(size_);
  done_ += size_;
  size_ = 0;
  if (!behind_ || behind_->empty()) return;
  end_s_ = behind_->front().end_s;
  size_ = behind_->front().size;
  behind_->pop_front();
}

HETPLAN_INLINE std::vector<request_number> batch_queue::send_back() { return line_.take_all(); }

HETPLAN_INLINE void batch_queue::fail(double now_s, ended_requests& out) {
  for (const auto number : computing_.take_all()) out.emplace_back(number, ended_request::how::failed, now_s, 0);
  size_ = 0;
  behind_.reset();
}

}  // namespace HETPLAN_NAMESPACE::serve
