// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Transports between devices, and the sender that paces a device's flows over the medium.

#include <algorithm>
#include <chrono>
#include <concepts>
#include <condition_variable>
#include <ctime>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "program.hpp"

namespace executors {

/// Numbers on the network: part `part` of a flow (a round of a reduction, < 0 without numbers; 0 otherwise).
struct parcel {
  std::size_t flow = 0;
  int part = 0;
  std::vector<double> data;
  double at_s = 0;  ///< earliest departure and, on arrival, time of arrival, on the common clock
};

/// A meeting of all devices: time of the last one, and the sum of their values.
struct meeting {
  double at_s = 0;
  double sum = 0;
};

class timed_out : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A device's connection to the others. All devices read the same clock, or clocks that agree to a small part of a task.
template <class T>
concept transport = requires(T& link, std::vector<parcel> parcels, std::size_t flow, int part, double value) {
  link.send(std::move(parcels));                         // chunks of one message; returns at once
  { link.receive(flow, part) } -> std::same_as<parcel>;  // waits for the parcel; throws timed_out
  { link.now_s() } -> std::same_as<double>;              // the common clock
  link.wait_until(value);                                // on the common clock; returns at once if it has passed
  { link.meet(value) } -> std::same_as<meeting>;         // waits for all devices of the program; throws timed_out
};

/// Returns seconds of the machine's steady clock, which its processes share.
[[nodiscard]] inline double steady_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
/// Returns the thread's processor time in seconds.
[[nodiscard]] inline double thread_s() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}
[[nodiscard]] inline std::chrono::steady_clock::time_point steady_time(double s) {
  return std::chrono::steady_clock::time_point(
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(s)));
}

/// A thread that sends the parcels of one device. Each waits for its flow's latency, crosses the medium piece by piece beside the others,
/// and is delivered when its last piece has arrived.
///
/// @param Deliver  void(parcel), called in the sender's thread.
template <class Lock>
class sender {
 public:
  sender(const program& p, medium<Lock>& m, std::function<void(parcel)> deliver)
      : program_(p), medium_(m), deliver_(std::move(deliver)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

  void send(std::vector<parcel> parcels) {
    const std::lock_guard hold(mutex_);
    for (parcel& x : parcels) {
      const double bytes = static_cast<double>(x.data.size() * sizeof(double));
      queue_.push_back({std::move(x), bytes, x.at_s, x.at_s});
    }
    changed_.notify_one();
  }
  /// Stops sending; parcels under way are lost.
  void stop() {
    thread_.request_stop();
    thread_.join();
    for (const outgoing& o : queue_) medium_.end(o.what.flow, steady_s());
    queue_.clear();
  }
  ~sender() {
    if (thread_.joinable()) stop();
  }
  sender(const sender&) = delete;
  sender& operator=(const sender&) = delete;

 private:
  struct outgoing {
    parcel what;
    double left_bytes;
    double next_s;  ///< time of its next step: departure, end of latency, or arrival of a piece
    double end_s;   ///< arrival of what it has sent so far
    bool departed = false, begun = false;
  };
  static constexpr double patience_s = 3e-4;     ///< period of retries while other flows leave no room
  static constexpr double least_sleep_s = 2e-4;  ///< a late wake-up loses no turns

  /// Takes turns in the order in which they are due, also after a late wake-up.
  void run(const std::stop_token& stop) {
    std::unique_lock hold(mutex_);
    while (!stop.stop_requested()) {
      const std::size_t i = soonest();
      const double due_s = i < queue_.size() ? queue_[i].next_s : steady_s() + 0.1;
      if (due_s > steady_s()) {
        const auto until = steady_time(std::max(due_s, steady_s() + least_sleep_s));
        changed_.wait_until(hold, stop, until, [size = queue_.size(), this] { return queue_.size() != size; });
      } else if (advance(queue_[i])) {
        parcel x = take(i);
        hold.unlock();
        deliver_(std::move(x));
        hold.lock();
      }
    }
  }
  /// Returns the first parcel in time that waits for no other; queue size if there is none.
  [[nodiscard]] std::size_t soonest() const {
    std::size_t best = queue_.size();
    for (std::size_t i = 0; i < queue_.size(); ++i) {
      if (!waits_for_another(queue_[i]) && (best == queue_.size() || queue_[i].next_s < queue_[best].next_s)) best = i;
    }
    return best;
  }
  /// Returns true for a later chunk or a later part of the same flow: side by side, the two would halve each other's rate.
  [[nodiscard]] bool follows(const outgoing& o, const outgoing& earlier) const {
    const int flow = static_cast<int>(earlier.what.flow);
    return program_.flows[o.what.flow].after == flow || (static_cast<int>(o.what.flow) == flow && o.what.part > earlier.what.part);
  }
  [[nodiscard]] bool waits_for_another(const outgoing& o) const {
    return std::any_of(queue_.begin(), queue_.end(), [&](const outgoing& other) { return follows(o, other); });
  }
  /// Departs, or takes a turn. Returns true if the parcel has arrived.
  [[nodiscard]] bool advance(outgoing& o) {
    const std::size_t f = o.what.flow;
    if (!o.departed) {
      const auto from_s = o.left_bytes > 0 ? medium_.enter(f, o.next_s) : std::optional(o.next_s);  // nothing needs no slots
      o.departed = from_s.has_value();
      o.next_s = from_s ? *from_s + (o.what.part == 0 ? program_.flows[f].latency_s : 0) : steady_s() + patience_s;
      o.end_s = o.next_s;
      return false;
    }
    if (!std::exchange(o.begun, true)) medium_.begin(f, o.next_s);
    if (o.left_bytes <= 0) return true;
    if (const auto t = medium_.reserve(f, std::min(o.left_bytes, medium_.piece_bytes(f)))) {
      o.left_bytes -= t->bytes;
      o.end_s = t->end_s;
      o.next_s = o.left_bytes > 0 ? t->asks_again_s : t->end_s;
    } else {
      o.next_s = steady_s() + patience_s;
    }
    return false;
  }
  /// Removes an arrived parcel from the queue; its followers may start.
  parcel take(std::size_t i) {
    outgoing done = std::move(queue_[i]);
    queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(i));
    medium_.end(done.what.flow, done.end_s);
    for (outgoing& o : queue_) {
      if (follows(o, done)) o.next_s = o.end_s = std::max(o.next_s, done.end_s);
    }
    done.what.at_s = done.end_s;
    return std::move(done.what);
  }

  const program& program_;
  medium<Lock>& medium_;
  std::function<void(parcel)> deliver_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<outgoing> queue_;
  std::jthread thread_;
};

}  // namespace executors
