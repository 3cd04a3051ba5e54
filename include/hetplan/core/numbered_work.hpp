// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Independent pieces of work on several threads, taken in order.

#include <algorithm>
#include <atomic>
#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <hetplan/core/linkage.hpp>

namespace hetplan {

/// Runs numbered pieces of work on threads, in order; take(i), once for each i, waits for piece i and rethrows what it threw.
///
///     numbered_work squares(10, 2, [](std::size_t i) { return i * i; });
///     for (std::size_t i = 0; i < 10; ++i) use(squares.take(i));
///
/// On one thread a piece is done when it is taken. Going out of scope waits for pieces that have begun; the rest is left.
/// Determinism  as that of the work: what take() returns does not depend on the threads.
template <std::invocable<std::size_t> Work>
class numbered_work {
 public:
  using result = std::invoke_result_t<Work&, std::size_t>;

  /// @param threads  0: as many as the machine runs at once.
  numbered_work(std::size_t count, int threads, Work work) : work_(std::move(work)), done_(count), failed_(count) {
    if (threads == 0) threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    const std::size_t crew = std::min(count, static_cast<std::size_t>(std::max(1, threads)));
    if (crew > 1) {
      try {
        for (std::size_t i = 0; i < crew; ++i) crew_.emplace_back([this] { work_off(); });
      } catch (const std::system_error&) {  // fewer threads than asked for are enough, none is one
      }
    }
  }
  numbered_work(const numbered_work&) = delete;
  numbered_work& operator=(const numbered_work&) = delete;
  ~numbered_work() {
    next_ = done_.size();  // pieces not begun are left
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

}  // namespace hetplan
