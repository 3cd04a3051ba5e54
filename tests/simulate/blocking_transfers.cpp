// SPDX-License-Identifier: BSL-1.0
// transfers: block, by hand: 1 FLOP/s devices and 1 B/s wires, so FLOP and bytes are seconds.

#include <hetplan/estimate/estimate.hpp>
#include <hetplan/plan/validate.hpp>
#include <hetplan/schedule/transfer_scheduler.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/simulate/wait_states.hpp>
#include <hetplan/tasks/task_graph.hpp>

#include <catch2/catch.hpp>

#include "support/by_hand.hpp"
#include "support/random_instance.hpp"

namespace test_blocking_transfers {

using namespace hetplan;
using namespace hetplan::test;

namespace {

/// Two layers of 1 s, 3 B between them there and 2 B back, each on a device of its own.
planning_graph two_layers() { return model_of({work_of("a", 1, 1, 1), work_of("b", 1, 1, 1)}, {{0, 1, 3, 2}}); }
plan blocking(mode how, int microbatches) {
  plan p = plan_of(how, 1, microbatches, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})});
  p.transfers = transfer_mode::block;
  return p;
}

}  // namespace

TEST_CASE("a transfer that blocks is part of its sender's task and of its receiver's, and shares nothing") {
  // 0.5 s of latency and 3 B: 1 + 3.5 s on d0, then 3.5 + 1 s on d1, twice. The transfers would overlap on one medium.
  for (const sharing how : all_sharings) {
    plan p = blocking(mode::inference, 2);
    p.sharing_policy = how;
    const judgement j = judged(p, two_layers(), wireless(2, 0.5));
    CHECK(j.evaluation.latency.value() == near(13.5));
    CHECK(j.trace.busy_s[0] == near(9));
    CHECK(j.trace.busy_s[1] == near(9));
    check_interval(sent(j, transfer_kind::forward, 0, 1, 0), 0, 4.5);
    check_interval(sent(j, transfer_kind::forward, 0, 1, 1), 4.5, 9);
    CHECK(j.evaluation.resource_bytes[0].value() == near(6));
    CHECK(j.trace.sent_bytes[0] == near(6));
    CHECK(j.evaluation.schedule_bound.value() == near(13.5));
    CHECK(j.evaluation.contention_bound.value() == near(13.5));
  }
}

TEST_CASE("in training gradients block, too, but for those that return nothing") {
  // F: 1 + 3, 3 + 1; B: 2 + 2 on d1, 2 + 2 on d0.
  const judgement j = judged(blocking(mode::training, 1), two_layers(), wired(2));
  CHECK(j.evaluation.latency.value() == near(16));
  check_interval(sent(j, transfer_kind::backward, 1, 0), 8, 12);
  const planning_graph silent = model_of({work_of("a", 1, 1, 1), work_of("b", 1, 1, 1)}, {{0, 1, 3, 0}});
  CHECK(judged(blocking(mode::training, 1), silent, wired(2)).evaluation.latency.value() == near(4 + 4 + 2));
}

TEST_CASE("reductions and tokens stay beside the work") {
  std::vector<layer_spec> layers{work_of("a", 1, 1, 1), work_of("b", 1, 1, 1)};
  layers[0].weight = bytes(4);
  const planning_graph m = model_of(std::move(layers), {{0, 1, 0, 0}});
  plan p = plan_of(mode::training, 2, 1, {stage_of({0}, {{0, 1}, {1, 1}}), stage_of({1}, {{2, 2}})});
  p.transfers = transfer_mode::block;
  const judgement training = judged(p, m, wired(3, 0.25));
  // F 1.25; stage 1 waits for both, one after the other: 0.5 + 2, then 4; the ring of 4 B after 1.25 + 2.
  check_interval(sent(training, transfer_kind::sync, 0, 1), 3.25, 3.25 + 0.25 + 4);
  CHECK(training.trace.busy_s[0] == near(3.25));

  plan g = blocking(mode::generation, 1);
  g.workload.tokens = 2;
  const judgement generation = judged(g, two_layers(), wired(2, 0.25));
  check_interval(sent(generation, transfer_kind::token, 1, 0, 0), 4.25 + 4.25, 8.5 + 0.25 + 4);
  CHECK(generation.evaluation.latency.value() == near(8.5 + 4.25 + 8.5));
}

TEST_CASE("what decides about transfers says that there is nothing to decide where they block") {
  const planning_graph m = two_layers();
  const cluster c = wired(2);
  plan p = blocking(mode::inference, 2);
  p.schedule.transfers = {{.from = device_id(0), .to = device_id(1), .from_stage = stage_id(0), .to_stage = stage_id(1), .priority = 1}};
  CHECK(validate(p, m, c).value().where == "/schedule/flows/0");
  CHECK_THAT(validate(p, m, c).value().what, Catch::Contains("transfers block"));
  p.schedule.transfers.clear();
  CHECK_FALSE(validate(p, m, c));
  const tasks::task_graph g = tasks::expand(p, m, c, roofline{});
  CHECK_THROWS_WITH(schedule::cep_graph(g, c.network()), Catch::Contains("part of its devices' work"));
  CHECK_THROWS_WITH(simulate(g, c.network(), fair_share{}, {.capacities = {{seconds(1), resource_id(0), bytes_per_second(2)}}}),
                    Catch::Contains("transfers block"));
  CHECK_THROWS_WITH(make_steps(p, m, c, roofline{}), Catch::Contains("overlap computing"));
  const planning_problem problem{m, c, roofline{}, job{.workload = {.mode = mode::inference}, .batch = 2}};
  const std::vector<plan> candidates{p};
  const plan_result refined = schedule::refine(problem, minimize_latency{}, candidates, 1);
  REQUIRE(refined.plans.size() == 1);
  CHECK(refined.plans[0].plan.transfers == transfer_mode::block);
  CHECK(refined.plans[0].plan.schedule.transfers.empty());
}

TEST_CASE("bounds hold and chains of waits are whole where transfers block") {
  for_random_instances(60, [](const instance& i) {
    plan p = i.plan;
    p.transfers = transfer_mode::block;
    p.schedule.transfers.clear();
    const cluster c = i.cluster();
    const judgement j = evaluate(p, i.model(), c, roofline{});
    const evaluation& e = j.evaluation;
    REQUIRE(e.contention_bound >= e.schedule_bound);
    REQUIRE(e.contention_bound.value() <= e.latency.value() * (1 + 1e-9));
    REQUIRE(e.bound.value() <= e.latency.value() * (1 + 1e-9));
    const auto chain = critical_chain(j.graph, j.trace, c.network());
    double end_s = 0;
    for (const critical_link& l : chain) {
      REQUIRE((!j.graph.is_transfer(l.node) || !j.graph.transfer_at(l.node).blocks()));
      REQUIRE(l.start_s == end_s);
      end_s = l.end_s;
    }
    REQUIRE(end_s == e.latency.value());
  });
}

}  // namespace test_blocking_transfers
