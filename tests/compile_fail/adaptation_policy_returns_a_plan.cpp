// SPDX-License-Identifier: BSL-1.0
// expect: adaptation_policy needs: hetplan::adapt::reaction react(const hetplan::adapt::situation&)
#include <hetplan/adapt/adaptation_policy.hpp>

struct my_policy {
  hetplan::plan react(const hetplan::adapt::situation& s) { return *s.running; }
};
static_assert(hetplan::adapt::check_adaptation_policy<my_policy>());
