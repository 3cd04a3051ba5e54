// SPDX-License-Identifier: BSL-1.0
// expect: pipeline_schedule needs: hetplan::schedule::orders_by_device orders(const hetplan::schedule::pipeline_times&) const
#include <hetplan/schedule/order_plan.hpp>

struct my_schedule {
  int orders(const hetplan::schedule::pipeline_times&) const { return 0; }
};
const hetplan::schedule::named_schedule mine("mine", my_schedule{});
