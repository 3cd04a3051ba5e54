// SPDX-License-Identifier: BSL-1.0
// expect: failure_detector needs: hetplan::seconds seen(hetplan::seconds at) const
#include <hetplan/adapt/environment.hpp>

struct my_detector {
  hetplan::seconds noticed(hetplan::seconds at) const { return at + hetplan::seconds(3); }
};
static_assert(hetplan::adapt::check_failure_detector<my_detector>());
