// SPDX-License-Identifier: BSL-1.0
// expect: objective needs: double score(seconds response, joules energy) const, non-decreasing in both
// expect: or: double score(const hetplan::evaluation&) const
#include <hetplan/plan/plan_result.hpp>

struct my_objective {
  hetplan::seconds score(const hetplan::evaluation& e) const { return e.latency; }
};
static_assert(hetplan::check_objective<my_objective>());
