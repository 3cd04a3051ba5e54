// SPDX-License-Identifier: BSL-1.0
// expect: no matching function
// expect: constraints not satisfied
#include <hetplan/simulate/simulator.hpp>

int main() {
  // A planner's event: the simulator sends none of it.
  const auto mine = [](const int&) { return hetplan::control::go; };
  const hetplan::trace t = hetplan::simulate({}, {}, hetplan::fair_share{}, {}, mine);
}
