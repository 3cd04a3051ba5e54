// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <hetplan/cost/cost_model.hpp>
#include <hetplan/simulate/dispatch.hpp>

#include "executors/support.hpp"
#include "executors/threads/recover.hpp"

using namespace executors;
using namespace executors::test;
using Catch::Contains;

namespace {

/// Returns heartbeats that are frequent enough for a test, with timeouts that hold on a busy machine.
resilient_options quick() {
  resilient_options o;
  o.threads.timeout_s = 20;
  o.beats = {.period = hetplan::seconds(0.02), .timeout = hetplan::seconds(0.5), .probe = hetplan::seconds(0.25)};
  return o;
}

/// Returns inputs whose iterations on several devices take about 0.1 s, mostly latency of links.
run_inputs inputs_of(const neural_network& net, const hetplan::plan& p, int count) {
  std::vector<std::vector<hetplan::layer_profile>> profiles(net.layers.size(), {{"slow", {1, 2}, {2e-3, 3e-3}, {4e-3, 6e-3}}});
  std::vector<hetplan::device> all;
  for (int i = 0; i < count; ++i) all.push_back({.name = "d" + std::to_string(i), .kind = "slow", .memory = hetplan::bytes(1e9)});
  const hetplan::cluster c("few", all, hetplan::shared_medium{hetplan::bytes_per_second(2e6), hetplan::seconds(20e-3)});
  return {net, describe(net, profiles), c, c, p};
}

void check_undisturbed(const resilient_training& t, const run_inputs& in, const training_settings& settings, int iterations) {
  const training_alone expected = train_alone(in.net, static_cast<long>(in.plan.batch()), settings, iterations);
  for (const tensors& held : t.training().parameters) {
    INFO(t.training().iterations.size() << " iterations");
    if (!held.empty()) CHECK(difference(t.training().iterations, held, expected) < 1e-6);
  }
}

}  // namespace

TEST_CASE("Each of the devices killed in turn, training goes on and finds what an undisturbed one finds") {
  const neural_network net = small_transformer();
  const hetplan::cluster c = devices(4);
  const hetplan::plan p = plan_of(net, c, {stage_of(0, 2, {{0, 2}}), stage_of(2, 3, {{1, 2}}), stage_of(3, 6, {{2, 1}, {3, 1}})}, 2, 3);
  const int victim = GENERATE(0, 1, 2, 3);
  const int iteration = GENERATE(0, 2);
  INFO("killed: d" << victim << " in iteration " << iteration);
  const run_inputs in = inputs_of(net, p, 4);
  const training_settings settings{.seed = 5, .rate = 0.2};
  resilient_training t(in, settings, quick(), {{{device_id(victim), iteration, 0.03}}, {}});
  t.run(4);
  REQUIRE(t.recoveries().size() == 1);
  CHECK(t.recoveries()[0].lost == "d" + std::to_string(victim));
  CHECK(t.recoveries()[0].iteration == iteration);
  CHECK(t.recoveries()[0].noticed_s > 0.7);
  CHECK(t.training().iterations.size() == 4);
  check_undisturbed(t, in, settings, 4);
}

TEST_CASE("A device is killed whose plan runs gradients of weights apart; the plan after it does so, too") {
  const neural_network net = small_mlp();
  const hetplan::cluster c = devices(3);
  const hetplan::plan p = plan_of(net, c, {stage_of(0, 2, {{0, 2}}), stage_of(2, 4, {{1, 2}}), stage_of(4, 7, {{2, 2}})}, 2, 3);
  run_inputs in = inputs_of(net, p, 3);
  in.plan = hetplan::dispatch(p, {in.model, in.cluster, hetplan::profiled_or_roofline{}}, hetplan::eager{});
  const training_settings settings{.seed = 5, .rate = 0.2};
  resilient_training t(in, settings, quick(), {{{device_id(1), 1, 0.03}}, {}});
  t.run(3);
  REQUIRE(t.recoveries().size() == 1);
  check_undisturbed(t, in, settings, 3);
}

TEST_CASE("One device after the other dies until one is left") {
  const neural_network net = small_mlp();
  const hetplan::cluster c = devices(3);
  const hetplan::plan p = plan_of(net, c, {stage_of(0, 2, {{0, 2}}), stage_of(2, 4, {{1, 2}}), stage_of(4, 7, {{2, 2}})}, 2, 2);
  const run_inputs in = inputs_of(net, p, 3);
  const training_settings settings{.seed = 5, .rate = 0.2};
  resilient_training t(in, settings, quick(), {{{device_id(1), 1, 0.01}, {device_id(0), 3, 0.01}}, {}});
  t.run(5);
  REQUIRE(t.recoveries().size() == 2);
  CHECK(t.recoveries()[1].lost == "d0");
  check_undisturbed(t, in, settings, 5);
}

TEST_CASE("Two devices die at the same time, and training goes on without both") {
  const neural_network net = small_mlp();
  const hetplan::cluster c = devices(4);
  const hetplan::plan p = plan_of(net, c, {stage_of(0, 2, {{0, 1}, {1, 1}}), stage_of(2, 7, {{2, 1}, {3, 1}})}, 2, 2);
  const run_inputs in = inputs_of(net, p, 4);
  const training_settings settings{.seed = 5, .rate = 0.2};
  const double apart_s = GENERATE(0.0, 0.02, 0.6);
  INFO("apart: " << apart_s << " s");
  resilient_training t(in, settings, quick(), {{{device_id(1), 1, 0.01}, {device_id(2), 1, 0.01 + apart_s}}, {}});
  t.run(3);
  const std::string lost =
      t.recoveries().size() == 1 ? t.recoveries()[0].lost : t.recoveries().at(0).lost + ", " + t.recoveries().at(1).lost;
  CHECK(lost == "d1, d2");
  CHECK(t.training().iterations.size() == 3);
  check_undisturbed(t, in, settings, 3);
}

TEST_CASE("The only device dies, and training says that it cannot go on") {
  const neural_network net = small_mlp();
  const hetplan::cluster c = devices(1);
  const run_inputs in = [&] {
    std::vector<std::vector<hetplan::layer_profile>> profiles(net.layers.size(), {{"slow", {1}, {2e-3}, {4e-3}}});
    const hetplan::cluster one("one", {.name = "d0", .kind = "slow", .memory = hetplan::bytes(1e9)});
    return run_inputs{net, describe(net, profiles), one, one, plan_of(net, c, {stage_of(0, 7, {{0, 2}})}, 2, 2)};
  }();
  resilient_training t(in, {.seed = 5, .paces = {{.wait = 10000}}}, quick(), {{{device_id(0), 1, 0.01}}, {}});
  CHECK_THROWS_WITH(t.run(3), Contains("lost d0"));
}

TEST_CASE("A link that is cut for a while is waited for") {
  const neural_network net = small_mlp();
  const hetplan::cluster c = devices(2);
  const hetplan::plan p = plan_of(net, c, {stage_of(0, 3, {{0, 2}}), stage_of(3, 7, {{1, 2}})}, 2, 2);
  const run_inputs in = inputs_of(net, p, 2);
  const training_settings settings{.seed = 5, .rate = 0.2};
  resilient_training t(in, settings, quick(), {{}, {{hetplan::resource_id(0), 1, 0.6}}});
  t.run(3);
  CHECK(t.recoveries().empty());
  REQUIRE(t.training().iterations.size() == 3);
  CHECK(t.training().iterations[1].seconds > 0.6);  // the link is cut for 0.6 s; the other iterations are not delayed
  check_undisturbed(t, in, settings, 3);
}

TEST_CASE("What nobody sends is not waited for for ever") {
  const neural_network net = small_mlp();
  const hetplan::cluster c = devices(2);
  const hetplan::plan p = plan_of(net, c, {stage_of(0, 3, {{0, 2}}), stage_of(3, 7, {{1, 2}})}, 2, 2);
  program work = program_of(p, net, c);
  work.tasks[0].front().sends.clear();
  thread_training t;
  CHECK_THROWS_AS(train_with_threads(net, work, c, {.seed = 1}, 1, t, {.shaped = false, .timeout_s = 0.2}), timed_out);
}
