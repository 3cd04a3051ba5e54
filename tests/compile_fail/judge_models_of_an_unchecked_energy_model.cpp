// SPDX-License-Identifier: BSL-1.0
// expect: energy_model needs: hetplan::joules energy(const hetplan::device_usage&, const hetplan::device&) const
#include <hetplan/problem/planning_problem.hpp>

using namespace hetplan;

struct my_energy {
  watts energy(const device_usage&, const device& d) const { return d.power.active; }
};
const judge_models wrong{.energy = my_energy{}};
