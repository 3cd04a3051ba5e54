// SPDX-License-Identifier: BSL-1.0
// expect: energy_model needs: hetplan::joules energy(const hetplan::device_usage&, const hetplan::device&) const
#include <hetplan/cost/energy_model.hpp>

struct my_model {
  auto energy(const hetplan::device_usage&, const hetplan::device& d) const { return d.power.active; }
};
static_assert(hetplan::check_energy_model<my_model>());
