// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The same few workers, called together again and again.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <hetplan/core/linkage.hpp>

namespace hetplan {

/// A barrier that spins before it blocks: being woken takes longer than most waits for a crew, and std::barrier blocks at once. Where the
/// machine runs fewer threads at once than meet, it does not spin, which would keep the others from coming.
///
/// Source  own; measured in docs/performance.md, "The search".
class spinning_barrier {
 public:
  explicit spinning_barrier(std::uint32_t expected)
      : spins_(expected <= std::thread::hardware_concurrency() ? 20'000 : 0), expected_(expected), missing_(expected) {}

  void arrive_and_wait() {
    const std::uint32_t now = round_;
    if (--missing_ == 0) {
      missing_ = expected_;
      ++round_;
      round_.notify_all();
      return;
    }
    for (int i = 0; i < spins_; ++i) {
      if (round_ != now) return;
    }
    round_.wait(now);
  }
  /// One less will come. To be called before the first meeting ends.
  void drop() { --expected_, --missing_; }

 private:
  int spins_;
  std::uint32_t expected_;
  std::atomic<std::uint32_t> missing_, round_ = 0;
};

/// Worker i of n does work(i) whenever all are called; whoever calls is worker 0 and goes on when all have done.
///
///     crew c(2, [&](std::size_t i) { sums[i] = ...; });
///     for (...) c.call();
///
/// What a worker throws the call throws, of several the one of least number. Where the machine has no thread left, the caller does
/// what is missing. Determinism: as that of the work.
class crew {
 public:
  /// @param workers  >= 1.
  crew(std::size_t workers, std::function<void(std::size_t)> work)
      : work_(std::move(work)), failures_(std::max<std::size_t>(1, workers)), meeting_(static_cast<std::uint32_t>(failures_.size())) {
    try {
      while (others_.size() + 1 < failures_.size()) others_.emplace_back([this, i = others_.size() + 1] { serve(i); });
    } catch (const std::system_error&) {
      for (std::size_t i = others_.size() + 1; i < failures_.size(); ++i) meeting_.drop();
    }
  }
  crew(const crew&) = delete;
  crew& operator=(const crew&) = delete;
  ~crew() {
    if (others_.empty()) return;
    over_ = true;
    meeting_.arrive_and_wait();
    for (std::thread& t : others_) t.join();
  }

  [[nodiscard]] std::size_t size() const { return failures_.size(); }

  void call() {
    if (!others_.empty()) meeting_.arrive_and_wait();
    attempt(0);
    for (std::size_t i = others_.size() + 1; i < failures_.size(); ++i) attempt(i);
    if (!others_.empty()) meeting_.arrive_and_wait();
    std::exception_ptr first;
    for (std::exception_ptr& f : failures_) {
      if (std::exception_ptr thrown = std::exchange(f, nullptr); thrown && !first) first = thrown;
    }
    if (first) std::rethrow_exception(first);
  }

 private:
  void serve(std::size_t i) {
    for (;;) {
      meeting_.arrive_and_wait();
      if (over_) return;
      attempt(i);
      meeting_.arrive_and_wait();
    }
  }
  void attempt(std::size_t i) {
    try {
      work_(i);
    } catch (...) {
      failures_[i] = std::current_exception();
    }
  }

  std::function<void(std::size_t)> work_;
  std::vector<std::exception_ptr> failures_;  ///< by worker
  spinning_barrier meeting_;                  ///< of the caller and the others
  std::vector<std::thread> others_;
  bool over_ = false;  ///< written before a meeting, read after it
};

}  // namespace hetplan
