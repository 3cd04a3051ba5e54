// SPDX-License-Identifier: BSL-1.0
// expect: observer needs: hetplan::control operator()(const Event&) for an event of this call
#include <hetplan/core/observer.hpp>

struct event {};
struct my_observer {
  bool operator()(const event&) { return true; }
};
static_assert(hetplan::check_observer<my_observer, event>());
