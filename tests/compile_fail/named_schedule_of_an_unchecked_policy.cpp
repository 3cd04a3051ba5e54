// SPDX-License-Identifier: BSL-1.0
// expect: dispatch_policy needs: std::optional<std::size_t> next(const hetplan::dispatch_view&) const
#include <hetplan/schedule/order_plan.hpp>

struct my_policy {
  int next(const hetplan::dispatch_view&) const { return 0; }
};
const hetplan::schedule::named_schedule mine("mine", my_policy{});
