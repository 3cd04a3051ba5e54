// SPDX-License-Identifier: BSL-1.0
// expect: dispatch_policy needs: std::optional<std::size_t> next(const hetplan::dispatch_view&) const
#include <hetplan/simulate/dispatch.hpp>

struct my_policy {
  std::size_t next(const hetplan::dispatch_view&) const { return 0; }
};
hetplan::plan dispatched(const hetplan::plan& p, const hetplan::planning_problem& problem) {
  return hetplan::dispatch(p, problem, my_policy{});
}
