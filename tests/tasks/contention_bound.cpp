// SPDX-License-Identifier: BSL-1.0
// The contention bound of a plan against the simulator.

#include <hetplan/tasks/task_graph.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include <catch2/catch.hpp>

#include "support/by_hand.hpp"
#include "support/random_cep.hpp"
#include "support/random_instance.hpp"

using namespace hetplan;
using namespace hetplan::test;

TEST_CASE("the contention bound by hand: latency belongs to the head, weights to the work, and a release counts") {
  const auto bound = [](transfers_alone x) {
    const tasks::task_graph g = std::move(x.builder).build();
    return tasks::contention_bound(g, x.joined.network()).value();
  };
  transfers_alone heads(4, {1});  // both ready at 1, then 2 + 3 s on one resource; alone, they end at 3 and 4
  heads.add(0, 1, 2, 0, {{0, 1}}, 0, 1);
  heads.add(2, 3, 3, 0, {{0, 1}}, 0, 1);
  CHECK(bound(heads) == near(6));
  transfers_alone released(4, {2});  // from 3 on: 4 bytes of weight 2 on a resource of 2 B/s, and 1 s more
  released.add(0, 1, 4, 3, {{0, 2}});
  released.add(2, 3, 2, 3, {{0, 1}});
  CHECK(bound(released) == near(8));
  transfers_alone twice(2, {1});  // a route with a repeated resource
  twice.add(0, 1, 2, 0, {{0, 1}, {0, 1}});
  CHECK(bound(twice) == near(4));

  // Two transfers of 1 s from 1 on, then tasks of 1 s and 5 s: bounds 1 + 1 + 5 and 1 + 2 + 1. The long tail first: 7.
  tasks::task_graph_builder b(3);
  const cluster c = wireless(3);
  const auto task = [&](int d, double s) {
    const auto t = b.add(tasks::compute_task{.stage = stage_id(0), .device = device_id(d), .duration_s = s});
    b.append_to_order(t);
    return t;
  };
  const auto first = task(0, 1), small = task(1, 1), large = task(2, 5);
  for (const auto& [to, after] : {std::pair(1, small), std::pair(2, large)}) {
    const auto t = b.add(tasks::transfer{.from = device_id(0),
                                         .to = device_id(to),
                                         .microbatch = to,
                                         .route = b.add_route(*c.network().find(device_id(0), device_id(to))),
                                         .volume_bytes = 1});
    b.depend(first, t);
    b.depend(t, after);
  }
  const tasks::task_graph g = std::move(b).build();
  CHECK(tasks::contention_bound(g, c.network()).value() == near(7));
  CHECK(tasks::schedule_bound(g, c.network()).value() == near(7));
}

TEST_CASE("the contention bound is at least the schedule bound, and often more") {
  int tighter = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 300; ++seed) {
    INFO("seed " << seed);
    const random_cep r = random_small_cep(seed, 3, 8);
    const double plain = tasks::schedule_bound(r.graph, r.cluster.network()).value();
    const double bound = tasks::contention_bound(r.graph, r.cluster.network()).value();
    REQUIRE(bound >= plain);
    tighter += bound > plain * 1.001;
  }
  CHECK(tighter >= 15);
}

TEST_CASE("no simulated run of a random plan beats its contention bound, whatever the network policy") {
  for_random_instances(25, [](const instance& i) {
    const cluster c = i.cluster();
    const tasks::task_graph g = tasks::expand(i.plan, i.model(), c, roofline{});
    const double bound = tasks::contention_bound(g, c.network()).value();
    REQUIRE(bound >= tasks::schedule_bound(g, c.network()).value());
    for (const sharing kind : {sharing::fair_share, sharing::priority, sharing::exclusive}) {
      INFO("policy " << to_string(kind));
      REQUIRE(simulate(g, c.network(), policy_of_plan{kind}).latency.value() >= bound * (1 - 1e-9));
    }
    // The judge's bound is equal without the plan's own releases: no schedule of the plan without transfer rules beats it either.
    const double judged = judge(i.plan, i.model(), c, roofline{}).evaluation.contention_bound.value();
    plan free = i.plan;
    free.schedule.transfers.clear();
    const bool released = std::any_of(g.transfers.begin(), g.transfers.end(), [](const tasks::transfer& t) { return t.release_s > 0; });
    if (released) REQUIRE(judged <= bound);
    else REQUIRE(judged == bound);
    for (const sharing kind : {sharing::fair_share, sharing::priority, sharing::exclusive}) {
      free.sharing_policy = kind;
      REQUIRE(judge(free, i.model(), c, roofline{}).evaluation.latency.value() >= judged * (1 - 1e-9));
    }
  });
}

TEST_CASE("no simulated run of a small random graph beats its contention bound, and some reach it") {
  int reached = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 300; ++seed) {
    INFO("seed " << seed);
    const random_cep r = random_small_cep(seed, 2, 8);
    const double bound = tasks::contention_bound(r.graph, r.cluster.network()).value();
    double best = std::numeric_limits<double>::infinity();
    for (const sharing kind : {sharing::fair_share, sharing::priority, sharing::exclusive}) {
      best = std::min(best, simulate(r.graph, r.cluster.network(), policy_of_plan{kind}).latency.value());
    }
    REQUIRE(best >= bound * (1 - 1e-9));
    reached += best <= bound * (1 + 1e-9);
  }
  CHECK(reached >= 100);
}
