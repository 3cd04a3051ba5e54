// SPDX-License-Identifier: BSL-1.0
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/stage_graph.hpp>
#include "support.hpp"

namespace test_stages_and_orders {

using namespace plan_tests;

namespace {

/// Returns a graph: a feeds b, c and d; b and c feed d; e is isolated.
planning_graph fan() {
  planning_graph_builder b("fan");
  for (const char* name : {"a", "b", "c", "d", "e"}) b.add_layer({.name = name, .forward_flops = 1_GFLOP});
  b.add_edge("a", "b", 10_B, 1_B);
  b.add_edge("a", "c", 30_B, 0_B);
  b.add_edge("a", "d", 20_B, 5_B);
  b.add_edge("b", "d", 7_B);
  b.add_edge("c", "d", 8_B, 0_B);
  return std::move(b).build();
}

plan stages(std::vector<std::vector<int>> layers) { return stage_per_device(layers, 1, 4); }

std::string text(const stage_graph& g) {
  std::string all;
  for (const stage_edge& e : g.edges) {
    all += (all.empty() ? "" : ", ") + std::to_string(e.from.value) + "->" + std::to_string(e.to.value) + " " +
           to_text(e.forward_cut.value()) + "/" + to_text(e.backward_cut.value());
  }
  return all;
}
std::vector<int> depths(const stage_graph& g) {
  std::vector<int> all;
  for (const auto& n : g.nodes) all.push_back(n.depth);
  return all;
}
std::vector<int> order_of(const stage_graph& g) {
  std::vector<int> all;
  for (const stage_id s : g.topological) all.push_back(s.value);
  return all;
}
std::string device_text(const plan& p, const planning_graph& g, std::size_t device) {
  return plan_tests::text(device_orders(p, make_stage_graph(p, g), 4)[device]);
}

}  // namespace

TEST_CASE("a tensor that several layers of a stage read crosses once, the largest edge counts, there and back alike") {
  // From a into {b, c, d}: max(10, 30, 20) forward, max(1, 0, 5) backward.
  CHECK(text(make_stage_graph(stages({{0}, {1, 2, 3, 4}}), fan())) == "0->1 30/5");
  // Edges from a into {b, d} and into {c}; b and c are two producers of d's stage, and their edges add up.
  CHECK(text(make_stage_graph(stages({{0}, {2}, {1, 3, 4}}), fan())) == "0->1 30/0, 0->2 20/5, 1->2 8/0");
  CHECK(text(make_stage_graph(stages({{0}, {1, 2}, {3, 4}}), fan())) == "0->1 30/1, 0->2 20/5, 1->2 15/7");
  CHECK(text(make_stage_graph(stages({{0, 1, 2, 3, 4}}), fan())).empty());
}

TEST_CASE("stage edges are ordered by (from, to) and indexed at both ends") {
  const stage_graph g = make_stage_graph(stages({{3}, {0}, {1}, {2, 4}}), fan());
  CHECK(text(g) == "1->0 20/5, 1->2 10/1, 1->3 30/0, 2->0 7/7, 3->0 8/0");
  CHECK(g.nodes[1].out == std::vector<std::size_t>{0, 1, 2});
  CHECK(g.nodes[0].in == std::vector<std::size_t>{0, 3, 4});
  CHECK(g.nodes[2].in == std::vector<std::size_t>{1});
  CHECK(g[stage_id(2)].out == std::vector<std::size_t>{3});
  CHECK(g.acyclic());
}

TEST_CASE("depth counts the stages on the longest path to a sink, and the smallest ready stage comes first") {
  const stage_graph g = make_stage_graph(stages({{3}, {0}, {1}, {2}, {4}}), fan());
  CHECK(depths(g) == std::vector<int>{1, 3, 2, 2, 1});
  CHECK(order_of(g) == std::vector<int>{1, 2, 3, 0, 4});  // stage 0 is ready before stage 4
  CHECK(depths(make_stage_graph(stages({{0}, {1}, {2}, {3}}), chain(4))) == std::vector<int>{4, 3, 2, 1});
}

TEST_CASE("a cycle of stages leaves the topological order short") {
  const stage_graph g = make_stage_graph(stages({{0, 3}, {1}, {2}, {4}}), fan());
  CHECK_FALSE(g.acyclic());
  CHECK(order_of(g) == std::vector<int>{3});
}

TEST_CASE("stages inherit their microbatches from plan and pipeline, and pipelines do not feed each other") {
  plan p = stage_per_device({{0, 1}, {2}, {0}, {1, 2}}, 2, 6, {2, 4, 1, 2});
  p.pipelines = {8, 4};
  p.stages[2].pipeline = p.stages[3].pipeline = 1;
  const stage_graph g = make_stage_graph(p, chain(3));
  const auto is = [&](std::size_t s, int size, int count, long long first) {
    CHECK(g.nodes[s].microbatch_size == size);
    CHECK(g.nodes[s].microbatches == count);
    CHECK(g.nodes[s].first_sample == first);
  };
  is(0, 2, 4, 0);
  is(1, 4, 2, 0);
  is(2, 1, 4, 8);
  is(3, 2, 2, 8);
  CHECK(text(g) == "0->1 1e+06/1e+06, 2->3 1e+06/1e+06");
  CHECK(p.batch() == 12);
}

TEST_CASE("GPipe runs all forwards, then all backwards") {
  plan p = stages({{0}, {1}});
  p.schedule.kind = schedule_kind::gpipe;
  for (const std::size_t device : {0U, 1U}) CHECK(device_text(p, chain(2), device) == "F0 F1 F2 F3 B0 B1 B2 B3");
  CHECK(device_text(p, chain(2), 2).empty());
}

TEST_CASE("1F1B warms up with 2 depth - 1 forwards, then alternates, then runs the rest") {
  plan p = stage_per_device({{0}, {1}, {2}}, 1, 6);
  CHECK(device_text(p, chain(3), 0) == "F0 F1 F2 F3 F4 B0 F5 B1 B2 B3 B4 B5");
  CHECK(device_text(p, chain(3), 1) == "F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 B4 B5");
  CHECK(device_text(p, chain(3), 2) == "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5");
}

TEST_CASE("1F1B takes the warm-up that the plan gives, at most all microbatches") {
  plan p = stage_per_device({{0}, {1}}, 1, 3);
  p.schedule.warmup = {2, 1};
  CHECK(device_text(p, chain(2), 0) == "F0 F1 B0 F2 B1 B2");
  CHECK(device_text(p, chain(2), 1) == "F0 B0 F1 B1 F2 B2");
  p.schedule.warmup = {100, 3};
  CHECK(device_text(p, chain(2), 0) == "F0 F1 F2 B0 B1 B2");
}

TEST_CASE("outside training there are forwards only") {
  plan p = stage_per_device({{0}, {1}}, 1, 3);
  for (const mode m : {mode::inference, mode::generation}) {
    p.workload.mode = m;
    CHECK(device_text(p, chain(2), 0) == "F0 F1 F2");
  }
}

TEST_CASE("every device of a stage has the stage's order; explicit orders are taken as they are") {
  plan p = stage_per_device({{0}, {1}}, 2, 2);
  p.stages[0].devices = {{device_id(0)}, {device_id(3)}};
  CHECK(device_text(p, chain(2), 3) == device_text(p, chain(2), 0));
  CHECK(device_text(p, chain(2), 3) == "F0 F1 B0 B1");
  p.schedule.kind = schedule_kind::explicit_orders;
  p.schedule.orders = {order("F1 F0 B0 W0 B1 W1")};
  CHECK(device_text(p, chain(2), 0) == "F1 F0 B0 W0 B1 W1");
  CHECK(device_text(p, chain(2), 3).empty());
}

TEST_CASE("the default warm-up follows depth where sizes are equal, whatever the plan's size") {
  for (const int size : {1, 3}) {
    const plan p = stage_per_device({{0}, {1}, {2}, {3}}, size, 20);
    CHECK(resolve_warmup(p, make_stage_graph(p, chain(4))) == std::vector<int>{7, 5, 3, 1});
  }
}

TEST_CASE("the default warm-up of a small-batch producer is raised to what its consumer needs") {
  // Microbatch sizes 1 and 8 of 16 samples: 2 depth - 1 = 3 forwards cannot fill one microbatch of 8.
  const plan p = stage_per_device({{0}, {1}}, 1, 16, {1, 8});
  const stage_graph g = make_stage_graph(p, chain(2));
  CHECK(resolve_warmup(p, g) == std::vector<int>{8, 1});
  CHECK_FALSE(warmup_suffices(g.nodes[0], 7, g.nodes[1], 1));
  // Without a returning gradient, no warm-up is raised.
  CHECK(resolve_warmup(p, make_stage_graph(p, chain(2, {0}))) == std::vector<int>{3, 1});
}

TEST_CASE("the 1F1B rule by hand") {
  const auto node = [](int size, int count) { return stage_graph::node{.microbatch_size = size, .microbatches = count}; };
  // Equal sizes: min(K_s, M) >= min(K_t, M).
  CHECK(warmup_suffices(node(2, 5), 3, node(2, 5), 3));
  CHECK_FALSE(warmup_suffices(node(2, 5), 2, node(2, 5), 3));
  CHECK(warmup_suffices(node(2, 5), 5, node(2, 5), 50));
  CHECK_FALSE(warmup_suffices(node(2, 5), 4, node(2, 5), 50));
  // 12 samples in sizes 2 and 3: the first backward of s needs the first backward of t, hence 3 samples.
  CHECK(warmup_suffices(node(2, 6), 2, node(3, 4), 1));
  CHECK_FALSE(warmup_suffices(node(2, 6), 1, node(3, 4), 1));
  // Sizes 4 and 1: the first backward of s waits for the fourth backward of t, before which t ran 4 forwards.
  CHECK(warmup_suffices(node(4, 2), 1, node(1, 8), 1));
  CHECK_FALSE(warmup_suffices(node(4, 2), 1, node(1, 8), 2));
}

}  // namespace test_stages_and_orders
