// SPDX-License-Identifier: BSL-1.0
#pragma once
/// An instance while requests come and go.

#include <algorithm>
#include <cstdint>
#include <variant>
#include <vector>

#include <hetplan/serve/batch_queue.hpp>
#include <hetplan/serve/running_set.hpp>
#include <hetplan/serve/stream_set.hpp>

namespace HETPLAN_NAMESPACE::serve {

/// Where it stands in a run: it works; it was taken out of the deployment; a fault has taken it.
enum class instance_life : std::uint8_t { works, retired, out };

/// One of the three ways to work, and what the run knows of it; in two lines of the cache.
/// Source  semantics, section 11 (instances, expected ends).
struct alignas(64) instance_state {
  std::variant<batch_queue, running_set, stream_set> work;
  double ready_s = 0;
  server_id leader;
  std::int32_t device = -1;  ///< number of the leader's device that it is on
  std::uint32_t coming = 0;  ///< requests on their way to that device
  instance_life life = instance_life::works;

  [[nodiscard]] const instance_times& times() const {
    return std::visit([](const auto& w) -> const instance_times& { return w.times(); }, work);
  }

  /// Fetches what advance and join will touch; it stands in the cache itself.
  void fetch() const {
    if (const auto* q = std::get_if<batch_queue>(&work)) q->fetch();
  }
  /// Shows see(number) those whom advance will look at, as far as that is known without a search.
  template <class See>
  void show_due(double now_s, const See& see) const {
    if (const auto* q = std::get_if<batch_queue>(&work)) q->show_due(now_s, see);
  }
  void advance(double now_s, const request_stream& all, ended_requests& out) {
    if (auto* q = std::get_if<batch_queue>(&work)) {
      q->advance(now_s, all, out);
    } else if (auto* set = std::get_if<running_set>(&work)) {
      set->advance(now_s, all, out);
    } else {
      std::get<stream_set>(work).advance(now_s, out);
    }
  }
  void join(request_number r, double now_s, const request_stream& all, ended_requests& out) {
    if (auto* q = std::get_if<batch_queue>(&work)) {
      q->join(r, now_s, all, out);
    } else if (auto* set = std::get_if<running_set>(&work)) {
      set->join(r, now_s, all, out);
    } else {
      std::get<stream_set>(work).begin(r, static_cast<double>(all[r].length), now_s);
    }
  }
  /// Of one more request that is there at there_s, now or later; 0 for a stream.
  [[nodiscard]] double expected_start_s(double now_s, double there_s) const {
    there_s = std::max(there_s, ready_s);
    if (const auto* q = std::get_if<batch_queue>(&work)) return q->expected_start_s(there_s, coming);
    if (const auto* set = std::get_if<running_set>(&work)) return set->expected_start_s(now_s, there_s, coming);
    return 0;
  }
  [[nodiscard]] double expected_end_s(double now_s, double there_s) const {
    there_s = std::max(there_s, ready_s);
    if (const auto* q = std::get_if<batch_queue>(&work)) return q->expected_end_s(there_s, coming);
    if (const auto* set = std::get_if<running_set>(&work)) return set->expected_end_s(now_s, there_s, coming);
    return 0;
  }
  [[nodiscard]] double free_rate(double now_s) const {
    const auto* s = std::get_if<stream_set>(&work);
    return s != nullptr ? s->free_rate(now_s) : 0;
  }
  [[nodiscard]] bool has_whole_rate(double now_s) const {
    const auto* s = std::get_if<stream_set>(&work);
    return s != nullptr && s->has_whole_rate(now_s);
  }
  /// Requests that it has computed, without streams.
  [[nodiscard]] double done() const {
    if (const auto* q = std::get_if<batch_queue>(&work)) return q->done();
    if (const auto* set = std::get_if<running_set>(&work)) return set->done();
    return 0;
  }
  /// Frames a second of its streams.
  [[nodiscard]] double rate() const {
    const auto* s = std::get_if<stream_set>(&work);
    return s != nullptr ? s->rate() : 0;
  }
  [[nodiscard]] std::size_t waiting() const {
    if (const auto* q = std::get_if<batch_queue>(&work)) return q->waiting();
    if (const auto* set = std::get_if<running_set>(&work)) return set->waiting();
    return 0;
  }
  /// Is anything under way?
  [[nodiscard]] bool busy() const {
    return std::visit([](const auto& w) { return w.busy(); }, work);
  }
  /// Who waits, in order; nobody is left waiting.
  [[nodiscard]] std::vector<request_number> send_back() {
    if (auto* q = std::get_if<batch_queue>(&work)) return q->send_back();
    if (auto* set = std::get_if<running_set>(&work)) return set->send_back();
    return {};
  }
  /// What is under way has failed.
  void fail(double now_s, ended_requests& out) {
    std::visit([&](auto& w) { w.fail(now_s, out); }, work);
  }
};

}  // namespace HETPLAN_NAMESPACE::serve
