// SPDX-License-Identifier: BSL-1.0
// expect: energy_model needs: hetplan::joules energy(const hetplan::device_usage&, const hetplan::device&) const
#include <hetplan/cost/energy_model.hpp>

struct my_model {
  hetplan::joules energy(const hetplan::device& d, const hetplan::device_usage& u) const { return d.power.active * u.busy; }
};
static_assert(hetplan::check_energy_model<my_model>());
