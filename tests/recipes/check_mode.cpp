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
#include <hetplan/serve/service_time.hpp>
#include <hetplan/zoo/models.hpp>

#include "support/three_devices.hpp"

namespace test_check_mode {

using namespace hetplan;

namespace {

const std::string said =
    "model \"toy\": tokens_per_sample = 8; expected 1 in mode generation, where a step makes one token of each sequence: describe the "
    "model "
    "per token (a built-in language model: --tokens 1, in a program zoo::model(name, {.tokens = 1}); a model file: no tokens_per_sample, "
    "and every amount that of one token)";

planning_graph toy(int tokens_per_sample) {
  planning_graph_builder b("toy", 4, tokens_per_sample);
  for (const char* name : {"a", "b"}) b.add_layer({.name = name, .forward_flops = 1_GFLOP, .weight = 1_MB});
  b.add_edge(layer_id(0), layer_id(1), 1_kB);
  return std::move(b).build();
}
job generating() { return {.workload = {.mode = mode::generation, .tokens = 3}, .batch = 4}; }

plan on_one_device(mode how) {
  plan p{.model = "toy", .workload = {.mode = how, .tokens = 3}, .microbatch_size = 4};
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
      {"check_mode", [](const planning_graph& g, mode how) { check_mode(g, how); }},
      {"planning_problem",
       [](const planning_graph& g, mode how) {
         planning_problem{g, c, cost, job{.workload = {.mode = how}}};
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
       [](const planning_graph& g, mode how) { static_cast<void>(prefix_table(g, sequence_of(g), c, cost, {}, {.mode = how}, 1)); }},
      {"judged_service_time",
       [=](const planning_graph& g, mode how) {  // its second model is for generation
         static_cast<void>(how == mode::generation ? serve::judged_service_time(toy(8), g, c, cost, on_device, {.largest = 2})
                                                   : serve::judged_service_time(g, c, cost, on_device, {.largest = 2}));
       }},
  };
}

}  // namespace

TEST_CASE("generation with a model of more than one token per sample is refused at every door, in the same words") {
  const planning_graph many = toy(8), one = toy(1);
  for (const auto& [name, enter] : doors()) {
    INFO(name);
    std::string heard;
    try {
      enter(many, mode::generation);
    } catch (const invalid_input& e) {
      heard = e.what();
    }
    CHECK_THAT(heard, Catch::Matchers::EndsWith(said));  // after the entry point's own name
    CHECK_NOTHROW(enter(one, mode::generation));
    CHECK_NOTHROW(enter(many, mode::inference));
    CHECK_NOTHROW(enter(many, mode::training));
  }
}

TEST_CASE("of the zoo, language models need to be told one token; the others have one") {
  for (const auto& name : zoo::model_names()) {
    INFO(name);
    const planning_graph usual = zoo::model(name, {});
    if (zoo::takes_tokens(name)) {
      CHECK_THROWS_AS(check_mode(usual, mode::generation), invalid_input);
      CHECK_NOTHROW(check_mode(zoo::model(name, {.tokens = 1}), mode::generation));
      CHECK_THROWS_AS(check_mode(zoo::model(name, {.tokens = 2}), mode::generation), invalid_input);
    } else {
      CHECK_NOTHROW(check_mode(usual, mode::generation));
    }
  }
}

}  // namespace test_check_mode
