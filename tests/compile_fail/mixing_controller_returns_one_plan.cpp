// SPDX-License-Identifier: BSL-1.0
// expect: mixing_controller needs: hetplan::mix::mixture operator()(const hetplan::mix::plan_rates&, const hetplan::mix::mixing_goal&)
// const
#include <hetplan/mix/mixing_controller.hpp>

using namespace hetplan;

struct my_controller {
  mix::mixture_part operator()(const mix::plan_rates&, const mix::mixing_goal& goal) const {
    return {.plan = 0, .seconds = goal.horizon_s};
  }
};
const mix::any_mixing_controller controller = my_controller{};
