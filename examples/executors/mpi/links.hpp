// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A transport for MPI ranks: one rank per device, each with a thread that owns MPI.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <mpi.h>

#include "../common/transport.hpp"
#include "clock.hpp"
#include "shared_board.hpp"

namespace executors {

/// A rank's end of all links.
///
/// Parcels are sent in pieces, those of smallest priority number first; few are under way at a time, so that an urgent one waits for few.
/// Real links: a parcel has arrived when its numbers are there. Shaped links: the sender grants each parcel its turns on the medium, which
/// the ranks of one machine share, while its numbers go ahead; it arrives with the message that its last turn is over. So MPI's own time
/// counts only if it is longer. The thread sleeps between two polls of MPI, whose own busy loop would take the core from the work.
class rank_links {
 public:
  /// Collective. The ranks of `ranks` are the program's devices in cluster order.
  ///
  /// @param shaped  true: the ranks must be on one machine.
  rank_links(MPI_Comm ranks, const program& p, const hetplan::cluster& c, bool shaped, double timeout_s)
      : program_(p), cluster_(c), timeout_s_(timeout_s), rank_of_(c.size(), -1) {
    MPI_Comm_dup(ranks, &ranks_);
    MPI_Comm_rank(ranks_, &rank_);
    for (std::size_t d = 0; d < c.size(); ++d) {
      if (!p.uses(hetplan::device_id(d))) continue;
      rank_of_[d] = static_cast<int>(devices_.size());
      devices_.emplace_back(d);
    }
    came_.resize(devices_.size());
    if (shaped) {
      board_.emplace(ranks_, p.resources.size() + p.slots(), p.flows.size());
      medium_.emplace(p.resources, p.rules, board_->free_at_s(), board_->states(), board_->lock());
      out_.emplace(p, *medium_, [this](const parcel& x) { tell(x); });
    } else {
      ahead_s_ = seconds_ahead(ranks_);
    }
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  rank_links(const rank_links&) = delete;
  rank_links& operator=(const rank_links&) = delete;

  [[nodiscard]] hetplan::device_id device() const { return devices_[static_cast<std::size_t>(rank_)]; }

  void send(std::vector<parcel> parcels) {
    for (const parcel& x : parcels) post(x);
    if (out_) out_->send(std::move(parcels));
  }
  parcel receive(std::size_t flow, int part) {
    std::unique_lock hold(mutex_);
    const bool there = arrived_.wait_for(hold, std::chrono::duration<double>(timeout_s_), [&] { return mailbox_.contains({flow, part}); });
    if (!there) fail_waiting("flow " + std::to_string(flow) + " from \"" + cluster_[program_.flows[flow].from].name + "\"");
    return std::move(mailbox_.extract({flow, part}).mapped());
  }
  [[nodiscard]] double now_s() const { return steady_s() + ahead_s_; }
  void wait_until(double s) const { std::this_thread::sleep_until(steady_time(s - ahead_s_)); }
  meeting meet(double value) {
    std::unique_lock hold(mutex_);
    const int round = round_;
    say(0, tag::here, {static_cast<double>(rank_), value, now_s()});
    const bool there = arrived_.wait_for(hold, std::chrono::duration<double>(timeout_s_), [&] { return round_ != round; });
    if (!there) fail_waiting("the others at the end of an iteration");
    return met_;
  }
  /// Collective, the last call. No parcel is under way, as nobody leaves a meeting before all have arrived.
  void close() {
    out_.reset();
    {
      std::unique_lock hold(mutex_);
      const bool gone = arrived_.wait_for(hold, std::chrono::duration<double>(timeout_s_), [&] { return words_.empty() && flying_ == 0; });
      if (!gone) fail_waiting("its last words to leave");
    }
    thread_ = {};
    if (board_) board_->free();
    MPI_Comm_free(&ranks_);
  }

 private:
  using address = std::pair<std::size_t, int>;
  struct tag {
    enum kind : int { piece = 1, arrived, here, met };
  };
  /// A parcel to send; the smallest priority number goes first, then the earliest post.
  struct outgoing {
    parcel what;
    std::size_t sent = 0;  ///< in numbers
  };
  struct word {
    int to;
    tag::kind what;
    std::vector<double> numbers;
  };
  /// Numbers that MPI is sending or receiving.
  struct transit {
    std::vector<double> numbers;
    MPI_Request request = MPI_REQUEST_NULL;
    int tag = 0;
    std::optional<std::size_t> flow = {};
  };
  struct assembly {
    parcel what;
    std::size_t missing = 0;
    bool started = false, arrived = false;  ///< true after a piece; true after the message that its turns are over
  };
  /// Returns the numbers of a piece. On shaped links, large pieces cost least; on real links, an urgent parcel waits for a whole piece.
  [[nodiscard]] std::size_t piece_numbers() const { return board_ ? 131072 : 16384; }
  static constexpr std::size_t most_flying = 4;
  static constexpr std::size_t header_numbers = 4;  ///< flow, part, numbers of the parcel, offset of the piece

  [[noreturn]] void fail_waiting(const std::string& what) const {
    throw timed_out("\"" + cluster_[device()].name + "\" has waited " + hetplan::to_text(timeout_s_) + " s for " + what);
  }

  void post(parcel x) {
    const std::lock_guard hold(mutex_);
    waiting_.push_back({std::move(x)});
    posted_.notify_one();
  }
  void tell(const parcel& x) {
    const std::lock_guard hold(mutex_);
    say(rank_of_[program_.flows[x.flow].to.index()], tag::arrived, {static_cast<double>(x.flow), static_cast<double>(x.part), x.at_s});
  }
  /// Requires the lock.
  void say(int to, tag::kind what, std::vector<double> numbers) {
    words_.push_back({to, what, std::move(numbers)});
    posted_.notify_one();
  }

  void run(const std::stop_token& stop) {
    using std::chrono::microseconds;
    while (!stop.stop_requested()) {
      while (send_word() || send_piece()) {
      }
      finish_sends();
      begin_receives();
      finish_receives();
      std::unique_lock hold(mutex_);
      const bool busy = !sends_.empty() || !receives_.empty();
      if (words_.empty()) posted_.wait_for(hold, busy ? microseconds(20) : microseconds(150));
    }
  }

  bool send_word() {
    word w;
    {
      const std::lock_guard hold(mutex_);
      if (words_.empty()) return false;
      w = std::move(words_.front());
      words_.pop_front();
      ++flying_;
    }
    fly(w.to, w.what, std::move(w.numbers), {});
    return true;
  }
  bool send_piece() {
    int to = 0;
    std::size_t flow = 0;
    std::vector<double> numbers;
    {
      const std::lock_guard hold(mutex_);
      if (sends_.size() >= most_flying) return false;
      const auto next = next_to_go();
      if (next == waiting_.end()) return false;
      const parcel& x = next->what;
      const std::size_t size = std::min(piece_numbers(), x.data.size() - next->sent);
      flow = x.flow;
      to = rank_of_[program_.flows[flow].to.index()];
      const auto number = [](auto n) { return static_cast<double>(n); };
      numbers = {number(x.flow), number(x.part), number(x.data.size()), number(next->sent)};
      const auto from = x.data.begin() + static_cast<std::ptrdiff_t>(next->sent);
      numbers.insert(numbers.end(), from, from + static_cast<std::ptrdiff_t>(size));
      next->sent += size;
      if (next->sent == x.data.size()) waiting_.erase(next);
      ++flying_;
    }
    fly(to, tag::piece, std::move(numbers), flow);
    return true;
  }
  [[nodiscard]] std::deque<outgoing>::iterator next_to_go() {
    auto best = waiting_.end();
    for (auto o = waiting_.begin(); o != waiting_.end(); ++o) {
      const auto& f = program_.flows[o->what.flow];
      const auto is_before = [&](std::size_t other) { return f.after == static_cast<int>(other); };
      if (best != waiting_.end() && f.priority >= program_.flows[best->what.flow].priority) continue;
      if (board_) {  // the medium decides the time
        best = o;
        continue;
      }
      if (o->what.at_s > now_s()) continue;
      if (std::any_of(waiting_.begin(), waiting_.end(), [&](const outgoing& w) { return is_before(w.what.flow); })) continue;
      if (std::any_of(sends_.begin(), sends_.end(), [&](const transit& s) { return s.flow && is_before(*s.flow); })) continue;
      best = o;
    }
    return best;
  }
  void fly(int to, int what, std::vector<double> numbers, std::optional<std::size_t> flow) {
    transit t{std::move(numbers), MPI_REQUEST_NULL, what, flow};
    MPI_Isend(t.numbers.data(), static_cast<int>(t.numbers.size()), MPI_DOUBLE, to, what, ranks_, &t.request);
    sends_.push_back(std::move(t));
  }
  void finish_sends() {
    const std::size_t gone = std::erase_if(sends_, [](transit& t) {
      int done = 0;
      MPI_Test(&t.request, &done, MPI_STATUS_IGNORE);
      return done != 0;
    });
    const std::lock_guard hold(mutex_);
    flying_ -= gone;
    if (gone > 0 && flying_ == 0) arrived_.notify_all();
  }

  void begin_receives() {
    for (;;) {
      int there = 0;
      MPI_Message message;
      MPI_Status status;
      MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, ranks_, &there, &message, &status);
      if (there == 0) return;
      int size = 0;
      MPI_Get_count(&status, MPI_DOUBLE, &size);
      transit t{std::vector<double>(static_cast<std::size_t>(size)), MPI_REQUEST_NULL, status.MPI_TAG};
      MPI_Imrecv(t.numbers.data(), size, MPI_DOUBLE, &message, &t.request);
      receives_.push_back(std::move(t));
    }
  }
  void finish_receives() {
    std::erase_if(receives_, [&](transit& t) {
      int done = 0;
      MPI_Test(&t.request, &done, MPI_STATUS_IGNORE);
      if (done != 0) take(t);
      return done != 0;
    });
  }
  void take(const transit& t) {
    const std::lock_guard hold(mutex_);
    if (t.tag == tag::here) come(t.numbers);
    if (t.tag == tag::piece) put_together(t.numbers);
    if (t.tag == tag::arrived) {
      assembly& a = assembly_of(t.numbers);
      a.arrived = true;
      a.what.at_s = t.numbers[2];
      look_at(a);
    }
    if (t.tag == tag::met) {
      met_ = {t.numbers[0], t.numbers[1]};
      ++round_;
      arrived_.notify_all();
    }
  }
  /// Counts a rank's arrival at a meeting, on rank 0; the last one ends the meeting.
  void come(const std::vector<double>& numbers) {
    came_[static_cast<std::size_t>(numbers[0])] = {numbers[2], numbers[1]};
    if (++here_ < came_.size()) return;
    here_ = 0;
    meeting all;
    for (const meeting& m : came_) {  // in rank order, so the sum does not depend on arrivals
      all.at_s = std::max(all.at_s, m.at_s);
      all.sum += m.sum;
    }
    for (std::size_t r = 0; r < came_.size(); ++r) say(static_cast<int>(r), tag::met, {all.at_s, all.sum});
  }
  assembly& assembly_of(const std::vector<double>& numbers) {
    const address where{static_cast<std::size_t>(numbers[0]), static_cast<int>(numbers[1])};
    return parts_.try_emplace(where, assembly{{where.first, where.second, {}}}).first->second;
  }
  void put_together(const std::vector<double>& numbers) {
    assembly& a = assembly_of(numbers);
    if (!std::exchange(a.started, true)) {
      a.missing = static_cast<std::size_t>(numbers[2]);
      a.what.data.resize(a.missing);
    }
    std::copy(numbers.begin() + header_numbers, numbers.end(), a.what.data.begin() + static_cast<std::ptrdiff_t>(numbers[3]));
    a.missing -= numbers.size() - header_numbers;
    if (!board_) a.arrived = true;
    if (a.missing == 0 && a.arrived) a.what.at_s = now_s();  // later than the medium allowed
    look_at(a);
  }
  void look_at(assembly& a) {
    if (!a.arrived || !a.started || a.missing > 0) return;
    const address where{a.what.flow, a.what.part};
    mailbox_[where] = std::move(a.what);
    parts_.erase(where);
    arrived_.notify_all();
  }

  const program& program_;
  const hetplan::cluster& cluster_;
  double timeout_s_;
  MPI_Comm ranks_ = MPI_COMM_NULL;
  int rank_ = 0;
  double ahead_s_ = 0;
  std::vector<hetplan::device_id> devices_;  ///< [rank]
  std::vector<int> rank_of_;                 ///< [device]; -1: not used by the program
  std::optional<shared_board> board_;
  std::optional<medium<process_lock>> medium_;

  std::mutex mutex_;  ///< guards all members up to the mailbox
  std::condition_variable posted_, arrived_;
  std::deque<outgoing> waiting_;
  std::deque<word> words_;
  std::size_t flying_ = 0;  ///< messages that MPI has not released yet
  std::map<address, assembly> parts_;
  std::vector<meeting> came_;  ///< on rank 0: [rank]
  std::size_t here_ = 0;
  int round_ = 0;
  meeting met_;
  std::map<address, parcel> mailbox_;

  std::vector<transit> sends_, receives_;  ///< owned by the MPI thread
  std::optional<sender<process_lock>> out_;
  std::jthread thread_;
};

static_assert(transport<rank_links>);

}  // namespace executors
