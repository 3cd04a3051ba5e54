// SPDX-License-Identifier: BSL-1.0
#pragma once
/// One at a time: what std::mutex does, for a header that many include (<mutex> brings clocks and streams).

#include <atomic>

#include <hetplan/core/linkage.hpp>

namespace HETPLAN_NAMESPACE {

/// Threads go through one by one.
class turnstile {
 public:
  /// Inside from its construction to its destruction; must not enter twice.
  class pass {
   public:
    explicit pass(turnstile& t) : busy_(t.busy_) {
      while (busy_.test_and_set(std::memory_order_acquire)) busy_.wait(true, std::memory_order_relaxed);
    }
    ~pass() {
      busy_.clear(std::memory_order_release);
      busy_.notify_one();
    }
    pass(const pass&) = delete;
    pass& operator=(const pass&) = delete;

   private:
    std::atomic_flag& busy_;
  };

 private:
  std::atomic_flag busy_;
};

}  // namespace HETPLAN_NAMESPACE
