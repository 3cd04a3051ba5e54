// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The least power at which plans, mixed without switching costs, work at a given rate; and the price of work.

#include <cstddef>
#include <optional>
#include <vector>

#include <hetplan/mix/mixing.hpp>

namespace hetplan::mix {

/// The lower convex hull of (rate, power) of plans and of idling, from idling to the fastest plan.
///
/// Every rate on it is a mixture of the two neighbouring corners. Prices, the slopes, rise along it. Of plans with the same
/// rate the one with the least power counts, then the smallest index; plans of rate 0 are left out.
///
/// Complexity  O(n log n) to build, O(log n) per question.
/// Throws      invalid_input (check_plan_rates).
/// Source      the closed form of Dora's eqs 7-8 without switching costs: an LP with these two rows has its answer on the
///             hull of the columns.
class rate_hull {
 public:
  struct corner {
    std::optional<std::size_t> plan;  ///< none: idling
    double rate = 0;
    double power_W = 0;
  };

  explicit rate_hull(const plan_rates& rates);

  [[nodiscard]] const std::vector<corner>& corners() const { return corners_; }
  [[nodiscard]] double fastest() const { return corners_.back().rate; }
  /// Joules per unit of work between corners k and k + 1, beyond what idling takes.
  [[nodiscard]] double slope(std::size_t k) const;
  /// The corner before which a rate in [0, fastest] lies: rate(k) < rate <= rate(k + 1); 0 for 0.
  [[nodiscard]] std::size_t segment(double rate) const;
  /// Least power of a mixture that works at `rate`; infinite beyond the fastest.
  [[nodiscard]] double power_W(double rate) const;
  /// What the last unit of work costs at a rate [J]: of the first segment at 0, infinite beyond the fastest or without plans.
  [[nodiscard]] double price_J(double rate) const;

 private:
  void build(const std::vector<plan_rate>& plans, double idle_W);
  /// b is on the line from a to c or above it.
  static bool above(const corner& a, const corner& b, const corner& c);

  std::vector<corner> corners_ = {};
};

/// The best mixture when switching is free, off the hull: the two corners beside the average rate asked for, the faster
/// first unless the slower one runs. Work that costs more than `shortfall_J` is left undone.
///
/// Complexity  O(n log n).
/// Throws      invalid_input (check_mixing); the table of switching costs is not read.
/// Source      Dora, section 4.3, eqs 7-8 with d = 0, in closed form.
[[nodiscard]] mixture mix_on_hull(const plan_rates& rates, const mixing_goal& goal);

}  // namespace hetplan::mix

#ifndef HETPLAN_COMPILED
#include <hetplan/mix/rate_hull.ipp>
#endif
