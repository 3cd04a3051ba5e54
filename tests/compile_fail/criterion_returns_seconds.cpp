// SPDX-License-Identifier: BSL-1.0
// expect: criterion needs: double value(const hetplan::evaluation&) const, smaller is better
#include <hetplan/mix/mixing.hpp>

struct my_criterion {
  hetplan::seconds value(const hetplan::evaluation& e) const { return e.latency; }
};
static_assert(hetplan::mix::check_criterion<my_criterion>());
