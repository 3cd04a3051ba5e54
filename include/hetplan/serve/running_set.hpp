// SPDX-License-Identifier: BSL-1.0
#pragma once
/// An instance that works in continuous batches: requests join and leave between tokens.

#include <cstdint>
#include <limits>
#include <vector>

#include <hetplan/core/at_most.hpp>
#include <hetplan/serve/ended_request.hpp>
#include <hetplan/serve/instance_times.hpp>
#include <hetplan/serve/request_stream.hpp>
#include <hetplan/serve/waiting_line.hpp>

namespace HETPLAN_NAMESPACE::serve {

/// Between two changes of the set all steps are alike, so it goes from change to change, not from token to token.
/// `advance` plays what has happened since the last look, as batch_queue does.
/// Complexity  O(log B) a request, whatever its number of tokens.
/// Source  semantics, section 11 (continuous batches).
class running_set {
 public:
  running_set(const instance_times& times, double ready_s) : times_(&times), boundary_s_(ready_s) {}

  void advance(double now_s, const request_stream& all, ended_requests& out);
  /// Takes in a request. Requires that it has been advanced to now.
  void join(request_number r, double now_s, const request_stream& all, ended_requests& out);

  /// Of a request that is there at there_s, now or later.
  [[nodiscard]] double expected_start_s(double now_s, double there_s, std::size_t coming) const;
  [[nodiscard]] double expected_end_s(double now_s, double there_s, std::size_t coming) const;
  [[nodiscard]] const instance_times& times() const { return *times_; }
  [[nodiscard]] std::size_t waiting() const { return line_.size(); }
  [[nodiscard]] bool busy() const { return !set_.empty(); }
  [[nodiscard]] double done() const { return static_cast<double>(done_); }

  [[nodiscard]] std::vector<request_number> send_back() {
    looks_ = never;
    return line_.take_all();
  }
  void fail(double now_s, ended_requests& out);

 private:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  struct member {
    std::int64_t leaves;  ///< number of the step after which it has all of its tokens
    request_number number;
  };

  /// Has a time come, but for rounding?
  [[nodiscard]] bool is_over(double at_s, double now_s) const { return at_most(at_s, now_s, times_->latency_s()); }
  [[nodiscard]] bool room() const { return set_.size() < static_cast<std::size_t>(times_->batch()); }
  [[nodiscard]] double boundary_s(std::int64_t steps) const;
  /// Steps from the last change until the set changes next; never where nobody runs.
  [[nodiscard]] std::int64_t next_change() const;
  [[nodiscard]] std::int64_t next_boundary(double now_s) const;
  void change(std::int64_t steps, const request_stream& all, ended_requests& out);
  void let_in(const request_stream& all, ended_requests& out);

  const instance_times* times_;
  double boundary_s_;            ///< tau: the last change, or the end of the pass that follows it
  std::int64_t steps_done_ = 0;  ///< before tau, since the beginning
  std::int64_t looks_ = never;   ///< steps after tau at which who waits is looked at, where there is room
  std::vector<member> set_;      ///< a heap: who leaves first in front
  waiting_line line_;
  std::uint64_t done_ = 0;
};

}  // namespace HETPLAN_NAMESPACE::serve

#ifndef HETPLAN_COMPILED
#include <hetplan/serve/running_set.ipp>
#endif
