// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The books of a network sharing: what every transfer under way has left to move, and when it ends.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <hetplan/problem/network_sharing.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan {

/// Transfers that drain, each at a rate of its own; who sets the rates is a network_sharing.
///
/// Units       seconds, bytes, B/s.
/// Complexity  O(1) to start one, to set a rate and to find one; O(all) for the next end and to end some.
/// Rounding    a transfer at rate 0 that has no more than 1e-6 of its volume left has ended.
class transfers_under_way {
 public:
  struct flow {
    std::uint32_t number;
    const tasks::transfer* transfer;
    std::span<const resource_use> route;
    double remaining, since, rate;  ///< bytes that are left at `since`

    [[nodiscard]] double left(double now_s) const;
    [[nodiscard]] double end_s() const;
  };

  void start(double now_s, std::uint32_t number, const tasks::transfer& t, std::span<const resource_use> route);
  /// Tells `changed` where the rate is another one.
  void set_rate(double now_s, std::uint32_t number, double rate, const rate_changed& changed);
  /// Ends one, finished or not.
  void stop(std::uint32_t number);

  [[nodiscard]] double next_end() const;
  /// Takes those that end by then and tells of them in order of their numbers.
  void finish_until(double time_s, const transfer_finished& finished);

  /// Null where it is not under way.
  [[nodiscard]] const flow* find(std::uint32_t number) const;
  /// In the order of their starts.
  [[nodiscard]] auto begin() const { return flows_.begin(); }
  [[nodiscard]] auto end() const { return flows_.end(); }
  [[nodiscard]] std::size_t size() const { return flows_.size(); }

 private:
  static constexpr std::uint32_t nowhere = ~std::uint32_t{0};

  void number_from(std::size_t place);

  std::vector<flow> flows_;
  std::vector<std::uint32_t> place_of_;  ///< by number, in flows_
};

namespace detail {

/// Resources and what transfers take of them.
class resource_load {
 public:
  struct excess {
    std::size_t resource;
    double taken, capacity;
  };
  explicit resource_load(std::span<const resource> resources);
  void set_capacity(std::size_t r, double capacity) { capacity_[r] = capacity; }
  [[nodiscard]] double capacity_of(std::size_t r) const { return capacity_[r]; }
  /// The first resource of which transfers take more than it has; a millionth of it is rounding.
  [[nodiscard]] std::optional<excess> exceeded_by(const transfers_under_way& flows);

 private:
  static constexpr double too_much = 1e-6;
  std::vector<double> capacity_, taken_;
};

}  // namespace detail

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/simulate/transfers_under_way.ipp>
#endif
