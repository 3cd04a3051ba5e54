// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A user's network sharing in a run: what it says is checked against what the network has.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/problem/network_sharing.hpp>
#include <hetplan/simulate/transfers_under_way.hpp>

namespace hetplan::detail {

/// What a sharing has said so far. All members throw invalid_model where it cannot be so.
class sharing_ledger {
 public:
  explicit sharing_ledger(const network& net) : net_(&net), load_(net.resources()) {}

  void start(double now_s, std::uint32_t number, const tasks::transfer& t, std::span<const resource_use> route) {
    flows_.start(now_s, number, t, route);
  }
  void set_capacity(std::size_t r, double capacity) { load_.set_capacity(r, capacity); }
  /// Is it another rate?
  bool set_rate(double now_s, std::uint32_t number, double rate, const rate_changed& changed);
  /// All rates together are within all capacities.
  void check_load(double now_s);
  /// A transfer ends: nothing of it is left.
  void end(double time_s, std::uint32_t number);
  [[noreturn]] static void refuse_next_end(double next_s);
  [[noreturn]] static void refuse_idleness(double time_s, int rounds);
  static void check_next_end(double time_s, double next_s);
  /// Nothing else will happen: has the sharing still something to do? A resource without capacity is not its fault.
  void check_nothing_left(double now_s) const;
  [[nodiscard]] double left(std::uint32_t number, double now_s) const { return flows_.find(number)->left(now_s); }

 private:
  const network* net_;
  transfers_under_way flows_;
  resource_load load_;
};

/// A user's sharing with all that a run asks, optional or not; it is told of nothing while it is asked.
///
/// Complexity  on top of the sharing's, the transfers under way and their resources per update.
template <network_sharing Sharing>
class guarded_sharing {
 public:
  guarded_sharing(const Sharing& sharing, const network& net) : sharing_(sharing), ledger_(net) {}

  [[nodiscard]] route_access access() const { return access_of(sharing_); }
  void start(double now_s, std::uint32_t number, const tasks::transfer& t, const std::span<const resource_use>& route) {
    ledger_.start(now_s, number, t, route);
    sharing_.start(now_s, number, t, route);
  }
  void set_capacity(std::size_t r, double capacity) {
    ledger_.set_capacity(r, capacity);
    if constexpr (follows_capacities<Sharing>) sharing_.set_capacity(r, capacity);
  }
  void update(double now_s, const rate_changed& changed) {
    const rate_changed noted = [&](std::uint32_t number, double rate) {
      if (ledger_.set_rate(now_s, number, rate, changed)) idle_rounds_ = 0;
    };
    sharing_.update(now_s, noted);
    ledger_.check_load(now_s);
  }
  [[nodiscard]] double next_end() {
    const double next = sharing_.next_end();
    if (next >= 0) return next;
    sharing_ledger::refuse_next_end(next);
  }
  /// Throws invalid_model where transfers are under way that the sharing never ends.
  void check_nothing_left(double now_s) const { ledger_.check_nothing_left(now_s); }
  void finish_until(double time_s, const transfer_finished& finished) {
    std::vector<std::uint32_t> ended;
    const transfer_finished noted = [&](std::uint32_t number) {
      ledger_.end(time_s, number);
      ended.push_back(number);
    };
    sharing_.finish_until(time_s, noted);
    ledger_.check_next_end(time_s, sharing_.next_end());
    idle_rounds_ = ended.empty() ? idle_rounds_ + 1 : 0;
    if (idle_rounds_ > most_idle_rounds) sharing_ledger::refuse_idleness(time_s, most_idle_rounds);
    std::sort(ended.begin(), ended.end());
    for (const std::uint32_t number : ended) finished(number);
  }
  [[nodiscard]] double left(std::uint32_t number, double now_s) const { return ledger_.left(number, now_s); }

 private:
  static constexpr int most_idle_rounds = 100'000;

  Sharing sharing_;
  sharing_ledger ledger_;
  int idle_rounds_ = 0;  ///< ends that came to nothing, one after the other
};

}  // namespace hetplan::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/simulate/guarded_sharing.ipp>
#endif
