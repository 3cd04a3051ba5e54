// SPDX-License-Identifier: BSL-1.0
#pragma once
/// An instance that serves streams: each at a rate that is its own until it ends.

#include <vector>

#include <hetplan/core/at_most.hpp>
#include <hetplan/serve/ended_request.hpp>
#include <hetplan/serve/instance_times.hpp>

namespace HETPLAN_NAMESPACE::serve {

/// Complexity  O(log n) a stream, n those that it has at a time.
/// Source  EPARA, section 3.3 (frames that count); semantics, section 11 (streams).
class stream_set {
 public:
  stream_set(const instance_times& times, double wanted_rate, double ready_s) : times_(&times), wanted_(wanted_rate), ready_s_(ready_s) {}

  void advance(double now_s, ended_requests& out);
  /// Begins a stream of so many frames at what is free, at most what it wants. Requires that it has been advanced to now, and free_rate >
  /// 0.
  void begin(request_number r, double frames, double now_s);

  /// R(n + 1) less what the n streams have. Requires that it has been advanced to now.
  [[nodiscard]] double free_rate(double now_s) const;
  /// Is that enough for a stream, to one part in 10^9?
  [[nodiscard]] bool has_whole_rate(double now_s) const { return at_most(wanted_, free_rate(now_s)); }
  [[nodiscard]] const instance_times& times() const { return *times_; }
  [[nodiscard]] bool busy() const { return !under_way_.empty(); }
  /// Frames a second of all streams together.
  [[nodiscard]] double rate() const { return held_; }

  void fail(double now_s, ended_requests& out);

 private:
  struct stream {
    double end_s;
    request_number number;
    double rate;
    double begin_s;
  };

  /// Has a time come, but for rounding?
  [[nodiscard]] bool is_over(double at_s, double now_s) const { return at_most(at_s, now_s, times_->latency_s()); }
  const instance_times* times_;
  double wanted_;
  double ready_s_;
  double held_ = 0;                ///< rates of all streams together
  std::vector<stream> under_way_;  ///< a heap: who ends first in front
};

}  // namespace HETPLAN_NAMESPACE::serve

#ifndef HETPLAN_COMPILED
#include <hetplan/serve/stream_set.ipp>
#endif
