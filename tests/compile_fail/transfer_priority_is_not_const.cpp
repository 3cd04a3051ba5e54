// SPDX-License-Identifier: BSL-1.0
// expect: transfer_priority needs: double urgency(const hetplan::tasks::transfer&, const hetplan::schedule::transfer_times&) const
#include <hetplan/schedule/transfer_priority.hpp>

struct my_priority {
  double urgency(const hetplan::tasks::transfer&, const hetplan::schedule::transfer_times& when) { return last = when.tail_s; }
  double last = 0;
};
static_assert(hetplan::schedule::check_transfer_priority<my_priority>());
