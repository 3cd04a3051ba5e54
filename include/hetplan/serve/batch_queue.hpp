// SPDX-License-Identifier: BSL-1.0
#pragma once
/// An instance that works in fixed batches.

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include <hetplan/core/at_most.hpp>
#include <hetplan/serve/ended_request.hpp>
#include <hetplan/serve/instance_times.hpp>
#include <hetplan/serve/request_stream.hpp>
#include <hetplan/serve/waiting_line.hpp>

namespace HETPLAN_NAMESPACE::serve {

/// First come, first served, up to B at a time, at once when the first stage is free.
///
/// It stands still between the calls that look at it: `advance` plays what has happened since. Nothing else touches it meanwhile, so
/// the answer is that of an event at every end, at the cost of none.
/// Complexity  O(1) amortised a request.
/// Source  semantics, section 11 (fixed batches).
class batch_queue {
 public:
  /// Begins nothing before ready_s. What it refers to must outlive it.
  batch_queue(const instance_times& times, double ready_s) : times_(&times), take_s_(ready_s) {}

  /// Plays everything up to and including now; who has left is appended.
  void advance(double now_s, const request_stream& all, ended_requests& out) {
    if ((size_ > 0 && is_over(end_s_, now_s)) || (!line_.empty() && is_over(take_s_, now_s))) play(now_s, all, out);
  }

  /// Takes in a request. Requires that it has been advanced to now.
  void join(request_number r, double now_s, const request_stream& all, ended_requests& out) {
    line_.push(r);
    if (!is_over(take_s_, now_s)) return;
    take_s_ = now_s;
    take_batch(all, out);
  }

  [[nodiscard]] double expected_start_s(double now_s, std::size_t coming) const {
    const auto q = waiting() + coming;
    if (q == 0) return is_over(take_s_, now_s) ? now_s : take_s_;
    const auto ahead = static_cast<double>(q / static_cast<std::size_t>(times_->batch()));
    return (take_s_ > now_s ? take_s_ : now_s) + ahead * times_->typical_s(times_->batch()) / static_cast<double>(times_->stages());
  }
  [[nodiscard]] double expected_end_s(double now_s, std::size_t coming) const {
    if (waiting() + coming == 0 && is_over(take_s_, now_s)) return now_s + times_->typical_s(1);
    return expected_start_s(now_s, coming) + times_->typical_s(times_->batch());
  }

  [[nodiscard]] const instance_times& times() const { return *times_; }
  [[nodiscard]] std::size_t waiting() const { return line_.size(); }
  [[nodiscard]] bool busy() const { return size_ > 0; }
  /// Requests that it has computed: S.
  [[nodiscard]] double done() const { return static_cast<double>(done_); }

  void fetch() const {
    computing_.fetch();
    line_.fetch();
  }

  /// Calls see(number) for those that end or begin next, if the first of them does until now.
  template <class See>
  void show_due(double now_s, const See& see) const {
    if (size_ > 0 && is_over(end_s_, now_s)) {
      for (std::size_t k = 0; k < size_; ++k) see(computing_[k]);
    }
    if (!is_over(take_s_, now_s)) return;
    const auto batch = static_cast<std::size_t>(times_->batch());
    for (std::size_t k = 0; k < line_.size() && k < batch; ++k) see(line_[k]);
  }

  /// Takes out who waits, in order. Requires that it has been advanced to now.
  [[nodiscard]] std::vector<request_number> send_back();
  /// What is under way has failed.
  void fail(double now_s, ended_requests& out);

 private:
  struct batch_under_way {
    double end_s;
    std::size_t size;
  };

  /// Has a time come, but for rounding?
  [[nodiscard]] bool is_over(double at_s, double now_s) const { return at_most(at_s, now_s, times_->latency_s()); }
  void play(double now_s, const request_stream& all, ended_requests& out);
  void take_batch(const request_stream& all, ended_requests& out);
  void end_first(ended_requests& out);

  const instance_times* times_;
  double take_s_;         ///< when the next batch can be taken
  double end_s_ = 0;      ///< of the first batch under way, where there is one
  std::size_t size_ = 0;  ///< of the same
  std::uint64_t done_ = 0;
  waiting_line computing_;  ///< requests of all batches under way, the first batch in front
  waiting_line line_;
  std::unique_ptr<std::deque<batch_under_way>> behind_;  ///< more batches in a pipeline, oldest first; none where there is no pipeline
};

}  // namespace HETPLAN_NAMESPACE::serve

#ifndef HETPLAN_COMPILED
#include <hetplan/serve/batch_queue.ipp>
#endif
