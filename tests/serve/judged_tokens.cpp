// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <catch2/catch.hpp>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/recipes/baselines.hpp>
#include <hetplan/recipes/largest.hpp>
#include <hetplan/recipes/pipeline.hpp>
#include <hetplan/serve/judged_tokens.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

namespace test_judged_tokens {

using namespace hetplan;
using namespace hetplan::serve;

namespace {

const adapt::any_planner alone = [](const planning_problem& q) { return recipes::on_device(q, minimize_response{}, 1); };

/// Returns a device of 1 TFLOP/s and 100 GB/s, without launches.
cluster one_gpu(bytes memory) {
  return {
      "server", {{.name = "gpu", .memory = memory, .compute = 1_TFLOP_per_s, .memory_bandwidth = 100_GB_per_s}}, shared_medium{1_GB_per_s}};
}

/// Returns a layer whose 500 MB of weights are read in 5 ms, with 1 MB of cache per token; a token takes 0.1 ms to compute.
planning_graph one_layer() {
  planning_graph_builder b("one");
  b.add_layer({.name = "all", .forward_flops = 0.1_GFLOP, .weight = 500_MB, .traffic = 0_B, .kv_bytes_per_token = 1_MB});
  return std::move(b).build();
}

}  // namespace

TEST_CASE("steps grow by the cache that they read, and memory holds what the weights leave") {
  const planning_graph model = one_layer();
  const cluster gpu = one_gpu(4_GB);
  const judged_tokens t = judged_token_times(model, gpu, roofline{}, alone, {.typical = {40, 10}, .largest = 16});
  CHECK(t.times.step.batch == std::vector{1, 2, 4, 8, 16});
  // Each token of the cache is read at 100 GB/s, by steps that are limited by memory: 500 MB and what they read and write.
  CHECK(t.times.per_cached_token_s == Approx(1e-5).epsilon(1e-9));
  for (std::size_t i = 0; i < t.times.step.batch.size(); ++i)
    CHECK(t.times.step.seconds_at[i] == Approx(5e-3 + 1e-5 * t.times.step.batch[i]).epsilon(1e-6));
  CHECK(t.step_deviation < 1e-9);
  CHECK(t.cache_tokens == 3500);
  CHECK(t.times.pass.batch == std::vector{1, 16});
  CHECK(t.times.pass.seconds_at[0] == t.times.pass.seconds_at[1]);
  CHECK(t.times.per_token_s > 0);
}

TEST_CASE("the cache of a built-in model is as large as the largest context by search") {
  const planning_graph model = zoo::model("llama3-8b");
  const cluster gpu = zoo::cluster("a100-80gb");
  const judged_tokens t = judged_token_times(model, gpu, roofline{}, alone, {.typical = {512, 128}, .largest = 8});
  const int prompt = 4 * 512;
  const planning_problem problem{
      model, gpu, roofline{},
      job{.workload = {.mode = mode::generation, .tokens = 1, .prompt = prompt}, .batch = 1, .microbatch_sizes = {1}}};
  const auto found = recipes::find_largest(problem, recipes::growing::context,
                                           [](const planning_problem& q, const any_objective& o, int keep, const candidate_observer& s) {
                                             return recipes::on_device(q, o, keep, s);
                                           });
  REQUIRE(found.value);
  CHECK(std::abs(static_cast<double>(t.cache_tokens) - (*found.value + prompt + 1)) <= 1);
  CHECK(t.step_deviation < 0.05);
  CHECK(t.pass_deviation < 0.3);  // between reading the weights and computing there is a knee
}

TEST_CASE("what has no plan is said, and batches end before the first that does not fit") {
  const planning_graph model = one_layer();
  CHECK_THROWS_WITH(judged_token_times(model, one_gpu(100_MB), roofline{}, alone),
                    Catch::StartsWith("judged_token_times: no plan for a prompt of one token of model \"one\" on \"server\": "));
  CHECK_THROWS_WITH(judged_token_times(model, one_gpu(4_GB), roofline{}, alone, {.largest = 0}),
                    "judged_token_times: largest = 0; expected a batch >= 1");
  CHECK_THROWS_WITH(judged_token_times(model, one_gpu(4_GB), roofline{}, alone, {.typical = {10, 0}}),
                    "judged_token_times: tokens out = 0; expected >= 1");
  // 10 tokens of cache: batches of 1 and 2 have two caches of different lengths.
  const auto t = judged_token_times(model, one_gpu(510_MB), roofline{}, alone, {.typical = {1, 4}, .largest = 16}).times;
  CHECK(t.step.batch.back() < 16);
  CHECK(t.pass.batch.back() == 16);
}

}  // namespace test_judged_tokens
