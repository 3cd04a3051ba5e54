// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Who fills a horizon with turns of plans: the door for mixing controllers, and the ones that ship.

#include <concepts>
#include <functional>
#include <utility>

#include <hetplan/core/require_function.hpp>
#include <hetplan/mix/mixing.hpp>
#include <hetplan/mix/mixing_program.hpp>
#include <hetplan/mix/rate_hull.hpp>
#include <hetplan/solve/any_lp_solver.hpp>

namespace hetplan::mix {

/// A callable that says which plans run in a horizon, in which order and for how long. Pure.
///
/// Source  Dora, section 4.3, whose linear program is one model of it; the door is our own.
template <class C>
concept mixing_controller = requires(const C& c, const plan_rates& rates, const mixing_goal& goal) {
  { c(rates, goal) } -> std::same_as<mixture>;
};

template <class C>
consteval bool check_mixing_controller() {
  static_assert(mixing_controller<C>,
                "mixing_controller needs: hetplan::mix::mixture operator()(const hetplan::mix::plan_rates&, const "
                "hetplan::mix::mixing_goal&) const");
  return mixing_controller<C>;
}

/// hetplan::mix::mix: what a switch costs, it costs however short the turn.
struct exact_mixing {
  [[nodiscard]] mixture operator()(const plan_rates& rates, const mixing_goal& goal) const { return mix(rates, goal); }
};
/// mix_on_hull: switching is free.
struct hull_mixing {
  [[nodiscard]] mixture operator()(const plan_rates& rates, const mixing_goal& goal) const { return mix_on_hull(rates, goal); }
};
/// mix_relaxed: the paper's linear program, switching in proportion to a plan's share.
struct program_mixing {
  any_lp_solver solver = {};  ///< without one it throws invalid_input
  [[nodiscard]] mixture operator()(const plan_rates& rates, const mixing_goal& goal) const;
};

/// Holds any controller by value; what it answers is checked. Of an empty one: invalid_input.
///
/// Complexity  that of the controller, and O(parts) for the check. Determinism: as the controller's.
class any_mixing_controller {
 public:
  template <class C>
    requires(!std::same_as<C, any_mixing_controller>)
  any_mixing_controller(C c) {
    static_assert(check_mixing_controller<C>());
    if constexpr (mixing_controller<C>) mix_ = std::move(c);
    require_function(mix_, "any_mixing_controller", "a mixing controller, such as exact_mixing{}");
  }

  /// Throws  invalid_input (check_mixing); invalid_model where an answer names a plan that is none, or a time that is negative or no
  ///         number, or where its parts and its idling take longer than the horizon.
  [[nodiscard]] mixture operator()(const plan_rates& rates, const mixing_goal& goal) const;

 private:
  std::function<mixture(const plan_rates&, const mixing_goal&)> mix_;
};

static_assert(check_mixing_controller<exact_mixing>() && check_mixing_controller<hull_mixing>() &&
              check_mixing_controller<program_mixing>() && check_mixing_controller<any_mixing_controller>());

}  // namespace hetplan::mix

#ifndef HETPLAN_COMPILED
#include <hetplan/mix/mixing_controller.ipp>
#endif
