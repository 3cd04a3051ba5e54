// SPDX-License-Identifier: BSL-1.0
// The realised critical chain: by hand, and invariants of all runs.

#include <hetplan/simulate/wait_states.hpp>

#include <catch2/catch.hpp>

#include <hetplan/simulate/simulator.hpp>

#include "support/by_hand.hpp"
#include "support/random_instance.hpp"

using namespace hetplan;
using namespace hetplan::test;

namespace {

void check_link(const critical_link& l, double start, double end, wait_reason why) {
  CHECK(l.start_s == near(start));
  CHECK(l.end_s == near(end));
  CHECK(l.why == why);
}

template <class Policy = fair_share>
std::vector<critical_link> chain_of(const tasks::task_graph& g, const transfers_alone& x, const Policy& policy = {}) {
  return critical_chain(g, simulate(g, x.joined.network(), policy), x.joined.network());
}

}  // namespace

TEST_CASE("the chain of a pipeline of two stages goes through the slow device and one transfer") {
  // F 1 s and 3 s per sample; 2 bytes at 1 B/s after 0.5 s. F0.0 0-1; its bytes 1.5-4.5, shared from 2.5 on; F1.0 4.5-7.5, F1.1 7.5-10.5.
  const planning_graph m = model_of({work_of("a", 1), work_of("b", 3)}, {{0, 1, 2}});
  const cluster c = wired(2, 0.5);
  const judgement j = judged(plan_of(mode::inference, 1, 2, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})}), m, c);
  const auto chain = critical_chain(j.graph, j.trace, c.network());
  REQUIRE(chain.size() == 4);
  check_link(chain[0], 0, 1, wait_reason::start_of_run);
  check_link(chain[1], 1, 4.5, wait_reason::input);
  check_link(chain[2], 4.5, 7.5, wait_reason::input);
  check_link(chain[3], 7.5, 10.5, wait_reason::device);
  CHECK(chain[0].because == no_node);
  for (std::size_t i = 1; i < chain.size(); ++i) CHECK(chain[i].because == chain[i - 1].node);
  CHECK(j.graph.is_transfer(chain[1].node));
  CHECK(chain[1].latency_s == near(0.5));
  CHECK(chain[1].own_s == near(2));
  CHECK(chain[1].lost_s == near(1));
  CHECK(chain[3].own_s == near(3));
}

TEST_CASE("transfers that share a medium lose seconds to each other") {
  // Both have 1 B/s until the short one ends at 2; the long one then has 1 of 3 bytes left and ends at 4: 1 s lost.
  transfers_alone x(4, {1});
  x.add(0, 1, 1, 0, {{0, 1}});
  x.add(2, 3, 3, 0, {{0, 1}});
  const tasks::task_graph g = std::move(x.builder).build();
  const auto chain = chain_of(g, x);
  REQUIRE(chain.size() == 1);
  check_link(chain[0], 0, 4, wait_reason::start_of_run);
  CHECK(chain[0].node == g.node_of_transfer(1));
  CHECK(chain[0].own_s == near(3));
  CHECK(chain[0].lost_s == near(1));
}

TEST_CASE("a release time holds a transfer back, a port makes it wait for the other transfer") {
  transfers_alone x(3, {1, 1});
  x.add(0, 1, 2, 1, {{0, 1}});  // released at 1; holds the out-port of d0 until 3
  x.add(0, 2, 1, 1, {{1, 1}});  // on its own wire but the same port: 3-4
  const tasks::task_graph g = std::move(x.builder).build();
  const auto chain = chain_of(g, x, exclusive_ports{});
  REQUIRE(chain.size() == 2);
  check_link(chain[0], 0, 3, wait_reason::release);
  CHECK(chain[0].held_s == near(1));
  CHECK(chain[0].own_s == near(2));
  check_link(chain[1], 3, 4, wait_reason::ports);
  CHECK(chain[1].because == chain[0].node);
  CHECK(chain[1].lost_s == 0);
}

TEST_CASE("per link a transfer waits for the one that held its route, though they share no port") {
  transfers_alone x(4, {1});
  x.add(0, 1, 2, 0, {{0, 1}});
  x.add(2, 3, 1, 0, {{0, 1}});
  const tasks::task_graph g = std::move(x.builder).build();
  const auto chain = chain_of(g, x, exclusive_links{});
  REQUIRE(chain.size() == 2);
  check_link(chain[0], 0, 2, wait_reason::start_of_run);
  check_link(chain[1], 2, 3, wait_reason::links);
  CHECK(chain[1].because == chain[0].node);
}

TEST_CASE("per link a transfer names the one that held its route, not one that left its port at the same time") {
  transfers_alone x(4, {1, 1});
  x.add(0, 1, 2, 0, {{0, 1}});  // same sender, another wire, 0-2
  x.add(2, 3, 2, 0, {{1, 1}});  // other devices, same wire as the last transfer, 0-2
  x.add(0, 3, 1, 0, {{1, 1}});
  const tasks::task_graph g = std::move(x.builder).build();
  const auto per_link = chain_of(g, x, exclusive_links{}), per_port = chain_of(g, x, exclusive_ports{});
  REQUIRE(per_link.size() == 2);
  check_link(per_link[1], 2, 3, wait_reason::links);
  CHECK(per_link[1].because == g.node_of_transfer(1));
  REQUIRE(per_port.size() == 2);
  check_link(per_port[1], 2, 3, wait_reason::ports);
  CHECK(per_port[1].because == g.node_of_transfer(0));
}

TEST_CASE("a device that slows down loses seconds, too") {
  const planning_graph m = model_of({work_of("a", 4)}, {});
  const cluster c = wired(1);
  // Full speed until 2, then half speed: the remaining 2 s of work take 4 s.
  const judgement j =
      judged(plan_of(mode::inference, 1, 1, {stage_of({0}, {{0, 1}})}), m, c, {.speeds = {{seconds(2), device_id(0), 0.5}}});
  const auto chain = critical_chain(j.graph, j.trace, c.network());
  REQUIRE(chain.size() == 1);
  CHECK(chain[0].own_s == near(4));
  CHECK(chain[0].lost_s == near(2));
}

TEST_CASE("of two inputs that arrive together the chain takes the smaller node") {
  const planning_graph m =
      model_of({work_of("a", 1), work_of("b", 2), work_of("c", 2), work_of("d", 1)}, {{0, 1, 1}, {0, 2, 1}, {1, 3, 1}, {2, 3, 1}});
  const cluster c = wired(4);
  const judgement j = judged(
      plan_of(mode::inference, 1, 1, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}}), stage_of({2}, {{2, 1}}), stage_of({3}, {{3, 1}})}),
      m, c);
  const auto chain = critical_chain(j.graph, j.trace, c.network());
  REQUIRE(chain.size() == 5);
  CHECK(j.graph.computes[chain[2].node].stage == stage_id(1));
  CHECK(chain == critical_chain(j.graph, j.trace, c.network()));
}

TEST_CASE("a run without anything has an empty chain") {
  CHECK(critical_chain(tasks::task_graph_builder(1).build(), trace{}, network{}).empty());
}

TEST_CASE("in every run the chain's links touch and add up to the latency") {
  for_random_instances(25, [](const instance& i) {
    const cluster c = i.cluster();
    const judgement j = judged(i.plan, i.model(), c);
    const auto chain = critical_chain(j.graph, j.trace, c.network());
    REQUIRE_FALSE(chain.empty());
    CHECK(chain.front().start_s == 0);
    CHECK(chain.front().because == no_node);
    CHECK(chain.back().end_s == j.trace.latency.value());
    double sum = 0;
    for (std::size_t k = 0; k < chain.size(); ++k) {
      const critical_link& l = chain[k];
      sum += l.duration_s();
      CHECK(l.held_s + l.latency_s + l.own_s + l.lost_s == near(l.duration_s()));
      for (const double part : {l.held_s, l.latency_s, l.own_s, l.lost_s}) CHECK(part >= 0);
      if (k == 0) continue;
      CHECK(l.start_s == chain[k - 1].end_s);
      CHECK(l.because == chain[k - 1].node);
      // Only a release time explains idle time.
      if (l.why != wait_reason::release) CHECK(l.held_s <= 1e-9 * j.trace.latency.value());
      if (j.graph.is_compute(l.node)) CHECK(l.lost_s <= 1e-9 * j.trace.latency.value());
    }
    CHECK(sum == near(j.trace.latency.value()));
  });
}
