// SPDX-License-Identifier: BSL-1.0
// Dora where devices may share tensors.

#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/hetplan.hpp>
#include <hetplan/recipes/dora.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

#include "support/small_problem.hpp"

namespace test_dora_grids {

using namespace hetplan;

namespace {

/// A board that reads weights at so many GB/s.
device board(const std::string& name, double gigabytes) {
  device d;
  d.name = name;
  d.memory = 8_GB;
  d.compute = flops_per_second(gigabytes * 4e9);
  d.memory_bandwidth = bytes_per_second(gigabytes * 1e9);
  return d;
}

cluster on_gigabit(std::vector<device> devices) { return {"lan", std::move(devices), star{bytes_per_second(1e9 / 8), seconds(0.2e-3)}}; }

double between_tokens_s(const planning_graph& m, const cluster& c, bool split, plan* best = nullptr) {
  job wanted;
  wanted.workload.mode = mode::generation;
  wanted.workload.context = 256;
  wanted.batch = 1;
  wanted.split_tensors = split;
  const planning_problem problem{m, c, roofline{}, wanted};
  const plan_result r = recipes::dora(problem, minimize_response{}, 3);
  REQUIRE(!r.plans.empty());
  if (best != nullptr) *best = r.plans.front().plan;
  return r.plans.front().evaluation.time_between_tokens->value();
}

}  // namespace

TEST_CASE("dora splits the tensors of one sequence over the boards of a LAN") {
  const planning_graph m = zoo::model("qwen3-1.7b", {.tokens = 1});
  struct row {
    const char* what;
    std::vector<double> gigabytes;
    double least_gain;
  };
  for (const row& r : {row{"2 equal boards", {8, 8}, 1.4}, row{"4 equal boards", {8, 8, 8, 8}, 1.5}, row{"2 and 1", {16, 8}, 1.1},
                       row{"3, 1, 1 and 1", {24, 8, 8, 8}, 1.05}}) {
    std::vector<device> devices;
    for (const double g : r.gigabytes) devices.push_back(board("b" + std::to_string(devices.size()), g));
    const cluster c = on_gigabit(devices);
    plan best;
    const double without = between_tokens_s(m, c, false), with = between_tokens_s(m, c, true, &best);
    WARN(r.what << ": " << without * 1e3 << " ms without, " << with * 1e3 << " ms with: " << without / with << " x, " << best.stages.size()
                << " stages, columns of the first " << best.stages.front().column_count());
    CHECK(without >= r.least_gain * with);
  }
}

TEST_CASE("home devices over gigabit Ethernet: split tensors beat the best plan without") {
  std::vector<device> home{zoo::device("rtx4050", "laptop", zoo::link::wire), zoo::device("jetson-nx", "nx", zoo::link::wire),
                           zoo::device("jetson-tx2", "tx2", zoo::link::wire)};
  for (device& d : home) d.launch = {};
  const planning_graph m = zoo::model("llama3-8b", {.tokens = 1});
  const cluster c = on_gigabit(home);
  plan best;
  const double without = between_tokens_s(m, c, false), with = between_tokens_s(m, c, true, &best);
  WARN("home: " << without * 1e3 << " ms without, " << with * 1e3 << " ms with: " << without / with << " x, " << best.stages.size()
                << " stages");
  CHECK(with <= without / 1.2);
}

TEST_CASE("a model that no pipeline of two boards can hold fits where they share its largest layer") {
  const planning_graph m = [] {
    planning_graph_builder b("one large layer");
    b.add_layer({.name = "in", .forward_flops = flops(1)});
    b.add_layer({.name = "large", .forward_flops = flops(1e9), .weight = 10_GB});
    b.add_layer({.name = "out", .forward_flops = flops(1)});
    b.add_edge("in", "large", bytes(1e3));
    b.add_edge("large", "out", bytes(1e3));
    return std::move(b).build();
  }();
  const cluster c = on_gigabit({board("a", 8), board("b", 8)});
  job wanted;
  wanted.workload.mode = mode::inference;
  wanted.batch = 1;
  CHECK(recipes::dora(planning_problem{m, c, roofline{}, wanted}, minimize_latency{}).plans.empty());
  wanted.split_tensors = true;
  const planning_problem problem{m, c, roofline{}, wanted};
  const plan_result r = recipes::dora(problem, minimize_latency{});
  REQUIRE(!r.plans.empty());
  CHECK(r.status.ok());
  CHECK(r.plans.front().plan.stages.front().column_count() == 2);
  job training{.batch = 2, .split_tensors = true};  // in training, in the orders of a schedule
  training.workload.optimizer_factor = 0;
  training.orders = {order_rule::eager};
  training.only_orders = true;
  device a = board("a", 8), b = board("b", 8);
  a.memory = b.memory = 18_GB;
  const cluster larger = on_gigabit({a, b});
  const plan_result ordered = recipes::dora(planning_problem{m, larger, roofline{}, training}, minimize_latency{});
  INFO(ordered.status.reason);
  REQUIRE(!ordered.plans.empty());
  CHECK(ordered.plans.front().plan.schedule.kind == schedule_kind::explicit_orders);
  CHECK(ordered.plans.front().plan.stages.front().column_count() == 2);
}

TEST_CASE("allowed to split tensors, dora is never worse, and twice the same") {
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 30; ++seed) {
    INFO("seed " << seed);
    test::small_problem drawn(seed, true);
    planning_problem plain = drawn.problem();
    planning_problem split = drawn.problem();
    split.job.split_tensors = true;
    const objective_of_job objective(plain.job);
    const plan_result a = recipes::dora(plain, objective, 3), b = recipes::dora(split, objective, 3);
    if (a.plans.empty()) continue;
    REQUIRE(!b.plans.empty());
    CHECK(score(objective, b.plans.front().evaluation) <= score(objective, a.plans.front().evaluation) * (1 + 1e-9));
    CHECK(recipes::dora(split, objective, 3).plans == b.plans);
  }
}

}  // namespace test_dora_grids
