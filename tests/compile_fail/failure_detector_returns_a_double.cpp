// SPDX-License-Identifier: BSL-1.0
// expect: failure_detector needs: hetplan::seconds noticed(hetplan::seconds at) const
#include <hetplan/adapt/environment.hpp>

struct my_detector {
  double noticed(hetplan::seconds at) const { return at.value() + 3; }
  hetplan::seconds seen(hetplan::seconds at) const { return at; }
};
static_assert(hetplan::adapt::check_failure_detector<my_detector>());
