// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The state of an instance in a run: service times, queues, and three ways to work.

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/large_pages.hpp>
#include <hetplan/core/min_queue.hpp>
#include <hetplan/serve/deployment.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/request_process.hpp>
#include <hetplan/serve/service_time.hpp>

namespace hetplan::serve {

/// The times and rates of an instance, whatever its place, from one set of calls of the service_time model.
/// Throws invalid_model that names service, variant and batch, for a time of the model that is not finite and above 0.
/// Source  semantics, section 11 (service times, streams, expected ends).
class instance_times {
 public:
  instance_times(const any_service_time& model, const std::vector<service>& services, const instance& i);

  /// Returns the seconds of a pass over a batch with so many tokens in total.
  [[nodiscard]] double pass_s(int requests, double tokens_in) const {
    return generates_ ? ask_pass(requests, tokens_in) : pass_s_[static_cast<std::size_t>(requests)];
  }
  [[nodiscard]] double step_s(int requests) const { return step_s_[static_cast<std::size_t>(requests)]; }

  /// Returns the seconds by which a step is longer for each cached token.
  [[nodiscard]] double cached_s() const { return cached_s_; }
  /// Returns the seconds of the first steps of a batch after a pass over so many tokens in: each step caches one more of each request.
  [[nodiscard]] double steps_s(int requests, double tokens_in, double steps) const {
    const double all_s = steps * step_s(requests);
    if (cached_s_ == 0) return all_s;
    return all_s + cached_s_ * steps * (tokens_in + static_cast<double>(requests) * (steps + 1) / 2);
  }
  /// Returns the seconds by which prompts of so many tokens make a step longer.
  [[nodiscard]] double riding_s(double tokens_in) const;

  /// Returns T(b), the time of a fixed batch of typical requests.
  [[nodiscard]] double typical_s(int requests) const { return typical_s_[static_cast<std::size_t>(requests)]; }
  /// Returns W(b), the time of a typical request in a running set of constant size b: it waits for the pass of each one that joins.
  [[nodiscard]] double typical_in_set_s(int requests) const {
    if (chunk_ == 0) return static_cast<double>(requests) * pass_one_s_ + (typical_out_ - 1) * mean_step_s(requests);
    return (typical_out_ - 1 + chunks_of(typical_in_)) * mean_step_s(requests) + static_cast<double>(requests) * riding_one_s_;
  }
  /// Returns the seconds of a step of typical requests in the middle of their answers.
  [[nodiscard]] double mean_step_s(int requests) const {
    return step_s(requests) + cached_s_ * static_cast<double>(requests) * (typical_in_ + typical_out_ / 2);
  }
  /// Returns the seconds until a typical prompt is read in chunks, behind others of so many tokens together, in a set of so many.
  [[nodiscard]] double typical_read_s(int requests, double behind) const {
    return chunks_of(behind + typical_in_) * mean_step_s(requests) + riding_s(behind + typical_in_);
  }
  /// Returns how many typical requests a running set holds.
  [[nodiscard]] int typical_batch() const { return typical_batch_; }
  /// Returns the seconds of the pass of a typical prompt among so many of a fixed batch, or alone in a running set.
  [[nodiscard]] double typical_pass_s(int requests) const { return pass_s_[static_cast<std::size_t>(requests)]; }
  [[nodiscard]] double pass_one_s() const { return pass_one_s_; }
  [[nodiscard]] bool limits_first() const { return ttft_s_ > 0; }
  /// Returns the expected end that stands for one whose first token comes at a time: later if that breaks its limit.
  [[nodiscard]] double end_with_first(double end_s, double first_s) const {
    return ttft_s_ == 0 ? end_s : std::max(end_s, first_s + latency_s_ - ttft_s_);
  }
  /// Returns R(n), the frames per second of n streams together.
  [[nodiscard]] double stream_capacity(int streams) const {
    return stream_capacity_[static_cast<std::size_t>(streams < batch_ ? streams : batch_)];
  }
  /// Returns the most requests or frames per second.
  [[nodiscard]] double capacity() const { return capacity_; }

  [[nodiscard]] double latency_s() const { return latency_s_; }  ///< SLO of the service
  [[nodiscard]] double begin_within_s() const { return begin_within_s_; }
  [[nodiscard]] double cache_tokens() const { return cache_tokens_; }  ///< infinite without a limit
  [[nodiscard]] double chunk() const { return chunk_; }                ///< 0: whole prompts
  [[nodiscard]] int batch() const { return batch_; }
  [[nodiscard]] int stages() const { return stages_; }  ///< batches in progress at a time
  [[nodiscard]] bool generates() const { return generates_; }

 private:
  [[nodiscard]] double chunks_of(double tokens) const { return std::max(1.0, std::ceil(tokens / chunk_)); }
  [[nodiscard]] double ask_pass(int requests, double tokens_in) const;
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
  double begin_within_s_;
  double ttft_s_;
  double cache_tokens_ = std::numeric_limits<double>::infinity();
  double chunk_ = 0;
  double cached_s_ = 0;
  double typical_in_ = 0;
  double typical_out_ = 1;
  double riding_one_s_ = 0;
  int typical_batch_;
  double pass_one_s_ = 0;
  double capacity_ = 0;
  std::vector<double> pass_s_, step_s_, typical_s_, stream_capacity_;  ///< by requests; [0] is unused
};

/// The waiting requests, in order: a ring buffer in 24 bytes, because a cloud has hundreds of thousands. It does not allocate once it
/// has grown; its capacity is a power of two and never shrinks.
/// Source  ours.
class waiting_line {
 public:
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  /// Returns the k-th request from the front; requires k < size().
  [[nodiscard]] request_number operator[](std::size_t k) const { return slots_[(front_ + k) & (room_ - 1)]; }

  void push(request_number r) {
    if (size_ == room_) grow();
    slots_[(front_ + size_) & (room_ - 1)] = r;
    ++size_;
  }
  void pop(std::size_t count = 1) {
    front_ = static_cast<std::uint32_t>((front_ + count) & (room_ - 1));
    size_ -= static_cast<std::uint32_t>(count);
  }

  /// Removes and returns all requests, in order.
  [[nodiscard]] std::vector<request_number> take_all() {
    std::vector<request_number> all(size_);
    for (std::size_t k = 0; k < size_; ++k) all[k] = (*this)[k];
    front_ = size_ = 0;
    return all;
  }

  /// Prefetches both ends.
  void fetch() const {
    prefetch(slots_.get() + front_);
    prefetch(slots_.get() + ((front_ + size_) & (room_ - 1)));
  }

 private:
  void grow() {
    const std::uint32_t room = room_ == 0 ? 8 : 2 * room_;
    auto larger = std::make_unique<request_number[]>(room);
    for (std::size_t k = 0; k < size_; ++k) larger[k] = (*this)[k];
    slots_ = std::move(larger);
    room_ = room;
    front_ = 0;
  }

  std::unique_ptr<request_number[]> slots_;
  std::uint32_t front_ = 0;
  std::uint32_t size_ = 0;
  std::uint32_t room_ = 0;
};

/// An instance that serves streams, each at a rate of its own until it ends. Complexity  O(log n) per stream, for n at a time.
/// Source  EPARA, section 3.3 (frames that count); semantics, section 11 (streams).
class stream_set {
 public:
  stream_set(const instance_times& times, double wanted_rate, double ready_s) : times_(&times), wanted_(wanted_rate), ready_s_(ready_s) {}

  void advance(double now_s, ended_requests& out);
  /// Starts a stream at the free rate, or the wanted one if less. Requires advance to now, and free_rate > 0.
  void begin(request_number r, double frames, double now_s);

  /// Returns R(n + 1) less the rates of the n streams. Requires advance to now.
  [[nodiscard]] double free_rate(double now_s) const;
  /// True if the free rate is enough for a stream, to one part in 10^9.
  [[nodiscard]] bool has_whole_rate(double now_s) const { return at_most(wanted_, free_rate(now_s)); }
  [[nodiscard]] const instance_times& times() const { return *times_; }
  [[nodiscard]] bool busy() const { return !under_way_.empty(); }
  /// Returns the frames per second of all streams together.
  [[nodiscard]] double rate() const { return held_; }

  void fail(double now_s, ended_requests& out);

 private:
  struct stream {
    double end_s;
    request_number number;
    double rate;
    double begin_s;
    friend auto operator<=>(const stream&, const stream&) = default;
  };

  [[nodiscard]] bool is_over(double at_s, double now_s) const { return at_most(at_s, now_s, times_->latency_s()); }
  const instance_times* times_;
  double wanted_;
  double ready_s_;
  double held_ = 0;  ///< total rate of all streams
  min_queue<stream> under_way_;
};

/// An instance with continuous batches, which requests join and leave between tokens. All steps between two changes of the set are
/// alike, or grow by what each caches, so `advance` goes from change to change since the last call, not from token to token. So it does
/// over the chunks of a long prompt.
/// Complexity  O(log B) per request, whatever its number of tokens.
/// Source  semantics, section 11 (continuous batches).
class running_set {
 public:
  running_set(const instance_times& times, double ready_s);

  void advance(double now_s, const request_stream& all, ended_requests& out);
  /// Adds a request. Requires advance to now.
  void join(request_number r, double now_s, const request_stream& all, ended_requests& out);

  /// Returns the expected start of a request that arrives at there_s, now or later.
  [[nodiscard]] double expected_start_s(double now_s, double there_s, std::size_t coming) const;
  [[nodiscard]] double expected_end_s(double now_s, double there_s, std::size_t coming) const;
  [[nodiscard]] const instance_times& times() const { return *times_; }
  [[nodiscard]] std::size_t waiting() const { return line_.size(); }
  [[nodiscard]] bool busy() const { return members() > 0; }
  [[nodiscard]] double done() const { return static_cast<double>(done_); }
  /// True if the cache has room for a request, alone.
  [[nodiscard]] bool can_hold(const request& r) const { return tokens_of(r) <= times_->cache_tokens(); }
  /// Returns the tokens for which the running requests have room in the cache; 0 where nothing depends on it.
  [[nodiscard]] double reserved_tokens() const { return tokens_ ? tokens_->reserved : 0; }

  [[nodiscard]] std::vector<request_number> send_back() {
    looks_ = never;
    return line_.take_all();
  }
  void fail(double now_s, ended_requests& out);

 private:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  struct member {
    std::int64_t leaves;  ///< number of the step with its last token
    request_number number;
    double first_s;  ///< its first token
    friend auto operator<=>(const member&, const member&) = default;
  };
  /// A prompt that is read in chunks.
  struct prompt {
    request_number number;
    double left;  ///< tokens
  };
  /// What is known of tokens, where times or room depend on it.
  struct token_use {
    double cached = 0;    ///< at tau, by those that have a token
    double reserved = 0;  ///< tokens in and out of all
    std::deque<prompt> prompts = {};
    double unread = 0;  ///< of all of them
    // The next iterations, alike, of those in which prompts are read:
    std::int64_t alike = never;
    double each_s = 0;      ///< without what caches add
    std::size_t whole = 0;  ///< prompts that end with it; only if `alike` is 1
    double part = 0;        ///< tokens of the prompt behind them
  };

  [[nodiscard]] bool is_over(double at_s, double now_s) const { return at_most(at_s, now_s, times_->latency_s()); }
  [[nodiscard]] static double tokens_of(const request& r) { return static_cast<double>(r.tokens_in) + static_cast<double>(r.length); }
  /// Returns the requests that run or whose prompt is read.
  [[nodiscard]] std::size_t members() const { return set_.size() + (tokens_ ? tokens_->prompts.size() : 0); }
  [[nodiscard]] bool room() const { return members() < static_cast<std::size_t>(times_->batch()); }
  /// Returns the tokens of prompts that are not read at the last boundary.
  [[nodiscard]] double unread_tokens(double now_s) const;
  /// Returns the seconds of an iteration without what caches add.
  [[nodiscard]] double each_s() const {
    return tokens_ && !tokens_->prompts.empty() ? tokens_->each_s : times_->step_s(static_cast<int>(set_.size()));
  }
  [[nodiscard]] double boundary_s(std::int64_t steps) const;
  /// Returns the steps from the last change to the next; `never` for an idle instance.
  [[nodiscard]] std::int64_t next_change() const;
  [[nodiscard]] std::int64_t next_boundary(double now_s) const;
  void change(std::int64_t steps, const request_stream& all, ended_requests& out);
  void let_in(const request_stream& all, ended_requests& out);
  /// Enters that prompts were read in so many iterations since the last change.
  void read_prompts(std::int64_t steps, const request_stream& all);
  void plan_prompts();

  const instance_times* times_;
  double boundary_s_;            ///< tau: the last change, or the end of the pass after it
  std::int64_t steps_done_ = 0;  ///< before tau, since the beginning
  std::int64_t looks_ = never;   ///< steps after tau at which waiting requests can join, if there is room
  min_queue<member> set_;
  waiting_line line_;
  std::uint64_t done_ = 0;
  std::unique_ptr<token_use> tokens_;  ///< null where nothing depends on them
};

/// An instance with fixed batches: first come, first served, up to B at a time, as soon as the first stage is free.
///
/// The state changes only in calls: `advance` simulates what has happened since the last one. Nothing else touches an instance, so
/// the result equals that of events at every end, without their cost.
/// Complexity  O(1) amortised per request.
/// Source  semantics, section 11 (fixed batches).
class batch_queue {
 public:
  /// Starts no batch before ready_s. References must outlive the queue.
  batch_queue(const instance_times& times, double ready_s) : times_(&times), take_s_(ready_s) {}

  /// Simulates everything up to and including now; appends the requests that have left.
  void advance(double now_s, const request_stream& all, ended_requests& out) {
    if ((size_ > 0 && is_over(end_s_, now_s)) || (!line_.empty() && is_over(take_s_, now_s))) play(now_s, all, out);
  }

  /// Adds a request. Requires advance to now.
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
    const bool alone = waiting() + coming == 0 && is_over(take_s_, now_s);
    const int batch = alone ? 1 : times_->batch();
    const double start_s = alone ? now_s : expected_start_s(now_s, coming);
    return times_->end_with_first(start_s + times_->typical_s(batch), start_s + times_->typical_pass_s(batch));
  }

  [[nodiscard]] const instance_times& times() const { return *times_; }
  [[nodiscard]] std::size_t waiting() const { return line_.size(); }
  [[nodiscard]] bool busy() const { return size_ > 0; }
  /// Returns S, the number of computed requests.
  [[nodiscard]] double done() const { return static_cast<double>(done_); }

  void fetch() const {
    computing_.fetch();
    line_.fetch();
  }

  /// Calls see(number) for the requests that end or begin next, if the first does by now.
  template <class See>
  void show_due(double now_s, const See& see) const {
    if (size_ > 0 && is_over(end_s_, now_s)) {
      for (std::size_t k = 0; k < size_; ++k) see(computing_[k]);
    }
    if (!is_over(take_s_, now_s)) return;
    const auto batch = static_cast<std::size_t>(times_->batch());
    for (std::size_t k = 0; k < line_.size() && k < batch; ++k) see(line_[k]);
  }

  /// Removes and returns the waiting requests, in order. Requires advance to now.
  [[nodiscard]] std::vector<request_number> send_back();
  /// Fails the requests in progress.
  void fail(double now_s, ended_requests& out);

 private:
  struct batch_under_way {
    double end_s;
    std::size_t size;
  };

  [[nodiscard]] bool is_over(double at_s, double now_s) const { return at_most(at_s, now_s, times_->latency_s()); }
  void play(double now_s, const request_stream& all, ended_requests& out);
  void take_batch(const request_stream& all, ended_requests& out);
  void end_first(const request_stream& all, ended_requests& out);

  const instance_times* times_;
  double take_s_;         ///< earliest start of the next batch
  double end_s_ = 0;      ///< of the first batch in progress, if any
  std::size_t size_ = 0;  ///< of that batch
  std::uint64_t done_ = 0;
  waiting_line computing_;  ///< requests of all batches in progress, the first batch in front
  waiting_line line_;
  std::unique_ptr<std::deque<batch_under_way>> behind_;  ///< further batches in a pipeline, oldest first; null without a pipeline
};

/// The life of an instance: in service, retired from the deployment, or taken out by a fault.
enum class instance_life : std::uint8_t { works, retired, out };

/// An instance in one of three ways to work, with what the run knows of it; in two cache lines.
/// Source  semantics, section 11 (instances, expected ends).
struct alignas(64) instance_state {
  std::variant<batch_queue, running_set, stream_set> work;
  double ready_s = 0;
  server_id leader;
  std::int32_t device = -1;  ///< number of the leader's device, if it is on one
  std::uint32_t coming = 0;  ///< requests in transit to that device
  instance_life life = instance_life::works;

  [[nodiscard]] const instance_times& times() const {
    return std::visit([](const auto& w) -> const instance_times& { return w.times(); }, work);
  }

  /// Prefetches what advance and join read; the object itself is in the cache.
  void fetch() const {
    if (const auto* q = std::get_if<batch_queue>(&work)) q->fetch();
  }
  /// Calls see(number) for the requests that advance reads, as far as they are known without a search.
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
  /// True if a request alone does not exceed the instance.
  [[nodiscard]] bool can_hold(const request& r) const {
    const auto* set = std::get_if<running_set>(&work);
    return set == nullptr || set->can_hold(r);
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
  /// Returns the expected start of one more request that arrives at there_s, now or later; 0 for a stream.
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
  /// Returns the number of computed requests, without streams.
  [[nodiscard]] double done() const {
    if (const auto* q = std::get_if<batch_queue>(&work)) return q->done();
    if (const auto* set = std::get_if<running_set>(&work)) return set->done();
    return 0;
  }
  /// Returns the frames per second of its streams.
  [[nodiscard]] double rate() const {
    const auto* s = std::get_if<stream_set>(&work);
    return s != nullptr ? s->rate() : 0;
  }
  [[nodiscard]] std::size_t waiting() const {
    if (const auto* q = std::get_if<batch_queue>(&work)) return q->waiting();
    if (const auto* set = std::get_if<running_set>(&work)) return set->waiting();
    return 0;
  }
  [[nodiscard]] bool busy() const {
    return std::visit([](const auto& w) { return w.busy(); }, work);
  }
  /// Removes and returns the waiting requests, in order.
  [[nodiscard]] std::vector<request_number> send_back() {
    if (auto* q = std::get_if<batch_queue>(&work)) return q->send_back();
    if (auto* set = std::get_if<running_set>(&work)) return set->send_back();
    return {};
  }
  void fail(double now_s, ended_requests& out) {
    std::visit([&](auto& w) { w.fail(now_s, out); }, work);
  }
};

}  // namespace hetplan::serve

#ifndef HETPLAN_SEPARATE
#include <hetplan/serve/instance_state.ipp>
#endif
