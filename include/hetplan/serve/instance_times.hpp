// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What an instance can do, asked of the service_time model once.

#include <vector>

#include <hetplan/serve/any_service_time.hpp>
#include <hetplan/serve/deployment.hpp>
#include <hetplan/serve/service.hpp>

namespace hetplan::serve {

/// Seconds and rates of an instance, without where it stands.
///
/// Throws invalid_model where the model's answer is not finite and above 0: it names service, variant and batch.
/// Source  semantics, section 11 (service times, streams, expected ends).
class instance_times {
 public:
  instance_times(const any_service_time& model, const std::vector<service>& services, const instance& i);

  /// Seconds of a pass over a batch with so many tokens together.
  [[nodiscard]] double pass_s(int requests, double tokens_in) const {
    return generates_ ? ask_pass(requests, tokens_in) : pass_s_[static_cast<std::size_t>(requests)];
  }
  [[nodiscard]] double step_s(int requests) const { return step_s_[static_cast<std::size_t>(requests)]; }

  /// T(b): a fixed batch of typical requests.
  [[nodiscard]] double typical_s(int requests) const { return typical_s_[static_cast<std::size_t>(requests)]; }
  /// W(b): what one typical request takes in a running set of so many in which whoever leaves is followed by another one, whose pass all
  /// others wait for.
  [[nodiscard]] double typical_in_set_s(int requests) const {
    return static_cast<double>(requests) * pass_one_s_ + (typical_out_ - 1) * step_s(requests);
  }
  /// R(n): frames a second of n streams together.
  [[nodiscard]] double stream_capacity(int streams) const {
    return stream_capacity_[static_cast<std::size_t>(streams < batch_ ? streams : batch_)];
  }
  /// What it can do at most, a second: requests, or frames.
  [[nodiscard]] double capacity() const { return capacity_; }

  [[nodiscard]] double latency_s() const { return latency_s_; }  ///< the SLO of its service
  [[nodiscard]] int batch() const { return batch_; }
  [[nodiscard]] int stages() const { return stages_; }  ///< batches under way at a time
  [[nodiscard]] bool generates() const { return generates_; }

 private:
  [[nodiscard]] double ask_pass(int requests, double tokens_in) const;
  [[nodiscard]] double ask_step(int requests) const;
  [[nodiscard]] service_run run() const;
  [[nodiscard]] double checked(seconds answer, const char* what, int requests) const;

  any_service_time model_;
  const std::vector<service>* services_;
  service_id what_;
  int variant_;
  int batch_;
  int stages_;
  bool generates_;
  double latency_s_;
  double typical_out_ = 1;
  double pass_one_s_ = 0;
  double capacity_ = 0;
  std::vector<double> pass_s_, step_s_, typical_s_, stream_capacity_;  ///< by requests; [0] is unused
};

}  // namespace hetplan::serve

#ifndef HETPLAN_COMPILED
#include <hetplan/serve/instance_times.ipp>
#endif
