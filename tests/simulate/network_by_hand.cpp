// SPDX-License-Identifier: BSL-1.0
// Transfers by hand: priorities, ports, chunks, release times, and changes over time.

#include <hetplan/simulate/simulator.hpp>
#include <hetplan/tasks/task_graph.hpp>

#include <catch2/catch.hpp>

#include "support/by_hand.hpp"

using namespace hetplan;
using namespace hetplan::test;

TEST_CASE("a later transfer of higher priority starves a lower one, which catches up") {
  transfers_alone x(4, {1});
  x.add(0, 1, 4, 0, {{0, 1}}, 1);
  x.add(2, 3, 2, 1, {{0, 1}}, 0);
  const trace t = std::move(x).run(by_priority{}, {.record = true});
  // The low one sends 1 byte in 0-1, nothing in 1-3, 3 bytes in 3-6; the high one has 1-3.
  check_interval(t.transfers[0], 0, 6);
  check_interval(t.transfers[1], 1, 3);
  const std::vector<rate_change> expected{{0, 0, 1}, {1, 0, 0}, {1, 1, 1}, {3, 1, 0}, {3, 0, 1}, {6, 0, 0}};
  CHECK(std::is_permutation(t.rates.begin(), t.rates.end(), expected.begin(), expected.end()));
}

TEST_CASE("a lower priority gets exactly what the higher ones leave") {
  // The high one has 1/4 because of a resource of 1/4. The two low ones share 3/4.
  transfers_alone x(8, {1, 0.25});
  x.add(0, 1, 1, 0, {{0, 1}, {1, 1}}, -2);
  x.add(2, 3, 1.5, 0, {{0, 1}}, 7);
  x.add(4, 5, 3, 0, {{0, 1}}, 7);
  const trace t = std::move(x).run(by_priority{});
  // At 4, the high one has sent its byte and the low ones 1.5 bytes each: the first low one ends; the other has 1.5 bytes left.
  check_interval(t.transfers[0], 0, 4);
  check_interval(t.transfers[1], 0, 4);
  check_interval(t.transfers[2], 0, 5.5);
}

TEST_CASE("priorities mean nothing under fair share") {
  transfers_alone x(4, {1});
  x.add(0, 1, 1, 0, {{0, 1}}, 1);
  x.add(2, 3, 1, 0, {{0, 1}}, 0);
  const trace t = std::move(x).run();
  check_interval(t.transfers[0], 0, 2);
  check_interval(t.transfers[1], 0, 2);
}

TEST_CASE("max-min fairness is fairness of rates, weighted resources or not") {
  // A repeated frame takes the air twice: 2 x + 1 x = 3, so both have rate 1. The third is limited to 0.5 by its wire; the others share the
  // remaining air: 2 x + x = 2.5.
  transfers_alone two(4, {3});
  two.add(0, 1, 2, 0, {{0, 2}});
  two.add(2, 3, 3, 0, {{0, 1}});
  const trace t = std::move(two).run();
  check_interval(t.transfers[0], 0, 2);
  check_interval(t.transfers[1], 0, 2 + 1.0 / 3);  // at rate 3 when alone
  CHECK(t.resource_bytes[0] == near(2 * 2 + 3));

  transfers_alone three(6, {3, 0.5});
  three.add(0, 1, 1, 0, {{0, 2}});
  three.add(2, 3, 1, 0, {{0, 1}});
  three.add(4, 5, 1, 0, {{0, 1}, {1, 1}});
  const trace u = std::move(three).run();
  // 2.5 / 3 each: 1.2 s; the third at 0.5: 2 s.
  check_interval(u.transfers[0], 0, 1.2);
  check_interval(u.transfers[1], 0, 1.2);
  check_interval(u.transfers[2], 0, 2);
}

TEST_CASE("a resource that a route lists twice counts twice") {
  const cluster c("twice", workers(2),
                  route_table{{{"air", bytes_per_second(1)}}, {{"*", "*", {{}, {{resource_id(0), 1}, {resource_id(0), 1}}}}}});
  const planning_graph m = model_of({work_of("a", 1), work_of("b", 1)}, {{0, 1, 3}});
  const judgement j = judged(plan_of(mode::inference, 1, 1, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})}), m, c);
  CHECK(j.evaluation.latency.value() == near(1 + 6 + 1));
  CHECK(j.evaluation.resource_bytes[0].value() == near(6));
}

namespace {
/// Each transfer has its own wire, so only ports can delay it.
struct ports_only {
  transfers_alone x{4, {1, 1, 1, 1}};
  int next = 0;
  void add(int from, int to, double volume, double release_s = 0, int priority = 0, double latency_s = 0) {
    x.add(from, to, volume, release_s, {{next++, 1}}, priority, latency_s);
  }
};
}  // namespace

TEST_CASE("exclusive ports: one transfer out and one in at a time, and later ones may pass") {
  ports_only w;
  w.add(0, 1, 4);  // holds d0's out-port and d1's in-port until 4
  w.add(0, 2, 1);  // waits for d0's out-port
  w.add(3, 2, 2);  // overtakes: both its ports are free
  w.add(2, 1, 1);  // waits for d1's in-port
  const trace t = std::move(w.x).run(exclusive_ports{});
  check_interval(t.transfers[0], 0, 4);
  check_interval(t.transfers[1], 4, 5);
  check_interval(t.transfers[2], 0, 2);
  check_interval(t.transfers[3], 4, 5);
}

TEST_CASE("exclusive ports are held through the latency and not given up to a higher priority") {
  ports_only w;
  w.add(0, 1, 2, 0, 5, 0.5);
  w.add(0, 2, 1, 1, 0, 0.5);  // more urgent, but the port is busy until 2.5
  w.add(0, 3, 1, 1, 2);
  const trace t = std::move(w.x).run(exclusive_ports{});
  check_interval(t.transfers[0], 0, 2.5);
  check_interval(t.transfers[1], 2.5, 4);
  check_interval(t.transfers[2], 4, 5);
}

TEST_CASE("exclusive ports are granted by priority, then microbatch") {
  ports_only w;
  w.add(0, 1, 1, 0, 1);
  w.add(0, 2, 1, 0, 1);
  w.add(0, 3, 1, 0, 0);
  const trace t = std::move(w.x).run(exclusive_ports{});
  check_interval(t.transfers[2], 0, 1);
  check_interval(t.transfers[0], 1, 2);
  check_interval(t.transfers[1], 2, 3);
}

TEST_CASE("exclusive ports: reductions come after all microbatches and among themselves by stage") {
  // The microbatch field of a reduction is only its stage's number of microbatches.
  const cluster c = wired(4);
  tasks::task_graph_builder b(4);
  const auto add = [&](transfer_kind kind, int stage, int microbatch, int to) {
    const auto route = b.add_route(*c.network().find(device_id(0), device_id(to)));
    b.add(tasks::transfer{.kind = kind,
                          .from = device_id(0),
                          .to = device_id(to),
                          .from_stage = stage_id(stage),
                          .to_stage = stage_id(stage),
                          .microbatch = microbatch,
                          .route = route,
                          .volume_bytes = 1});
  };
  add(transfer_kind::sync, 5, 1, 1);
  add(transfer_kind::sync, 3, 3, 2);
  add(transfer_kind::forward, 7, 9, 3);
  const tasks::task_graph g = std::move(b).build();
  const trace t = simulate(g, c.network(), exclusive_ports{});
  check_interval(t.transfers[2], 0, 1);
  check_interval(t.transfers[1], 1, 2);
  check_interval(t.transfers[0], 2, 3);
}

TEST_CASE("transfers that hold their ports still share a medium fairly") {
  transfers_alone x(4, {1});
  x.add(0, 1, 1, 0, {{0, 1}});
  x.add(2, 3, 2, 0, {{0, 1}});
  x.add(0, 3, 1, 0, {{0, 1}});
  const trace t = std::move(x).run(exclusive_ports{});
  // Two transfers at rate 1/2: the first ends at 2. The second has 1 byte left; the third needs d3's in-port: 3-4.
  check_interval(t.transfers[0], 0, 2);
  check_interval(t.transfers[1], 0, 3);
  check_interval(t.transfers[2], 3, 4);
}

namespace {

struct timed_transfer {
  int from, to;
  double volume, release_s;
  std::vector<std::pair<int, double>> via;  ///< (resource, weight)
  double begin_s, end_s;
  int priority = 0;
  double latency_s = 0;
};
void check_per_link(int devices, const std::vector<double>& capacities, const std::vector<timed_transfer>& transfers) {
  transfers_alone x(devices, capacities);
  for (const timed_transfer& t : transfers) x.add(t.from, t.to, t.volume, t.release_s, t.via, t.priority, t.latency_s);
  const trace found = std::move(x).run(exclusive_links{});
  for (std::size_t i = 0; i < transfers.size(); ++i) check_interval(found.transfers[i], transfers[i].begin_s, transfers[i].end_s);
}

}  // namespace

TEST_CASE("per link: a transfer waits for every resource of its route, and later ones may pass") {
  check_per_link(4, {1, 1, 1},
                 {{0, 1, 4, 0, {{0, 1}, {1, 1}}, 0, 4},
                  {2, 3, 2, 0, {{1, 1}, {2, 1}}, 7, 9},  // its ports are free, but the first holds one of its resources until 4
                  {2, 1, 3, 1, {{2, 2}}, 1, 7},          // overtakes at 0.5 B/s
                  {0, 1, 5, 0, {}, 0, 0}});              // a route without resources
}

TEST_CASE("per link: a route is held through the latency, by priority, and one port sends over several links") {
  check_per_link(3, {1, 1},
                 {{0, 1, 2, 0, {{0, 1}}, 0, 2.5, 5, 0.5},
                  {0, 1, 1, 1, {{0, 1}}, 3.5, 4.5, 3},
                  {0, 1, 1, 1, {{0, 1}}, 2.5, 3.5},
                  {0, 2, 3, 0, {{1, 1}}, 0, 3}});  // under exclusive ports, it would wait for d0's out-port
}

TEST_CASE("unlimited: every transfer has its peak rate, also when capacities change and others' traffic comes") {
  const auto run = [](const std::vector<capacity_change>& changes) {
    transfers_alone x(4, {2});
    x.add(0, 1, 4, 0, {{0, 1}}, 0, 0.5);
    x.add(2, 3, 4, 0, {{0, 2}});
    x.add(0, 1, 2, 1, {{0, 1}});
    return std::move(x).run(unlimited{}, {.capacities = changes});
  };
  const trace t = run({});
  check_interval(t.transfers[0], 0, 2.5);
  check_interval(t.transfers[1], 0, 4);
  check_interval(t.transfers[2], 1, 2);
  CHECK(t.resource_bytes[0] == near(4 + 8 + 2));
  const trace slower = run({{seconds(1.5), resource_id(0), bytes_per_second(1)}});  // 2, 2.5 and 1 B are left
  check_interval(slower.transfers[0], 0, 3.5);
  check_interval(slower.transfers[1], 0, 1.5 + 2.5 * 2);
  check_interval(slower.transfers[2], 1, 2.5);
}

TEST_CASE("the bounds of a plan ask nothing of resources that nobody shares") {
  // Two producers of 4 B each: 1 + 4 + 1 s without contention, 1 + 8 + 1 s on one medium.
  const planning_graph m = model_of({work_of("a", 1), work_of("b", 1), work_of("c", 1)}, {{0, 2, 4}, {1, 2, 4}});
  plan p = plan_of(mode::inference, 1, 1, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}}), stage_of({2}, {{2, 1}})});
  CHECK(judged(p, m, wireless(3)).evaluation.contention_bound.value() == near(10));
  for (const sharing s : {sharing::per_link, sharing::exclusive}) {
    p.sharing_policy = s;
    CHECK(judged(p, m, wireless(3)).evaluation.latency.value() == near(10));
  }
  p.sharing_policy = sharing::unlimited;
  const evaluation e = judged(p, m, wireless(3)).evaluation;
  CHECK(e.latency.value() == near(6));
  CHECK(e.schedule_bound.value() == near(6));
  CHECK(e.contention_bound.value() == near(6));
  CHECK(e.schedule_gap == 0);
  CHECK(
      judge(p, m, wireless(3), roofline{}, judge_models{plain_memory{}, linear_power{}, fair_share{}}).evaluation.schedule_bound.value() ==
      near(8));
  CHECK(e.resource_bytes[0].value() == near(8));
}

TEST_CASE("thousands of transfers that wait for one wire are granted in order") {
  // Sorting all waiting transfers in each round took 44 s for 16 000.
  constexpr int count = 16000;
  for (const bool links : {false, true}) {
    transfers_alone x(3, {1});
    for (int i = 0; i < count; ++i) x.add(i % 2, 2, 1, 0, {{0, 1}}, count - i);
    const trace t = links ? std::move(x).run(exclusive_links{}) : std::move(x).run(exclusive_ports{});
    for (int i = 0; i < count; i += 997) check_interval(t.transfers[static_cast<std::size_t>(i)], count - 1 - i, count - i);
  }
}

namespace {
struct chunked_plan {
  planning_graph model = model_of({work_of("a", 1), work_of("b", 1)}, {{0, 1, 3}});
  plan p = plan_of(mode::inference, 1, 1, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})});

  void rule(int chunk, int chunks, double release_s = 0, int priority = 0) {
    p.schedule.transfers.push_back({.from = device_id(0),
                                    .to = device_id(1),
                                    .from_stage = stage_id(0),
                                    .to_stage = stage_id(1),
                                    .chunk = chunk,
                                    .chunks = chunks,
                                    .release = seconds(release_s),
                                    .priority = priority});
  }
};
}  // namespace

TEST_CASE("chunks follow each other, pay the latency once and keep their release times") {
  chunked_plan x;
  x.rule(1, 3, 10);
  x.rule(0, 3);
  x.rule(2, 3, 5);
  const judgement j = judged(x.p, x.model, wired(2, 0.5));
  // The producer ends at 1. Chunks of 1 byte: 1.5-2.5; released at 10: 10-11; then 11-12, although released at 5.
  check_interval(sent(j, transfer_kind::forward, 0, 1, 0, 0), 1, 2.5);
  check_interval(sent(j, transfer_kind::forward, 0, 1, 0, 1), 10, 11);
  check_interval(sent(j, transfer_kind::forward, 0, 1, 0, 2), 11, 12);
  CHECK(j.evaluation.latency.value() == near(13));
  CHECK(j.evaluation.resource_bytes[0].value() == near(3));
}

TEST_CASE("without release times chunks change nothing") {
  chunked_plan x;
  for (int k = 0; k < 4; ++k) x.rule(k, 4);
  const judgement j = judged(x.p, x.model, wired(2, 0.5));
  CHECK(j.graph.transfers.size() == 4);
  CHECK(j.evaluation.latency.value() == near(1 + 0.5 + 3 + 1));
}

TEST_CASE("a release time delays a transfer, counted before its latency") {
  chunked_plan x;
  x.rule(0, 1, 2);
  const judgement j = judged(x.p, x.model, wired(2, 0.5));
  check_interval(sent(j, transfer_kind::forward, 0, 1), 2, 5.5);
  x.p.schedule.transfers[0].release = seconds(0.25);  // before the producer's end
  check_interval(sent(judged(x.p, x.model, wired(2, 0.5)), transfer_kind::forward, 0, 1), 1, 4.5);
}

TEST_CASE("the priorities of a plan work when its network says so") {
  // a feeds b (1 byte, priority 1) and c (2 bytes, priority 0) at 1 on one medium: c's transfer 1-3, b's 3-4.
  const planning_graph m = model_of({work_of("a", 1), work_of("b", 1), work_of("c", 1)}, {{0, 1, 1}, {0, 2, 2}});
  plan p = plan_of(mode::inference, 1, 1, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}}), stage_of({2}, {{2, 1}})});
  p.schedule.transfers = {{.from = device_id(0), .to = device_id(1), .from_stage = stage_id(0), .to_stage = stage_id(1), .priority = 1}};
  p.sharing_policy = sharing::priority;
  const judgement j = judged(p, m, wireless(3));
  check_interval(sent(j, transfer_kind::forward, 0, 2), 1, 3);
  check_interval(sent(j, transfer_kind::forward, 0, 1), 1, 4);
  p.sharing_policy = sharing::fair_share;
  check_interval(sent(judged(p, m, wireless(3)), transfer_kind::forward, 0, 1), 1, 3);
  p.sharing_policy = sharing::exclusive;  // at d0's out-port, c's transfer precedes b's
  const judgement k = judged(p, m, wireless(3));
  check_interval(sent(k, transfer_kind::forward, 0, 2), 1, 3);
  check_interval(sent(k, transfer_kind::forward, 0, 1), 3, 4);
}

TEST_CASE("a task goes on at the speed that its device has") {
  const planning_graph m = model_of({work_of("a", 3)}, {});
  const plan p = plan_of(mode::inference, 1, 2, {stage_of({0}, {{0, 1}})});
  const auto at = [](double t, double speed) { return speed_change{seconds(t), device_id(0), speed}; };
  // Half speed from 1 on: 1 + 2 / 0.5 = 5; the next one takes 6 s.
  const judgement half = judged(p, m, wired(1), {.speeds = {at(1, 0.5)}});
  check_interval(when(half, phase::forward, 0, 0), 0, 5);
  check_interval(when(half, phase::forward, 0, 1), 5, 11);
  CHECK(half.evaluation.devices[0].busy.value() == near(11));
  // A pause 1-2; double speed from 4 on, when the first task has ended.
  const judgement pause = judged(p, m, wired(1), {.speeds = {at(1, 0), at(2, 1), at(4, 2)}});
  check_interval(when(pause, phase::forward, 0, 0), 0, 4);
  check_interval(when(pause, phase::forward, 0, 1), 4, 5.5);
  // A change while idle sets the speed of later tasks.
  const judgement before = judged(p, m, wired(1), {.speeds = {at(0, 3)}});
  CHECK(before.evaluation.latency.value() == near(2));
}

TEST_CASE("a transfer goes on at the capacity that its resource has") {
  const auto at = [](double t, double capacity) { return capacity_change{seconds(t), resource_id(0), bytes_per_second(capacity)}; };
  const auto end = [&](const std::vector<capacity_change>& changes, double latency_s = 0) {
    transfers_alone x(2, {1});
    x.add(0, 1, 4, 0, {{0, 1}}, 0, latency_s);
    return std::move(x).run(fair_share{}, {.capacities = changes}).latency.value();
  };
  CHECK(end({}) == near(4));
  CHECK(end({at(2, 0.5)}) == near(6));
  CHECK(end({at(2, 0.5), at(4, 2)}) == near(4.5));
  CHECK(end({at(1, 0), at(3, 1)}) == near(6));
  CHECK(end({at(0, 2)}, 0.5) == near(2.5));
  CHECK(end({at(9, 2)}) == near(4));  // after the end of the run
  CHECK_THROWS_AS(end({at(1, 0)}), invalid_input);
}

TEST_CASE("background traffic takes its share") {
  // F 0-1, then 2 bytes from 1 on; 1 background byte is released at 1.5, latency 0.25, with weight 1 on the same medium.
  const cluster c = wireless(3);
  tasks::task_graph_builder b(3);
  tasks::compute_task a{.stage = stage_id(0), .device = device_id(0), .duration_s = 1};
  const auto first = b.add(a);
  b.append_to_order(first);
  const auto route = b.add_route(*c.network().find(device_id(0), device_id(1)));
  const auto mine = b.add(tasks::transfer{.from = device_id(0), .to = device_id(1), .route = route, .volume_bytes = 2});
  b.depend(first, mine);
  a.device = device_id(1);
  const auto second = b.add(a);
  b.append_to_order(second);
  b.depend(mine, second);
  b.add(tasks::transfer{.kind = transfer_kind::sync,
                        .from = device_id(2),
                        .to = device_id(1),
                        .route = route,
                        .volume_bytes = 1,
                        .latency_s = 0.25,
                        .release_s = 1.5});
  const tasks::task_graph g = std::move(b).build();
  const trace t = simulate(g, c.network());
  // Alone 1-1.75 (0.75 bytes); half each 1.75-3.75 while the background needs 2 s; then 0.25 bytes until 4. F 4-5.
  check_interval(t.transfers[1], 1.5, 3.75);
  check_interval(t.transfers[0], 1, 4);
  CHECK(t.latency.value() == near(5));
  CHECK(g.used == std::vector<char>{1, 1, 1});
  CHECK(t.received_bytes[1] == near(3));
}

TEST_CASE("a run that can never end says so") {
  tasks::task_graph_builder b(2);
  const auto x = b.add(tasks::compute_task{.stage = stage_id(0), .device = device_id(0), .duration_s = 1});
  const auto y = b.add(tasks::compute_task{.stage = stage_id(0), .device = device_id(1), .duration_s = 1});
  b.append_to_order(x);
  b.append_to_order(y);
  b.depend(x, y);
  b.depend(y, x);
  const tasks::task_graph g = std::move(b).build();
  CHECK_THROWS_WITH(simulate(g, wired(2).network()), Catch::Contains("device 0 waits forever"));
}

TEST_CASE("observers see every end in time order and may stop the run") {
  const planning_graph m = model_of({work_of("a", 1), work_of("b", 1)}, {{0, 1, 1}});
  const plan p = plan_of(mode::inference, 1, 3, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})});
  const tasks::task_graph g = tasks::expand(p, m, wired(2), roofline{});
  double last = 0;
  int tasks_seen = 0, transfers_seen = 0;
  const auto see_tasks = [&](const task_ended& e) {
    CHECK(e.when.end_s >= last);
    CHECK(e.when.end_s - e.when.start_s == near(e.task.duration_s));
    last = e.when.end_s;
    ++tasks_seen;
    return control::go;
  };
  const auto see_transfers = [&](const transfer_ended& e) {
    CHECK(e.when.end_s >= last);
    last = e.when.end_s;
    return ++transfers_seen == 2 ? control::stop : control::go;
  };
  const trace all = simulate(g, wired(2).network(), fair_share{}, {}, see_tasks);
  CHECK(all.status.ok());
  CHECK(tasks_seen == 6);
  last = 0;
  // Transfers end at 2 and 3; the run stops with the second end.
  const trace part = simulate(g, wired(2).network(), fair_share{}, {}, see_tasks, see_transfers);
  CHECK(part.status.result == outcome::stopped);
  CHECK(transfers_seen == 2);
  CHECK(part.latency.value() == near(3));
}
