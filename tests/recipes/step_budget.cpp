// SPDX-License-Identifier: BSL-1.0
#include <limits>
#include <string>

#include <catch2/catch.hpp>

#include <hetplan/hetplan.hpp>
#include <hetplan/recipes/asteroid.hpp>
#include <hetplan/recipes/dora.hpp>
#include <hetplan/search/ranking.hpp>

namespace test_step_budget {

using namespace hetplan;

namespace {

planning_graph four_layers() {
  planning_graph_builder layers("four");
  for (const char* name : {"a", "b", "c", "d"}) {
    layers.add_layer({.name = name, .forward_flops = 20_GFLOP, .weight = 80_MB, .activation = 5_MB});
  }
  for (int l = 1; l < 4; ++l) layers.add_edge(layer_id(l - 1), layer_id(l), 200_kB);
  return std::move(layers).build();
}

cluster three_devices() {
  return {"home",
          {{.name = "laptop", .memory = 6_GB, .compute = 9_TFLOP_per_s, .power = {8_W, 50_W}},
           {.name = "tablet", .memory = 4_GB, .compute = 4_TFLOP_per_s, .power = {2_W, 15_W}},
           {.name = "phone", .memory = 4_GB, .compute = 2_TFLOP_per_s, .power = {1_W, 8_W}}},
          shared_medium{600_Mbit_per_s, 2_ms}};
}

struct setting {
  planning_graph model = four_layers();
  cluster devices = three_devices();

  [[nodiscard]] auto problem(const job& wanted, long long steps = standard_steps) const {
    planning_problem p{model, devices, roofline{}, wanted};
    p.steps = steps;
    return p;
  }
};

job training_of(int batch) { return {.batch = batch}; }
job generation_of(int tokens) { return {.workload = {.mode = mode::generation, .tokens = tokens}, .batch = 4}; }

/// Relative error allowed when two short runs predict a long one.
constexpr double near = 0.01;

}  // namespace

TEST_CASE("runs that are not long are judged as they are, long ones by what every further microbatch or token adds") {
  const setting s;
  for (const job& wanted : {training_of(600), training_of(2000), generation_of(20), generation_of(600)}) {
    const auto problem = s.problem(wanted);
    for (const int size : {1, 4}) {
      plan p = blank_plan(problem, "mine", size);
      p.stages = {{.name = "s0", .layers = {layer_id(0), layer_id(1), layer_id(2)}, .devices = {{device_id(0), size}}},
                  {.name = "s1", .layers = {layer_id(3)}, .devices = {{device_id(1), size}}}};
      INFO(to_string(wanted.workload.mode) << ", " << p.microbatches << " microbatches, " << wanted.workload.tokens << " tokens");
      const judgement full = judge(p, s.model, s.devices, problem.cost);
      const quick_judgement quick = judge_quickly(problem, p);
      CHECK(quick.steps <= static_cast<long long>(full.graph.size()));
      if (!runs_long(p)) {
        CHECK(quick.evaluation == full.evaluation);
        continue;
      }
      CHECK(4 * quick.steps < static_cast<long long>(full.graph.size()));
      CHECK(quick.evaluation.latency / full.evaluation.latency == Approx(1).epsilon(near));
      CHECK(quick.evaluation.response() / full.evaluation.response() == Approx(1).epsilon(near));
      CHECK(quick.evaluation.energy() / full.evaluation.energy() == Approx(1).epsilon(near));
      CHECK(quick.evaluation.peak_memory().value() == Approx(full.evaluation.peak_memory().value()));
    }
  }
}

TEST_CASE("a prime batch of a thousand microbatches is planned in steps that do not grow with the candidates, and judged in full") {
  const setting s;
  const auto problem = s.problem(training_of(2003));
  const plan_result r = recipes::dora_partitioner(problem, minimize_latency{}, 2);
  REQUIRE(r.status.ok());
  REQUIRE(r.plans.size() == 2);
  for (const auto& [p, predicted] : r.plans) {
    evaluation e = judge(p, s.model, s.devices, problem.cost).evaluation;
    CHECK(predicted.latency == e.latency);
    CHECK(predicted.energy() == e.energy());
    CHECK(predicted.bound > 0_s);
  }
  const long long whole_runs = r.steps / (2 * 2003);  // runs of at least one stage
  CHECK(r.candidates > 20);
  CHECK(whole_runs < 3 * r.candidates);
}

TEST_CASE("every planner ends with its best plan, the bound and the limit that was hit where its budget is spent") {
  const setting s;
  const auto problem = s.problem(training_of(32), 1);
  const auto require_best_so_far = [&](const plan_result& r) {
    REQUIRE(r.plans.size() == 1);
    CHECK(r.plans.front().evaluation.bound > 0_s);
    CHECK(r.status.result == outcome::stopped);
    CHECK(r.out_of_steps);
    CHECK(r.status.reason.find("the budget of 1 step ended the search after ") == 0);
  };
  require_best_so_far(recipes::dora(problem, minimize_latency{}));
  require_best_so_far(recipes::dora_partitioner(problem, minimize_latency{}));
  require_best_so_far(recipes::pipeline(problem, minimize_latency{}));
  require_best_so_far(recipes::on_device(problem, minimize_latency{}));
  require_best_so_far(recipes::data_parallel(problem, minimize_latency{}));
  const plan_result view = recipes::asteroid(problem, minimize_latency{});
  CHECK(!view.plans.empty());
}

TEST_CASE("a budget that is spent gives the same answer for any number of threads") {
  const setting s;
  for (const long long steps : {50LL, 500LL, 5'000LL, 50'000LL, 200'000LL}) {
    const auto problem = s.problem(training_of(64), steps);
    const plan_result one = recipes::dora(problem, minimize_latency{}, 5);
    const plan_result three =
        recipes::dora(problem, minimize_latency{}, 5, {.partitioner = {.threads = 3}, .network = {.threads = 3}, .drafts = {.threads = 3}});
    INFO(steps << " steps");
    CHECK(one.plans == three.plans);
    CHECK(one.status == three.status);
    CHECK(one.steps == three.steps);
    CHECK(one.candidates == three.candidates);
  }
}

TEST_CASE("more steps never make the best plan worse, and enough of them are not noticed") {
  const setting s;
  double before = std::numeric_limits<double>::infinity();
  for (const long long steps : {1LL, 20'000LL, standard_steps}) {
    const plan_result r = recipes::dora(s.problem(training_of(16), steps), minimize_latency{}, 3);
    REQUIRE(!r.plans.empty());
    CHECK(r.plans.front().evaluation.latency.value() <= before);
    before = r.plans.front().evaluation.latency.value();
    CHECK(r.status.ok() == (steps == standard_steps));
  }
}

TEST_CASE("fewer than no steps are no budget") {
  const setting s;
  const auto with = [&](long long steps) { return planning_problem{s.model, s.devices, roofline{}, training_of(16), {}, {}, steps}; };
  CHECK_THROWS_WITH(with(-1), "planning_problem: steps = -1; expected an integer >= 0");
  CHECK_NOTHROW(with(0));
}

}  // namespace test_step_budget
