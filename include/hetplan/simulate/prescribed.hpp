// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Rates that somebody else decided: the answer of a linear program, replayed.

#include <cstdint>
#include <span>
#include <vector>

#include <hetplan/simulate/simulator_options.hpp>
#include <hetplan/simulate/trace.hpp>
#include <hetplan/simulate/transfers_under_way.hpp>

namespace hetplan {

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

#ifndef HETPLAN_COMPILED
#include <hetplan/simulate/prescribed.ipp>
#endif
