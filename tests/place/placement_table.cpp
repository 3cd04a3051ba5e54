// SPDX-License-Identifier: BSL-1.0
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/place/operator_schedule.hpp>
#include <hetplan/place/partial_schedule.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/simulate/simulation.hpp>
#include <hetplan/simulate/simulator.hpp>
#include <hetplan/tasks/expand_placement.hpp>
#include <support/random_tables.hpp>

namespace test_placement_table {

using namespace hetplan;
using namespace hetplan::place;
using Catch::Matchers::Contains;

std::vector<std::size_t> drawn_devices(const placement_table& t, std::uint64_t seed) {
  support::draws draw(seed + 1000);
  std::vector<std::size_t> device;
  for (std::size_t i = 0; i < t.size(); ++i) device.push_back(draw.below(t.devices()));
  return device;
}

operator_schedule in_order(const placement_table& t, const placement_rules& r, const std::vector<std::size_t>& device) {
  return schedule_in_order(t, r, {t.order().begin(), t.order().end()}, device);
}

/// Two operators, an edge of 8 bytes, two devices.
placement_data two() {
  return {.operators = {"a", "b"},
          .devices = {"x", "y"},
          .edges = {{0, 1, 8}},
          .time_s = {1, 2, 3, 4},
          .held_bytes = {5, 6},
          .capacity_bytes = {10, 10},
          .pairs = {{}, {0.5, 0.25, {0}}, {1, 0.5, {0}}, {}},
          .resources = 1};
}

/// Three layers of which two read the first's output, on two devices and one wire each way.
planning_graph fork() {
  planning_graph_builder b("fork");
  const auto a = b.add_layer({.name = "a", .forward_flops = 2_GFLOP, .weight = 4_MB});
  const auto l = b.add_layer({.name = "l", .forward_flops = 3_GFLOP, .weight = 2_MB, .activation = 1_MB});
  const auto r = b.add_layer({.name = "r", .forward_flops = 3_GFLOP, .weight = 2_MB});
  b.add_edge(a, l, 10_MB);
  b.add_edge(a, r, 20_MB);
  return std::move(b).build();
}

cluster pair_of_devices() {
  return cluster("pair",
                 {{.name = "x", .memory = 100_MB, .compute = flops_per_second(1e12)},
                  {.name = "y", .memory = 100_MB, .compute = flops_per_second(5e11)}},
                 mesh{bytes_per_second(1e9), 1_ms});
}

TEST_CASE("a transfer of a placement table takes its pair's latency and its bytes, none on one device") {
  const placement_table t(two());
  CHECK(t.transfer_s(0, 0, 1) == 2.5);
  CHECK(t.transfer_s(0, 1, 0) == 5);
  CHECK(t.transfer_s(0, 1, 1) == 0);
  CHECK(t.output_s(0, 0, 1) == 2.5);
  CHECK(t.output_s(1, 0, 1) == 0);
  CHECK(t.fastest_s(1) == 3);
}

TEST_CASE("given times of edges take the place of bytes, and a pair without route sends nothing") {
  placement_data d = two();
  d.edge_time_s = {0, 7, 9, 0};
  CHECK(placement_table(d).transfer_s(0, 0, 1) == 7);
  d = two();
  d.pairs[1].s_per_byte = std::numeric_limits<double>::infinity();
  d.edges[0].bytes = 0;
  CHECK(std::isinf(placement_table(d).transfer_s(0, 0, 1)));
  CHECK(placement_table(d).transfer_s(0, 1, 0) == 1);
}

TEST_CASE("a placement table says which of its numbers is wrong") {
  const auto broken = [](auto&& change) {
    placement_data d = two();
    change(d);
    return d;
  };
  const auto fails = [](const placement_data& d, const std::string& what) {
    CHECK_THROWS_WITH(placement_table(d), Contains("placement table: ") && Contains(what));
  };
  fails(broken([](auto& d) { d.operators.clear(); }), "at least one operator");
  fails(broken([](auto& d) { d.devices.clear(); }), "at least one device");
  fails(broken([](auto& d) { d.time_s.pop_back(); }), "expected 4 seconds of operators on devices, got 3");
  fails(broken([](auto& d) { d.time_s[2] = -1; }), "number 2: expected a number in [0, 1e+100], or infinity, got -1");
  fails(broken([](auto& d) { d.held_bytes[0] = std::nan(""); }),
        "bytes that operators hold, number 0: expected a number in [0, 1e+100], got nan");
  fails(broken([](auto& d) { d.edges.push_back({1, 0, 0}); }), "expected no cycle, got one through \"");
  fails(broken([](auto& d) { d.edges.push_back({0, 1, 3}); }), "expected every edge once, got \"a\" -> \"b\" again");
  fails(broken([](auto& d) { d.edges.push_back({0, 2, 3}); }), "expected two of 2 operators");
  fails(broken([](auto& d) { d.pairs[1].resources = {1}; }), "0 -> 1: names resource 1");
  fails(broken([](auto& d) { d.pairs[1].latency_s = std::numeric_limits<double>::infinity(); }),
        "0 -> 1: expected latency_s in [0, 1e+100], got inf");
  fails(broken([](auto& d) { d.time_s[0] = 1e308; }), "number 0: expected a number in [0, 1e+100]");
  fails(broken([](auto& d) { d.pairs.pop_back(); }), "expected 4 pairs of devices, got 3");
}

TEST_CASE("every schedule in a drawn order keeps all rules, and the simulator gives its makespan again") {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    // Half of them with many operators that take no time, which start together with others.
    const unsigned shortest_s = seed % 2 == 0 ? 1 : 0, longest_s = seed % 2 == 0 ? 9 : 2;
    const placement_table t =
        support::random_table(seed, {.operators = 4 + seed % 9, .devices = 2 + seed % 3, .shortest_s = shortest_s, .longest_s = longest_s});
    const auto device = drawn_devices(t, seed);
    for (const contention c : all_contentions) {
      for (const transfer_copies copies : {transfer_copies::per_edge, transfer_copies::per_device}) {
        CAPTURE(seed, to_string(c), to_string(copies));
        const placement_rules rules{c, copies};
        const operator_schedule s = in_order(t, rules, device);
        CHECK(find_broken_rule(t, rules, s).value_or("") == "");
        const tasks::placement_tasks run = tasks::expand(t, rules, s);
        const trace ran = simulate(run.graph, run.cluster.network(), policy_of_plan{policy_of(c)});
        CHECK(ran.latency.value() == Approx(s.makespan_s).epsilon(1e-9));
      }
    }
  }
}

TEST_CASE("the check of a schedule finds each rule that is broken") {
  const placement_table t(two());
  const placement_rules rules;
  const operator_schedule right = in_order(t, rules, {0, 1});
  REQUIRE(right.makespan_s == 7.5);
  const auto finds = [&](auto&& change, const std::string& what) {
    operator_schedule s = right;
    change(s);
    CHECK_THAT(find_broken_rule(t, rules, s).value_or(""), Contains(what));
  };
  finds([](auto& s) { s.device.pop_back(); }, "a device and a start for each of 2 operators");
  finds([](auto& s) { s.device[0] = 2; }, "is on no device");
  finds([](auto& s) { s.transfers.clear(); }, "no transfer carries the data");
  finds([](auto& s) { s.transfers[0].end_s = 3; }, "takes another time");
  finds([](auto& s) { s.start_s[1] = 3, s.makespan_s = 7; }, "starts before the data");
  finds([](auto& s) { s.makespan_s = 7; }, "the makespan is not the last end");
  finds([](auto& s) { s.transfers.push_back(s.transfers[0]); }, "runs twice");
  finds([](auto& s) { s.transfers[0].start_s -= 1, s.transfers[0].end_s -= 1; }, "starts before its producer ends");
  const operator_schedule together = in_order(t, rules, {0, 0});
  CHECK_THAT(find_broken_rule(t, rules, together).value_or(""), Contains("more than it has memory"));
  CHECK(largest_overflow_bytes(t, {0, 0}) == 1);
  CHECK(largest_overflow_bytes(t, {0, 1}) == -4);
}

TEST_CASE("the table of a problem has the simulator's times, and the plan of a schedule its makespan") {
  const planning_graph model = fork();
  const cluster c = pair_of_devices();
  const planning_problem problem{model, c, roofline{}, job{.workload = {.mode = mode::inference}, .batch = 2}};
  const auto blocks = coarsen::each_layer(model);
  const placement_table t = make_placement_table(problem, blocks);
  CHECK(t.time_s(0, 0) == Approx(4e-3));
  CHECK(t.time_s(0, 1) == Approx(8e-3));
  CHECK(t.edges()[1].bytes == 40e6);
  CHECK(t.transfer_s(0, 0, 1) == Approx(21e-3));
  CHECK(t.working_bytes(1) == 2e6);
  for (const contention k : all_contentions) {
    for (const transfer_copies copies : {transfer_copies::per_edge, transfer_copies::per_device}) {
      CAPTURE(to_string(k), to_string(copies));
      const placement_rules rules{k, copies};
      const operator_schedule s = in_order(t, rules, {0, 1, 1});
      const plan p = plan_of(problem, blocks, t, rules, s, "by hand");
      const judgement j = judge(p, model, c, problem.cost);
      CHECK(j.evaluation.latency.value() == Approx(s.makespan_s).epsilon(1e-9));
      // The output crosses twice, on one wire in turn unless nothing contends; or once, all of it.
      const double sent = copies == transfer_copies::per_edge ? 60e6 : 40e6;
      CHECK(j.graph.volume().value() == sent);
    }
  }
}

TEST_CASE("what takes no time runs before what starts with it, in the plan, too") {
  planning_graph_builder b("idle");
  const auto a = b.add_layer({.name = "a", .forward_flops = 1_GFLOP});
  const auto long_one = b.add_layer({.name = "long", .forward_flops = 2_GFLOP});
  const auto idle = b.add_layer({.name = "idle", .forward_flops = flops(1e-9)});
  const auto d = b.add_layer({.name = "d", .forward_flops = 5_GFLOP});
  b.add_edge(a, long_one, bytes(0));
  b.add_edge(a, idle, bytes(0));
  b.add_edge(idle, d, bytes(0));
  const planning_graph model = std::move(b).build();
  const cluster c = pair_of_devices();
  const planning_problem problem{model, c, roofline{}, job{.workload = {.mode = mode::inference}, .batch = 1}};
  const auto blocks = coarsen::each_layer(model);
  const placement_table t = make_placement_table(problem, blocks);
  const placement_rules rules{contention::none, transfer_copies::per_edge};
  const operator_schedule s = schedule_in_order(t, rules, {0, 2, 1, 3}, {0, 0, 0, 1});
  CHECK(s.start_s[1] == s.start_s[2]);
  CHECK(judge(plan_of(problem, blocks, t, rules, s, "by hand"), model, c, problem.cost).evaluation.latency.value() ==
        Approx(s.makespan_s).epsilon(1e-9));
}

TEST_CASE("a job that is not inference has no placement table") {
  const planning_graph model = fork();
  const cluster c = pair_of_devices();
  CHECK_THROWS_WITH(make_placement_table({model, c, roofline{}, job{}}), Contains("expected a job of mode inference, got training"));
}

}  // namespace test_placement_table
