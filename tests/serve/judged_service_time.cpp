// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/recipes/pipeline.hpp>
#include <hetplan/serve/request_handlers.hpp>
#include <hetplan/serve/serve_requests.hpp>
#include <hetplan/serve/service_time.hpp>
#include <hetplan/simulate/evaluate.hpp>

#include "support/random_source.hpp"

namespace test_judged_service_time {

using namespace hetplan;
using namespace hetplan::serve;

namespace {

/// Returns a device of 1 TFLOP/s, 100 GB/s and 50 us per launch, times `factor`.
device gpu_named(const std::string& name, double factor = 1) {
  return {
      .name = name, .memory = 8_GB, .compute = factor * 1_TFLOP_per_s, .memory_bandwidth = factor * 100_GB_per_s, .launch = 50_us / factor};
}
cluster gpus(int count, double factor = 1) {
  std::vector<device> all;
  for (int d = 0; d < count; ++d) all.push_back(gpu_named("gpu" + std::to_string(d), factor));
  return {"server", std::move(all), shared_medium{factor * 5_GB_per_s, 20_us / factor}};
}

/// Returns layers whose weights are read in 4 ms and 1 ms, and whose samples are computed in 0.5 ms and 2 ms.
planning_graph two_layers() {
  planning_graph_builder b("two");
  b.add_layer({.name = "heavy", .forward_flops = 0.5_GFLOP, .weight = 400_MB, .traffic = 0_B, .kv_bytes_per_token = 1_MB});
  b.add_layer({.name = "busy", .forward_flops = 2_GFLOP, .weight = 100_MB, .traffic = 0_B});
  b.add_edge("heavy", "busy", 1_MB);
  return std::move(b).build();
}
double one_piece_s(int batch) { return std::max(0.5e-3 * batch, 4e-3) + std::max(2e-3 * batch, 1e-3) + 2 * 50e-6; }
/// Returns the mean of a sequence's steps but the first: with one token before and 16 made, they read 3 to 17 tokens and write one.
double step_s(int batch) { return one_piece_s(batch) + batch * (10 + 1) * 1e6 / 100e9; }

planning_graph random_chain(test::random_source& random) {
  planning_graph_builder b("random");
  const int layers = random.integer(2, 9);
  for (int l = 0; l < layers; ++l) {
    b.add_layer({.name = "l" + std::to_string(l), .forward_flops = flops(random.spread(1e8, 6)), .weight = bytes(random.spread(1e6, 7))});
    if (l > 0) b.add_edge(layer_id(l - 1), layer_id(l), bytes(random.spread(1e4, 6)));
  }
  return std::move(b).build();
}

const adapt::any_planner alone = [](const planning_problem& q) { return recipes::on_device(q, minimize_response{}, 1); };
const adapt::any_planner pipelined = [](const planning_problem& q) { return recipes::pipeline(q, minimize_response{}, 1); };

}  // namespace

TEST_CASE("on one device the judge's service times are the roofline's by hand") {
  const planning_graph model = two_layers();
  const cluster one = gpus(1);
  const variant_times t = judged_service_time(model, model, one, roofline{}, alone, {.largest = 48, .context = 1});
  CHECK(t.pass.batch == std::vector{1, 2, 4, 8, 16, 32, 48});
  CHECK(t.step.batch == t.pass.batch);
  CHECK(t.per_token_s == 0);
  for (std::size_t i = 0; i < t.pass.batch.size(); ++i) {
    INFO(t.pass.batch[i]);
    CHECK(t.pass.seconds_at[i] == Approx(one_piece_s(t.pass.batch[i])).epsilon(1e-12));
    CHECK(t.step.seconds_at[i] == Approx(step_s(t.step.batch[i])).epsilon(1e-12));
  }
  CHECK(judged_service_time(model, one, roofline{}, alone, {.largest = 1}).pass.batch == std::vector{1});
  CHECK(judged_service_time(model, one, roofline{}, alone).step.batch.empty());
}

TEST_CASE("times of generation end where the caches of a batch do not fit any more") {
  const planning_graph model = two_layers();
  const cluster one = gpus(1);
  // 7.5 GB are left beside the weights, and each request caches 1.5 GB.
  const variant_times t = judged_service_time(model, model, one, roofline{}, alone, {.largest = 16, .context = 1500});
  CHECK(t.step.batch == std::vector{1, 2, 4});
  CHECK(t.pass.batch == std::vector{1, 2, 4, 8, 16});
  const service s{.name = "chat", .latency = 1_s, .generates = true, .variants = {{.name = "one", .gpu_kind = "gpu", .memory = 8_GB}}};
  CHECK(service_time_table({{t}}).largest_batch({s, s.variants[0], service_id(0), 0}) == 4);
}

TEST_CASE("GPUs twice as fast in all respects take half the time, and one more of a kind never makes a pipeline slower") {
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 30; ++seed) {
    INFO("seed " << seed);
    test::random_source random(seed);
    const planning_graph model = random_chain(random);
    const variant_times one = judged_service_time(model, model, gpus(1), roofline{}, pipelined, {.largest = 8});
    const variant_times two = judged_service_time(model, model, gpus(2), roofline{}, pipelined, {.largest = 8});
    const variant_times fast = judged_service_time(model, model, gpus(2, 2), roofline{}, pipelined, {.largest = 8});
    for (std::size_t i = 0; i < one.pass.batch.size(); ++i) {
      const double batch = one.pass.batch[i];
      CHECK(batch / two.pass.seconds_at[i] >= batch / one.pass.seconds_at[i] * (1 - 1e-12));
      CHECK(batch / two.step.seconds_at[i] >= batch / one.step.seconds_at[i] * (1 - 1e-12));
      CHECK(fast.pass.seconds_at[i] == Approx(two.pass.seconds_at[i] / 2).epsilon(1e-9));
      CHECK(fast.step.seconds_at[i] == Approx(two.step.seconds_at[i] / 2).epsilon(1e-9));
    }
    CHECK(std::ranges::is_sorted(two.pass.seconds_at));
    CHECK(std::ranges::is_sorted(two.step.seconds_at));
    CHECK_NOTHROW(service_time_table({{one}, {two}, {fast}}));
  }
}

TEST_CASE("a planner that finds less for a small batch does not make times fall") {
  const planning_graph model = two_layers();
  const cluster uneven("uneven", {gpu_named("slow", 0.1), gpu_named("fast")}, shared_medium{5_GB_per_s});
  const auto clumsy = [](const planning_problem& q) {
    plan_result r;
    plan p{.model = q.model.name(), .cluster = q.cluster.name(), .workload = q.job.workload, .microbatch_size = q.job.batch};
    p.stages = {{.name = "all", .layers = {layer_id(0), layer_id(1)}, .devices = {{device_id(q.job.batch == 1 ? 0 : 1), q.job.batch}}}};
    r.plans = {{p, judge(p, q.model, q.cluster, q.cost, q.models).evaluation}};
    return r;
  };
  const batch_curve pass = judged_service_time(model, uneven, roofline{}, clumsy, {.largest = 16}).pass;
  CHECK(pass.seconds_at[0] == Approx(10 * one_piece_s(1)));
  CHECK(pass.seconds_at[1] == pass.seconds_at[0]);  // 8.1 ms by its own plan
  CHECK(pass.seconds_at[4] == pass.seconds_at[0]);  // 40.1 ms
  CHECK(judged_service_time(model, uneven, roofline{}, clumsy, {.largest = 32}).pass.seconds_at[5] == Approx(one_piece_s(32)));
}

TEST_CASE("a service whose times were judged answers when they say") {
  const planning_graph model = two_layers();
  const service_time_table times({{judged_service_time(model, gpus(2), roofline{}, pipelined, {.largest = 8})}});
  const std::vector<service> services{
      {.name = "two", .latency = 1_s, .variants = {{.name = "pair", .gpu_kind = "gpu", .tensor_parallel = 2, .memory = 1_GB}}}};
  const edge_cloud cloud{
      "one", {{.name = "a", .gpus = {{"gpu", 8_GB}, {"gpu", 8_GB}}, .uplink = 1_GB_per_s, .downlink = 1_GB_per_s}}, {1_s}};
  const deployment d{{{.what = service_id(0), .gpus = {{server_id(0), 0}, {server_id(0), 1}}, .batch = 8}}};
  serve_locally handler;
  const auto h =
      serve_requests(cloud, services, times, request_stream({{.arrival_s = 0.5, .service = service_id(0), .server = server_id(0)}}), d,
                     handler, {.detail = history_detail::records});
  const auto pass = times.pass({services[0], services[0].variants[0], service_id(0), 0}, {});
  CHECK(h.records[0].end_s == Approx(0.5 + pass.value()));
}

TEST_CASE("what cannot be planned or judged is said") {
  const planning_graph model = two_layers();
  CHECK_THROWS_WITH(judged_service_time(model, gpus(1), roofline{}, alone, {.largest = 0}),
                    "judged_service_time: largest = 0; expected a batch >= 1");
  CHECK_THROWS_WITH(judged_service_time(model, gpus(1), roofline{}, alone, {.tokens = 1}),
                    "judged_service_time: tokens = 1; expected at least 2");
  device small = gpu_named("small");
  small.memory = 100_MB;
  CHECK_THROWS_WITH(
      judged_service_time(model, cluster("closet", {small}, shared_medium{1_GB_per_s}), roofline{}, alone),
      Catch::StartsWith("judged_service_time: no plan for a batch of 1 of model \"two\" on \"closet\": ") && Catch::Contains("small"));
  planning_graph_builder b("idle");
  b.add_layer({.name = "nothing", .forward_flops = 0_GFLOP});
  const planning_graph idle = std::move(b).build();
  device instant = gpu_named("instant");
  instant.launch = 0_s;
  CHECK_THROWS_WITH(judged_service_time(idle, cluster("c", {instant}, shared_medium{1_GB_per_s}), roofline{}, alone),
                    Catch::Contains("takes 0 s"));
}

}  // namespace test_judged_service_time
