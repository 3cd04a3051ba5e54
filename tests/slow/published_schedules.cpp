// SPDX-License-Identifier: BSL-1.0
// All published configurations of zero-bubble schedules at equal memory.

#include <algorithm>
#include <cstddef>

#include <catch2/catch.hpp>

#include <hetplan/schedule/automatic_orders.hpp>
#include <hetplan/schedule/order_rules.hpp>
#include <hetplan/schedule/partial_orders.hpp>

#include "support/zero_bubble_rows.hpp"

namespace test_published_schedules {

using namespace hetplan;
using namespace hetplan::test;
using namespace hetplan::schedule;

namespace {

void require_no_worse(const pipeline_times& p, double memory, double published, double bound) {
  INFO(p.stages.size() << " stages, " << p.microbatches << " microbatches, memory " << memory);
  const found_by_search found = automatic_orders(p, {.steps = 60'000'000});
  const order_timeline run = replay_orders(p, found.orders);
  REQUIRE(run.ends);
  CHECK(*std::max_element(run.peaks.begin(), run.peaks.end()) <= memory);
  CHECK(run.longest_span() == Approx(found.value).epsilon(1e-12));
  CHECK(found.value <= published * (1 + zero_bubble_rounding));
  CHECK(found.value >= bound * (1 - 1e-12));
}

}  // namespace

TEST_CASE("no published zero-bubble schedule is better at equal memory, and none is below the bound") {
  for (const zero_bubble_row& r : zero_bubble_rows()) {
    for (std::size_t column = 0; column < r.cost.size(); ++column) {
      require_no_worse(r.pipeline(column), r.memory(column), r.cost[column], r.bound[column]);
    }
  }
}

TEST_CASE("no published V schedule is better at equal memory") {
  for (const zero_bubble_row& r : zero_bubble_rows()) {
    for (const v_schedule v : {v_schedule::zero_bubble, v_schedule::half, v_schedule::least}) {
      const double published = r.v_cost[static_cast<std::size_t>(v)], held = static_cast<double>(held_by(v, r.forward.size()));
      const double work = 2 * (r.forward[0] + r.backward_input[0] + r.backward_weight[0]) * r.microbatches;
      if (published > 0) require_no_worse(r.v_pipeline(held), held, published, work);
    }
  }
}

}  // namespace test_published_schedules
