// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Rates that somebody else decided: the answer of a linear program, replayed.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/simulate/network_policy.hpp>
#include <hetplan/simulate/trace.hpp>

namespace HETPLAN_NAMESPACE {

/// The network policy of given rates: from a change's time on its transfer drains at that rate, or waits at rate 0.
/// A transfer that is not under way yet finds the rate of its last change when it starts.
///
/// No device can set bandwidth like this; it shows what a schedule without that limit would reach.
/// Source  semantics, section 6 (`prescribed`).
struct prescribed {
  std::vector<rate_change> rates;  ///< in time order

  [[nodiscard]] int tier(const tasks::transfer&) const { return 0; }
  [[nodiscard]] route_access access() const { return route_access::shared; }
};
static_assert(check_network_policy<prescribed>());

/// fluid_network's counterpart under `prescribed`: it only adds up what it is told, and checks that it fits.
///
/// Complexity: a change costs the transfers under way and their resources.
/// Rounding: a transfer whose rate changes to 0 when no more than 1e-6 of its volume is left has ended.
class prescribed_network {
 public:
  explicit prescribed_network(std::span<const resource> resources);

  void start(double now, double volume_bytes, std::span<const resource_use> via, int /*tier*/, std::uint32_t tag);
  void set_capacity(std::size_t r, double capacity) { capacity_[r] = capacity; }

  /// From now on the transfer drains at this rate.
  void set_rate(std::uint32_t tag, double rate);

  /// Brings the rates up to date. Throws invalid_input where they need more than a resource has.
  template <class Changed>
  void update(double now, Changed&& changed) {
    std::fill(used_.begin(), used_.end(), 0);
    for (transfer& x : active_) {
      const double rate = x.tag < rate_of_.size() ? rate_of_[x.tag] : 0;
      for (const resource_use& u : x.via) used_[u.resource.index()] += u.weight * rate;
      if (rate == x.rate) continue;
      x.remaining = left(x, now);
      x.since = now;
      x.rate = rate;
      changed(x.tag, rate);
    }
    for (std::size_t r = 0; r < used_.size(); ++r) {
      if (used_[r] <= capacity_[r] * (1 + too_much)) continue;
      throw invalid_input("simulate: at " + to_text(now) + " s the prescribed rates take " + to_text(used_[r]) + " B/s of resource " +
                          std::to_string(r) + ", which has " + to_text(capacity_[r]) + " B/s");
    }
  }

  [[nodiscard]] double next_end() const;

  template <class Done>
  void finish_until(double time, Done&& done) {
    std::vector<std::uint32_t> finished;
    std::erase_if(active_, [&](const transfer& x) {
      if (end_of(x) > time) return false;
      finished.push_back(x.tag);
      return true;
    });
    std::sort(finished.begin(), finished.end());
    for (const std::uint32_t tag : finished) done(tag);
  }

 private:
  static constexpr double too_much = 1e-6;  ///< of a capacity
  static constexpr double forgiven = 1e-6;  ///< of a volume

  struct transfer {
    std::span<const resource_use> via;
    double volume, remaining, rate, since;
    std::uint32_t tag;
  };
  [[nodiscard]] static double left(const transfer& x, double now) { return std::max(0.0, x.remaining - x.rate * (now - x.since)); }
  /// When it ends at its rate; what its next rate would leave undone by rounding ends now.
  [[nodiscard]] double end_of(const transfer& x) const;

  std::vector<double> capacity_, used_, rate_of_;
  std::vector<transfer> active_;
};

namespace detail {

/// Throws invalid_input for a prescribed rate that names no transfer or is no rate.
void check_rates(const prescribed& p, std::size_t transfers);

}  // namespace detail

}  // namespace HETPLAN_NAMESPACE

#ifndef HETPLAN_COMPILED
#include <hetplan/simulate/prescribed.ipp>
#endif
