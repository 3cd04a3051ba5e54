// SPDX-License-Identifier: BSL-1.0
#pragma once
/// One number of an evaluated plan by which plans are compared: the door for criteria, and the five that ship.
///
/// An objective says which plan is best. Criteria are for those who keep several (`pareto_set`) and decide later.
///
/// Source  response time and energy: Dora, section 4.3 and Fig. 7; the others are ours.

#include <concepts>

#include <hetplan/core/id.hpp>
#include <hetplan/plan/evaluation.hpp>

namespace hetplan::mix {

template <class C>
concept values_evaluation = requires(const C& c, const evaluation& e) {
  { c.value(e) } -> std::same_as<double>;  // smaller is better; not NaN; pure
};
template <class C>
concept criterion = values_evaluation<C>;

template <class C>
consteval bool check_criterion() {
  static_assert(values_evaluation<C>, "criterion needs: double value(const hetplan::evaluation&) const, smaller is better");
  return criterion<C>;
}

/// T, or the time between tokens in generation [s].
struct response_time {
  [[nodiscard]] double value(const evaluation& e) const { return e.response().value(); }
};
/// Energy of all devices [J].
struct total_energy {
  [[nodiscard]] double value(const evaluation& e) const { return e.energy().value(); }
};
/// Energy of one device [J]. Throws invalid_input for a device that the evaluation does not have.
struct device_energy {
  device_id device;
  [[nodiscard]] double value(const evaluation& e) const;
};
/// Peak memory of the device that needs most [B].
struct peak_memory {
  [[nodiscard]] double value(const evaluation& e) const { return e.peak_memory().value(); }
};
/// Bytes over all resources, each as often as it crosses one [B].
struct bytes_moved {
  [[nodiscard]] double value(const evaluation& e) const;
};

static_assert(check_criterion<response_time>() && check_criterion<total_energy>() && check_criterion<device_energy>() &&
              check_criterion<peak_memory>() && check_criterion<bytes_moved>());

}  // namespace hetplan::mix

#ifndef HETPLAN_COMPILED
#include <hetplan/mix/criterion.ipp>
#endif
