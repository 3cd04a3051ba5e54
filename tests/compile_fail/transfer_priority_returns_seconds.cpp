// SPDX-License-Identifier: BSL-1.0
// expect: transfer_priority needs: double urgency(const hetplan::tasks::transfer&, const hetplan::schedule::transfer_times&) const
#include <hetplan/core/quantity.hpp>
#include <hetplan/schedule/transfer_priority.hpp>

struct my_priority {
  hetplan::seconds urgency(const hetplan::tasks::transfer&, const hetplan::schedule::transfer_times& when) const {
    return hetplan::seconds(when.tail_s);
  }
};
static_assert(hetplan::schedule::check_transfer_priority<my_priority>());
