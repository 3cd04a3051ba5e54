// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Numbered pieces of work on several threads, and a crew of threads that is reused over many calls.

#include <algorithm>
#include <atomic>
#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <hetplan/core/version.hpp>

namespace hetplan {

/// Runs numbered pieces of work on threads, in order. take(i), once for each i, returns the result of piece i or rethrows its exception.
///
///     numbered_work squares(10, 2, [](std::size_t i) { return i * i; });
///     for (std::size_t i = 0; i < 10; ++i) use(squares.take(i));
///
/// With a single thread, a piece runs when it is taken. The destructor waits for the pieces that have begun and drops the others.
/// Determinism  that of the work: results do not depend on the number of threads.
template <std::invocable<std::size_t> Work>
class numbered_work {
 public:
  using result = std::invoke_result_t<Work&, std::size_t>;

  /// @param threads  Number of threads; 0: as many as the machine runs at once.
  numbered_work(std::size_t count, int threads, Work work) : work_(std::move(work)), done_(count), failed_(count) {
    if (threads == 0) threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    const std::size_t crew = std::min(count, static_cast<std::size_t>(std::max(1, threads)));
    if (crew > 1) {
      try {
        for (std::size_t i = 0; i < crew; ++i) crew_.emplace_back([this] { work_off(); });
      } catch (const std::system_error&) {  // fewer threads suffice; without any, take() does the work
      }
    }
  }
  numbered_work(const numbered_work&) = delete;
  numbered_work& operator=(const numbered_work&) = delete;
  ~numbered_work() {
    next_ = done_.size();  // drops the pieces that have not begun
    for (std::thread& t : crew_) t.join();
  }

  [[nodiscard]] result take(std::size_t i) {
    if (crew_.empty()) return work_(i);
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return done_[i] || failed_[i]; });
    if (failed_[i]) std::rethrow_exception(failed_[i]);
    return std::move(*done_[i]);
  }

 private:
  void work_off() {
    for (std::size_t i = next_++; i < done_.size(); i = next_++) {
      std::optional<result> made;
      std::exception_ptr failure;
      try {
        made = work_(i);
      } catch (...) {
        failure = std::current_exception();
      }
      const std::lock_guard lock(mutex_);
      done_[i] = std::move(made);
      failed_[i] = failure;
      ready_.notify_all();
    }
  }

  Work work_;
  std::vector<std::optional<result>> done_;
  std::vector<std::exception_ptr> failed_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::vector<std::thread> crew_;
};

/// Barrier that spins before it blocks: waking a thread takes longer than most waits of a crew, and std::barrier blocks at once. It does
/// not spin if more threads meet than the machine runs at once, since spinning would delay the missing ones.
///
/// Source  own.
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
  /// Removes one thread from the barrier. Must be called before the first meeting ends.
  void drop() { --expected_, --missing_; }

 private:
  int spins_;
  std::uint32_t expected_;
  std::atomic<std::uint32_t> missing_, round_ = 0;
};

/// Team of reusable threads: call() runs work(i) on worker i of n, the caller being worker 0, and returns when all have finished.
///
///     crew c(2, [&](std::size_t i) { sums[i] = ...; });
///     for (...) c.call();
///
/// call() rethrows an exception of a worker; of several, that of the lowest worker. If the system has no thread left, the caller does the
/// work of the missing workers. Determinism: that of the work.
class crew {
 public:
  /// @param workers  Number of workers, the caller included, >= 1.
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
  std::vector<std::exception_ptr> failures_;  ///< by worker: its exception
  spinning_barrier meeting_;                  ///< between the caller and the other workers
  std::vector<std::thread> others_;
  bool over_ = false;  ///< written before a barrier, read after it
};

}  // namespace hetplan
