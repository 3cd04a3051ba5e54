// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Prescribed rates of transfers, such as a linear program's solution, for a replay.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <hetplan/cluster/network_sharing.hpp>
#include <hetplan/simulate/simulation.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan {

/// Transfers under way: what each has left to move, and when it ends. A network_sharing sets the rates.
///
/// Units       seconds, bytes, B/s.
/// Complexity  O(1) to start a transfer, to set a rate and to find one; O(transfers) for the next end and to end some.
/// Rounding    a transfer at rate 0 with at most 1e-6 of its volume left has ended.
class transfers_under_way {
 public:
  struct flow {
    std::uint32_t number;
    const tasks::transfer* transfer;
    std::span<const resource_use> route;
    double remaining, since, rate;  ///< `remaining` bytes at the time `since`

    [[nodiscard]] double left(double now_s) const;
    [[nodiscard]] double end_s() const;
  };

  void start(double now_s, std::uint32_t number, const tasks::transfer& t, std::span<const resource_use> route);
  /// Sets a rate and calls `changed` if it is a new one.
  void set_rate(double now_s, std::uint32_t number, double rate, const rate_changed& changed);
  /// Ends a transfer, finished or not.
  void stop(std::uint32_t number);

  [[nodiscard]] double next_end() const;
  /// Removes the transfers that end by a time and reports them in order of their numbers.
  void finish_until(double time_s, const transfer_finished& finished);

  /// Returns null if the transfer is not under way.
  [[nodiscard]] const flow* find(std::uint32_t number) const;
  /// Iterates over transfers in the order of their starts.
  [[nodiscard]] auto begin() const { return flows_.begin(); }
  [[nodiscard]] auto end() const { return flows_.end(); }
  [[nodiscard]] std::size_t size() const { return flows_.size(); }

 private:
  static constexpr std::uint32_t nowhere = ~std::uint32_t{0};

  void number_from(std::size_t place);

  std::vector<flow> flows_;
  std::vector<std::uint32_t> place_of_;  ///< by number: index in flows_
};

namespace detail {

/// Capacities of resources, and the load of transfers on them.
class resource_load {
 public:
  struct excess {
    std::size_t resource;
    double taken, capacity;
  };
  explicit resource_load(std::span<const resource> resources);
  void set_capacity(std::size_t r, double capacity) { capacity_[r] = capacity; }
  [[nodiscard]] double capacity_of(std::size_t r) const { return capacity_[r]; }
  /// Returns the first resource whose capacity is exceeded by more than a millionth; less is rounding.
  [[nodiscard]] std::optional<excess> exceeded_by(const transfers_under_way& flows);

 private:
  static constexpr double too_much = 1e-6;
  std::vector<double> capacity_, taken_;
};

}  // namespace detail

/// Prescribed rates: from the time of a change on, a transfer drains at its rate, or waits at rate 0. At its start the last change counts.
///
/// No device can set bandwidth like this; prescribed rates show what a schedule without that limit would reach.
/// Source  semantics, section 6 (`prescribed`).
struct prescribed {
  std::vector<rate_change> rates;  ///< in time order
};

/// Network sharing of prescribed rates. It applies the changes and checks them against capacities.
/// Complexity: a change costs the transfers under way and their resources. Rounding: as in transfers_under_way.
class prescribed_sharing {
 public:
  prescribed_sharing(const network& net, const prescribed& given);

  [[nodiscard]] route_access access() const { return route_access::shared; }
  void start(double now_s, std::uint32_t number, const tasks::transfer& t, std::span<const resource_use> route) {
    flows_.start(now_s, number, t, route);
  }
  void set_capacity(std::size_t r, double capacity) { load_.set_capacity(r, capacity); }
  /// Throws invalid_input if the rates exceed a capacity.
  void update(double now_s, const rate_changed& changed);
  /// Returns the time of the next end or change of a rate.
  [[nodiscard]] double next_end() const;
  void finish_until(double time_s, const transfer_finished& finished);
  [[nodiscard]] double left(std::uint32_t number, double now_s) const { return flows_.find(number)->left(now_s); }

 private:
  std::vector<rate_change> rates_;  ///< in time order; those before next_ have taken effect
  std::size_t next_ = 0;
  std::vector<double> rate_of_;  ///< by number
  transfers_under_way flows_;
  detail::resource_load load_;
};

static_assert(check_network_sharing<prescribed_sharing>());

namespace detail {

/// Throws invalid_input for background transfers, which have no prescribed rates, and for a rate that is invalid or names no transfer.
void check_rates(const prescribed& p, std::size_t transfers, const simulator_options& options);

}  // namespace detail

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/simulate/prescribed.ipp>
#endif
