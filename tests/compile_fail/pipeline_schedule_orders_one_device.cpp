// SPDX-License-Identifier: BSL-1.0
// expect: pipeline_schedule needs: hetplan::schedule::orders_by_device orders(const hetplan::schedule::pipeline_times&) const
#include <vector>

#include <hetplan/schedule/order_plan.hpp>

struct my_schedule {
  std::vector<hetplan::order_entry> orders(const hetplan::schedule::pipeline_times&) const { return {}; }
};
static_assert(hetplan::schedule::check_pipeline_schedule<my_schedule>());
