// SPDX-License-Identifier: BSL-1.0
#include <hetplan/cost/cost_model.hpp>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/adapt/fixed_policies.hpp>
#include <hetplan/adapt/run.hpp>
#include <hetplan/cost/prefix_table.hpp>
#include <hetplan/estimate/bounds.hpp>
#include <hetplan/estimate/estimate.hpp>
#include <hetplan/hetplan.hpp>
#include <hetplan/plan/validate.hpp>
#include <hetplan/recipes/asteroid.hpp>
#include <hetplan/recipes/baselines.hpp>
#include <hetplan/recipes/dora_adapter.hpp>
#include <hetplan/zoo/models.hpp>

#include "support/three_devices.hpp"

namespace test_check_mode {

using namespace hetplan;

namespace {

const std::string said =
    "model \"toy\": layer \"b\" has attention \"full\"; expected prompt_chunk >= prompt (8), as its tokens see the whole prompt, got 4";

planning_graph toy(attention_kind sees) {
  planning_graph_builder b("toy", 4, 8);
  b.add_layer({.name = "a", .forward_flops = 1_GFLOP, .weight = 1_MB});
  b.add_layer({.name = "b", .forward_flops = 1_GFLOP, .weight = 1_MB, .sequence = {.attention = sees}});
  b.add_edge(layer_id(0), layer_id(1), 1_kB);
  return std::move(b).build();
}
workload in_chunks(mode how) { return {.mode = how, .tokens = 3, .prompt_chunk = 4}; }
job generating() { return {.workload = in_chunks(mode::generation), .batch = 4}; }

plan on_one_device(mode how) {
  plan p{.model = "toy", .workload = in_chunks(how), .microbatch_size = 4};
  p.stages = {{.name = "s0", .layers = {layer_id(0), layer_id(1)}, .devices = {{device_id(0), 4}}}};
  return p;
}

/// Returns every entry point of the library that takes a model and a mode.
std::vector<std::pair<std::string, std::function<void(const planning_graph&, mode)>>> doors() {
  static const cluster c = test::three();
  static const any_cost_model cost = roofline{};
  const auto planned = [](auto planner) {
    return [=](const planning_graph& g, mode how) {
      job wanted = generating();
      wanted.workload.mode = how;
      const plan_result r = planner(planning_problem{g, c, cost, wanted});
      REQUIRE(r.status.ok());
    };
  };
  // The mode changes after the problem has been checked.
  const auto changed_later = [](auto planner) {
    return [=](const planning_graph& g, mode how) {
      job wanted = generating();
      wanted.workload.mode = mode::inference;
      planning_problem p{g, c, cost, wanted};
      p.job.workload.mode = how;
      static_cast<void>(planner(p));
    };
  };
  const auto with_plan = [](auto f) {
    return [=](const planning_graph& g, mode how) {
      const plan p = on_one_device(how);
      static_cast<void>(f(p, g));
    };
  };
  const auto lived = [](const planning_problem& p) {
    adapt::static_plan policy(on_one_device(p.job.workload.mode));
    return adapt::run(p, adapt::timeline{seconds(1)}, policy);
  };
  const auto adapted = [](const planning_problem& p) {
    auto policy = recipes::dora_adapter(p);
    return adapt::run(p, adapt::timeline{seconds(1)}, policy);
  };
  const auto on_device = [](const planning_problem& p) { return recipes::on_device(p, minimize_latency{}); };
  const auto dora = [](const planning_problem& p) { return recipes::dora(p, minimize_latency{}, 1); };
  return {
      {"check_mode", [](const planning_graph& g, mode how) { check_mode(g, in_chunks(how)); }},
      {"planning_problem",
       [](const planning_graph& g, mode how) {
         planning_problem{g, c, cost, job{.workload = in_chunks(how)}};
       }},
      {"problem, on-device", planned(on_device)},
      {"on-device", changed_later(on_device)},
      {"data-parallel", changed_later([](const planning_problem& p) { return recipes::data_parallel(p, minimize_latency{}); })},
      {"pipeline", changed_later([](const planning_problem& p) { return recipes::pipeline(p, minimize_latency{}); })},
      {"dora", changed_later(dora)},
      {"asteroid", changed_later([](const planning_problem& p) { return recipes::asteroid(p, minimize_latency{}); })},
      {"edgeshard", changed_later([](const planning_problem& p) { return recipes::edgeshard(p, minimize_latency{}); })},
      {"gpipe", changed_later([](const planning_problem& p) { return recipes::gpipe(p, minimize_latency{}); })},
      {"hetpipe", changed_later([](const planning_problem& p) { return recipes::hetpipe(p, minimize_latency{}); })},
      {"metis", changed_later([](const planning_problem& p) { return recipes::metis(p, minimize_latency{}); })},
      {"adapt::run, a fixed plan", changed_later(lived)},
      {"adapt::run, dora", changed_later(adapted)},
      {"require_valid", with_plan([](const plan& p, const planning_graph& g) { return require_valid(p, g, c); })},
      {"expand", with_plan([](const plan& p, const planning_graph& g) { return tasks::expand(stage_costs(p, g, c, cost)); })},
      {"judge", with_plan([](const plan& p, const planning_graph& g) { return judge(p, g, c, cost); })},
      {"evaluate", with_plan([](const plan& p, const planning_graph& g) { return evaluate(p, g, c, cost); })},
      {"estimate", with_plan([](const plan& p, const planning_graph& g) { return estimate(p, g, c, cost); })},
      {"plan_bound", with_plan([](const plan& p, const planning_graph& g) { return plan_bound(p, g, c, cost, {}, no_lp{}, true); })},
      {"prefix_table",
       [](const planning_graph& g, mode how) { static_cast<void>(prefix_table(g, sequence_of(g), c, cost, {}, in_chunks(how), 1)); }},
  };
}

}  // namespace

TEST_CASE("a prompt in chunks is refused at every door where a layer's tokens see the whole prompt, in the same words") {
  const planning_graph full = toy(attention_kind::full), causal = toy(attention_kind::causal);
  for (const auto& [name, enter] : doors()) {
    INFO(name);
    std::string heard;
    try {
      enter(full, mode::generation);
    } catch (const invalid_input& e) {
      heard = e.what();
    }
    CHECK_THAT(heard, Catch::Matchers::EndsWith(said));  // after the entry point's own name
    CHECK_NOTHROW(enter(causal, mode::generation));
    CHECK_NOTHROW(enter(full, mode::inference));
    CHECK_NOTHROW(enter(full, mode::training));
  }
}

TEST_CASE("every model of the zoo generates, whatever its tokens per sample") {
  for (const auto& name : zoo::model_names()) {
    INFO(name);
    CHECK_NOTHROW(check_mode(zoo::model(name, {}), {.mode = mode::generation}));
    if (zoo::takes_tokens(name)) CHECK_NOTHROW(check_mode(zoo::model(name, {.tokens = 1}), {.mode = mode::generation}));
  }
}

}  // namespace test_check_mode
