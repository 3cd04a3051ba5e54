// SPDX-License-Identifier: BSL-1.0
// Training under any plan equals training on one device.
#include <catch2/catch.hpp>

#include <map>
#include <mutex>

#include <hetplan/simulate/dispatch.hpp>

#include "executors/support.hpp"

using namespace executors;
using namespace executors::test;
using hetplan::phase, hetplan::schedule_kind, hetplan::stage_id;

namespace {
constexpr double rounding = 1e-9;  // in double precision, where only the order of sums differs
}

TEST_CASE("A chain of stages trains what one device trains, 1F1B and GPipe") {
  const neural_network net = small_mlp();  // 7 layers
  const cluster c = devices(3);
  plan p = plan_of(net, c, {stage_of(0, 2, {{2, 4}}), stage_of(2, 5, {{0, 4}}), stage_of(5, 7, {{1, 4}})}, 4, 5);
  CHECK(difference_of(p, net, c) < rounding);
  p.schedule.kind = schedule_kind::gpipe;
  CHECK(difference_of(p, net, c) < rounding);
}

TEST_CASE("Replicated stages with uneven shares train what one device trains") {
  const neural_network net = small_mlp();
  const cluster c = devices(5);
  const plan p = plan_of(net, c, {stage_of(0, 3, {{0, 4}, {3, 2}, {1, 1}}), stage_of(3, 7, {{2, 5}, {4, 2}})}, 7, 3);
  CHECK(difference_of(p, net, c) < rounding);
}

TEST_CASE("Data parallelism alone trains what one device trains") {
  const neural_network net = small_mlp();
  const cluster c = devices(3);
  CHECK(difference_of(plan_of(net, c, {stage_of(0, 7, {{0, 5}, {1, 2}, {2, 1}})}, 8, 2), net, c) < rounding);
}

TEST_CASE("A graph of stages trains what one device trains") {
  const neural_network net = small_towers();  // wide0-2, narrow0-1, join, last, loss
  const cluster c = devices(5);
  const plan p = plan_of(net, c, {stage_of(0, 3, {{0, 2}, {4, 2}}), stage_of(3, 5, {{1, 4}}), stage_of(5, 8, {{2, 1}, {3, 3}})}, 4, 4);
  CHECK(difference_of(p, net, c) < rounding);
}

TEST_CASE("Stages with microbatches of their own sizes train what one device trains") {
  const neural_network net = small_mlp();
  const cluster c = devices(4);
  const plan p = plan_of(net, c, {stage_of(0, 2, {{0, 6}}, 6), stage_of(2, 4, {{1, 1}, {3, 3}}, 4), stage_of(4, 7, {{2, 3}}, 3)}, 3, 8);
  CHECK(difference_of(p, net, c) < rounding);
}

TEST_CASE("A tensor that stages share has one value everywhere") {
  const neural_network net = small_transformer();  // embed, 2 x (attention, feed-forward), loss; embed and loss share a table
  const cluster c = devices(5);
  SECTION("one device each") {
    CHECK(difference_of(plan_of(net, c, {stage_of(0, 2, {{0, 2}}), stage_of(2, 4, {{1, 2}}), stage_of(4, 6, {{2, 2}})}, 2, 4), net, c) <
          rounding);
  }
  SECTION("replicated, so that the sum is handed out") {
    const plan p = plan_of(net, c, {stage_of(0, 3, {{0, 2}, {3, 1}}), stage_of(3, 6, {{1, 1}, {2, 1}, {4, 1}})}, 3, 4);
    CHECK(difference_of(p, net, c) < rounding);
  }
  SECTION("in one stage") { CHECK(difference_of(plan_of(net, c, {stage_of(0, 6, {{1, 3}, {2, 1}})}, 4, 2), net, c) < rounding); }
}

TEST_CASE("A device with two stages trains what one device trains") {
  const neural_network net = small_transformer();
  const cluster c = devices(2);
  plan p = plan_of(net, c, {stage_of(0, 2, {{0, 2}}), stage_of(2, 4, {{1, 2}}), stage_of(4, 6, {{0, 2}})}, 2, 2);
  p.schedule.kind = schedule_kind::explicit_orders;
  const auto f = [](int s, int m) { return hetplan::order_entry{phase::forward, stage_id(s), m}; };
  const auto b = [](int s, int m) { return hetplan::order_entry{phase::backward_input, stage_id(s), m}; };
  p.schedule.orders = {{f(0, 0), f(0, 1), f(2, 0), b(2, 0), f(2, 1), b(2, 1), b(0, 0), b(0, 1)}, {f(1, 0), f(1, 1), b(1, 0), b(1, 1)}};
  CHECK(difference_of(p, net, c) < rounding);
}

namespace {

/// Returns the plan with orders of a dispatch policy and weight gradients apart.
template <class Policy>
plan split_orders(const plan& p, const neural_network& net, const cluster& c, const Policy& policy) {
  const planning_graph model = describe(net);
  return hetplan::dispatch(p, hetplan::planning_problem(model, c, roofline{}), policy);
}

}  // namespace

TEST_CASE("Passes of unequal size train what one device trains, also if each stage has its own") {
  plan p = plan_of(small_mlp(), devices(4), {stage_of(0, 2, {{0, 4}}), stage_of(2, 5, {{1, 2}, {2, 2}}), stage_of(5, 7, {{3, 4}})}, 4, 3);
  p.schedule.kind = schedule_kind::gpipe;
  for (stage& s : p.stages) s.cuts = {.forward = {0, 2, 6, 8, 12}, .backward = {0, 2, 6, 8, 12}};
  CHECK(difference_of(p, small_mlp(), devices(4)) < rounding);
  p.stages[1].cuts = {.forward = {0, 8, 10, 12}, .backward = {0, 8, 10, 12}};
  p.stages[2].cuts = {};
  CHECK(difference_of(p, small_mlp(), devices(4)) < rounding);
}

TEST_CASE("Stages that recompute train what one device trains") {
  const auto recomputing = [](plan p) {
    for (stage& s : p.stages) s.recompute = recomputation::stage;
    return p;
  };
  SECTION("replicas of a graph of stages") {
    const plan p = plan_of(small_towers(), devices(5),
                           {stage_of(0, 3, {{0, 2}, {4, 2}}), stage_of(3, 5, {{1, 4}}), stage_of(5, 8, {{2, 1}, {3, 3}})}, 4, 4);
    CHECK(difference_of(recomputing(p), small_towers(), devices(5)) < rounding);
  }
  SECTION("that read each other on one device, with gradients of weights apart, in a device that works twice") {
    const plan p = plan_of(small_transformer(), devices(2),
                           {stage_of(0, 1, {{0, 2}}), stage_of(1, 3, {{1, 2}}), stage_of(3, 4, {{1, 2}}), stage_of(4, 6, {{0, 2}})}, 2, 4);
    const plan split = split_orders(p, small_transformer(), devices(2), hetplan::eager{});
    CHECK(difference_of(recomputing(split), small_transformer(), devices(2), {{.times = 2}, {.times = 1}}) < rounding);
  }
  SECTION("beside one that does not, with passes of unequal size") {
    plan p = plan_of(small_mlp(), devices(2), {stage_of(0, 3, {{0, 2}}), stage_of(3, 7, {{1, 2}})}, 2, 3);
    p.schedule.kind = schedule_kind::gpipe;
    for (stage& s : p.stages) s.cuts = {.forward = {0, 1, 4, 6}, .backward = {0, 1, 4, 6}};
    p.stages[1].recompute = recomputation::stage;
    CHECK(difference_of(p, small_mlp(), devices(2)) < rounding);
  }
}

TEST_CASE("A stage that recomputes does the forward of each microbatch twice") {
  plan p = plan_of(small_mlp(), devices(1), {stage_of(0, 7, {{0, 2}})}, 2, 3);
  p.stages[0].recompute = recomputation::stage;
  std::map<phase, int> works;  // of one layer
  training_settings settings;
  settings.timer = [&](std::size_t layer, phase what, double) { works[what] += layer == 1 ? 1 : 0; };
  thread_training got;
  train_with_threads(small_mlp(), program_of(p, small_mlp(), devices(1)), devices(1), settings, 1, got, {.shaped = false, .timeout_s = 20});
  CHECK(works == std::map<phase, int>{{phase::forward, 3}, {phase::backward_input, 9}, {phase::backward_weight, 3}});
}

TEST_CASE("Transfers that wait for ports or for routes carry what others do") {
  const cluster c = devices(4, 2e6);
  plan p = plan_of(small_mlp(), c, {stage_of(0, 3, {{0, 2}, {3, 2}}), stage_of(3, 7, {{1, 2}, {2, 2}})}, 4, 3);
  for (const hetplan::sharing policy : {hetplan::sharing::exclusive, hetplan::sharing::per_link}) {
    p.sharing_policy = policy;
    const training_settings settings{.seed = 3, .rate = 0.2};
    const program work = program_of(p, small_mlp(), c);
    thread_training got;
    train_with_threads(small_mlp(), work, c, settings, 3, got, {.shaped = true, .timeout_s = 20});
    const training_alone expected = train_alone(small_mlp(), work.batch, settings, 3);
    for (const tensors& held : got.parameters) CHECK(difference(got.iterations, held, expected) < rounding);
  }
}

TEST_CASE("Gradients of weights apart train what one device trains") {
  using hetplan::compact, hetplan::eager;
  const auto both = [](const plan& p, const neural_network& net, const cluster& c, const std::vector<pace>& paces = {}) {
    CHECK(difference_of(split_orders(p, net, c, compact{}), net, c, paces) < rounding);
    CHECK(difference_of(split_orders(p, net, c, eager{}), net, c, paces) < rounding);
  };
  SECTION("in a chain") {
    both(plan_of(small_mlp(), devices(3), {stage_of(0, 2, {{2, 4}}), stage_of(2, 5, {{0, 4}}), stage_of(5, 7, {{1, 4}})}, 4, 5),
         small_mlp(), devices(3));
  }
  SECTION("in a chain that goes down and up again, with a tensor in its first and last stage, both on one device") {
    const plan p = plan_of(small_transformer(), devices(2),
                           {stage_of(0, 1, {{0, 2}}), stage_of(1, 3, {{1, 2}}), stage_of(3, 4, {{1, 2}}), stage_of(4, 6, {{0, 2}})}, 2, 4);
    both(p, small_transformer(), devices(2), {{.times = 2}, {.times = 1}});
  }
  SECTION("in replicas of a graph of stages") {
    const plan p = plan_of(small_towers(), devices(5),
                           {stage_of(0, 3, {{0, 2}, {4, 2}}), stage_of(3, 5, {{1, 4}}), stage_of(5, 8, {{2, 1}, {3, 3}})}, 4, 4);
    both(p, small_towers(), devices(5));
  }
  SECTION("on one device of two, whose other one runs whole backwards") {
    plan p = plan_of(small_mlp(), devices(2), {stage_of(0, 3, {{0, 2}}), stage_of(3, 7, {{1, 2}})}, 2, 2);
    p.schedule.kind = schedule_kind::explicit_orders;
    using enum phase;
    const auto e = [](phase what, int s, int m) { return hetplan::order_entry{what, stage_id(s), m}; };
    p.schedule.orders = {{e(forward, 0, 0), e(forward, 0, 1), e(backward_input, 0, 0), e(backward_input, 0, 1), e(backward_weight, 0, 1),
                          e(backward_weight, 0, 0)},
                         {e(forward, 1, 0), e(backward_input, 1, 0), e(forward, 1, 1), e(backward_input, 1, 1)}};
    CHECK(difference_of(p, small_mlp(), devices(2)) < rounding);
    const program work = program_of(p, small_mlp(), devices(2));
    const auto count = [&](int d, phase what) {
      return std::count_if(work.tasks[static_cast<std::size_t>(d)].begin(), work.tasks[static_cast<std::size_t>(d)].end(),
                           [&](const task& t) { return t.what == what; });
    };
    for (int d : {0, 1}) {
      CHECK(count(d, backward_input) == 2);  // a whole backward counts as one of each
      CHECK(count(d, backward_weight) == 2);
    }
  }
}

TEST_CASE("Devices that do their work several times train what those train that do it once") {
  const std::vector<pace> paces{{.times = 3}, {.times = 1}, {.times = 2}};
  SECTION("a chain, a tensor in two stages, and a layer whose tape is its result") {
    const neural_network net = small_transformer();
    const plan p = plan_of(net, devices(3), {stage_of(0, 2, {{1, 2}}), stage_of(2, 4, {{2, 2}}), stage_of(4, 6, {{0, 2}})}, 2, 4);
    CHECK(difference_of(p, net, devices(3), paces) < rounding);
  }
  SECTION("replicas of a graph of stages") {
    const neural_network net = small_towers();
    const plan p = plan_of(net, devices(3), {stage_of(0, 5, {{0, 2}, {1, 2}}), stage_of(5, 8, {{2, 4}})}, 4, 3);
    CHECK(difference_of(p, net, devices(3), paces) < rounding);
  }
}

TEST_CASE("Work that is done several times is done so often") {
  const neural_network net = small_mlp();
  std::vector<int> forwards(2, 0), backwards(2, 0);  // of one layer each, on the first and the second device
  const plan p = plan_of(net, devices(2), {stage_of(0, 3, {{0, 2}}), stage_of(3, 7, {{1, 2}})}, 2, 2);
  std::mutex lock;
  training_settings settings{.paces = {{.times = 3}, {.times = 1}}};
  settings.timer = [&](std::size_t layer, hetplan::phase what, double) {
    const std::lock_guard hold(lock);
    if (layer != 1 && layer != 4) return;
    ++(what == phase::forward ? forwards : backwards)[layer == 1 ? 0 : 1];
  };
  thread_training got;
  train_with_threads(net, program_of(p, net, devices(2)), devices(2), settings, 1, got, {.shaped = false, .timeout_s = 20});
  CHECK(forwards == std::vector<int>{6, 2});    // of two microbatches
  CHECK(backwards == std::vector<int>{18, 6});  // timed three times each: zeroing gradients, gradients of inputs, of weights
}

TEST_CASE("A device that waits lasts as many times the processor time of its work") {
  const neural_network net = small_mlp();
  const cluster c = devices(1);
  const plan p = plan_of(net, c, {stage_of(0, 7, {{0, 8}})}, 8, 2);
  double worked_s = 0;
  training_settings settings{.paces = {{.wait = 300}}};
  settings.timer = [&](std::size_t, hetplan::phase, double s) { worked_s += s; };
  thread_training got;
  train_with_threads(net, program_of(p, net, c), c, settings, 3, got, {.shaped = false, .timeout_s = 20});
  double lasted_s = 0;
  for (const iteration_record& i : got.iterations) lasted_s += i.seconds;
  CHECK(lasted_s > 300 * worked_s);  // lookups of layers and clock reads are not timed
  CHECK(difference_of(p, net, c, {{.wait = 300}}) < rounding);
}

TEST_CASE("Chunks arrive whole and in order over shaped links") {
  const neural_network net = small_mlp();
  const cluster c = devices(2, 3e5);
  plan p = plan_of(net, c, {stage_of(0, 4, {{0, 6}}), stage_of(4, 7, {{1, 6}})}, 6, 2);
  p.sharing_policy = hetplan::sharing::priority;
  for (int chunk = 0; chunk < 3; ++chunk) {
    p.schedule.transfers.push_back({.from = device_id(0),
                                    .to = device_id(1),
                                    .from_stage = stage_id(0),
                                    .to_stage = stage_id(1),
                                    .microbatch = 0,
                                    .chunk = chunk,
                                    .chunks = 3,
                                    .release = seconds(0.001 * chunk),
                                    .priority = 1});
  }
  const training_settings settings{.seed = 3, .rate = 0.2};
  const program work = program_of(p, net, c);
  REQUIRE(work.messages.front().flows.size() == 3);
  thread_training got;
  train_with_threads(net, work, c, settings, 3, got, {.shaped = true, .timeout_s = 20});
  const training_alone expected = train_alone(net, work.batch, settings, 3);
  for (const tensors& held : got.parameters) CHECK(difference(got.iterations, held, expected) < rounding);
}
