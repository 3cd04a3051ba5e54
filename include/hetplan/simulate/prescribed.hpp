// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Rates that somebody else decided: the answer of a linear program, replayed.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <hetplan/cluster/network_sharing.hpp>
#include <hetplan/simulate/simulator_options.hpp>
#include <hetplan/simulate/trace.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan {

// The books of a network sharing: what every transfer under way has left to move, and when it ends.

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

/// Given rates: from a change's time on its transfer drains at that rate, or waits at rate 0.
/// A transfer that is not under way yet finds the rate of its last change when it starts.
///
/// No device can set bandwidth like this; it shows what a schedule without that limit would reach.
/// Source  semantics, section 6 (`prescribed`).
struct prescribed {
  std::vector<rate_change> rates;  ///< in time order
};

/// The network sharing of given rates: it only adds up what it is told, and checks that it fits.
///
/// Complexity: a change costs the transfers under way and their resources.
/// Rounding: a transfer whose rate changes to 0 when no more than 1e-6 of its volume is left has ended.
class prescribed_sharing {
 public:
  prescribed_sharing(const network& net, const prescribed& given);

  [[nodiscard]] route_access access() const { return route_access::shared; }
  void start(double now_s, std::uint32_t number, const tasks::transfer& t, std::span<const resource_use> route) {
    flows_.start(now_s, number, t, route);
  }
  void set_capacity(std::size_t r, double capacity) { load_.set_capacity(r, capacity); }
  /// Throws invalid_input where the rates need more than a resource has.
  void update(double now_s, const rate_changed& changed);
  /// The next end or change.
  [[nodiscard]] double next_end() const;
  void finish_until(double time_s, const transfer_finished& finished);
  /// Bytes that a transfer under way has not moved by now.
  [[nodiscard]] double left(std::uint32_t number, double now_s) const { return flows_.find(number)->left(now_s); }

 private:
  std::vector<rate_change> rates_;  ///< in time order; those before next_ count
  std::size_t next_ = 0;
  std::vector<double> rate_of_;  ///< by number
  transfers_under_way flows_;
  detail::resource_load load_;
};

static_assert(check_network_sharing<prescribed_sharing>());

namespace detail {

/// Throws invalid_input for a prescribed rate that names no transfer or is no rate, and for transfers that have none.
void check_rates(const prescribed& p, std::size_t transfers, const simulator_options& options);

}  // namespace detail

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/simulate/prescribed.ipp>
#endif
