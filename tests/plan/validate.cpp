// SPDX-License-Identifier: BSL-1.0
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/plan/expansion_size.hpp>
#include <hetplan/plan/validate.hpp>
#include "support.hpp"
#include "support/by_hand.hpp"

namespace test_validate {

using namespace plan_tests;

namespace {

using change = std::function<void(plan&)>;

/// Returns four devices: d0 and d1 have one accelerator, d2 four and an interconnect, d3 two and no interconnect.
cluster four_devices() {
  std::vector<device> all;
  for (const char* name : {"d0", "d1", "d2", "d3"}) all.push_back({.name = name, .memory = 1_GB, .compute = 1_TFLOP_per_s});
  all[2].accelerators = 4;
  all[2].interconnect = 10_GB_per_s;
  all[3].accelerators = 2;
  return {"cluster", all, shared_medium{1_MB_per_s}};
}

/// Returns a -> b -> c -> d; d has a profile for d2.
planning_graph four_layers() {
  planning_graph_builder b("chain");
  for (const char* name : {"a", "b", "c"}) b.add_layer({.name = name, .forward_flops = 1_GFLOP});
  b.add_layer({.name = "d", .forward_flops = 1_GFLOP, .profiles = {{"d2", {1}, {1}, {1}}}});
  for (int i = 0; i < 3; ++i) b.add_edge(layer_id(i), layer_id(i + 1), 1_MB);
  return std::move(b).build();
}

/// Returns 4 microbatches of 2 samples on two stages, the first on two devices.
plan two_stages() {
  return {.microbatch_size = 2,
          .microbatches = 4,
          .stages = {{.name = "s0", .layers = ids({0, 1}), .devices = {{device_id(0)}, {device_id(1)}}},
                     {.name = "s1", .layers = ids({2, 3}), .devices = {{device_id(2), 2}}}}};
}

/// Returns two pipelines of 4 samples: s0, s1 and t0, t1.
plan two_pipelines() {
  plan p = two_stages();
  p.stages[0].devices = {{device_id(0), 2}};
  p.stages[1].devices = {{device_id(1), 2}};
  p.pipelines = {4, 4};
  for (const int s : {0, 1}) {
    p.stages.push_back(p.stages[static_cast<std::size_t>(s)]);
    p.stages.back().name = "t" + std::to_string(s);
    p.stages.back().pipeline = 1;
    p.stages.back().devices[0].device = device_id(2 + s);
  }
  return p;
}

/// Returns two microbatches in explicit orders: s0 on d0, s1 on d1.
plan ordered() {
  plan p{.microbatch_size = 1,
         .microbatches = 2,
         .stages = {{.name = "s0", .layers = ids({0, 1}), .devices = {{device_id(0)}}},
                    {.name = "s1", .layers = ids({2, 3}), .devices = {{device_id(1)}}}}};
  p.schedule.kind = schedule_kind::explicit_orders;
  p.schedule.orders = {order("F0 F1 B0 B1"), order("1F0 1B0 1F1 1B1")};
  return p;
}

std::string answer(const plan& p) {
  const auto v = validate(p, four_layers(), four_devices());
  return v ? v->where + ": " + v->what : "valid";
}
std::string answer(plan p, const change& c) {
  c(p);
  return answer(p);
}

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("the plans that the tests below break are valid") {
  CHECK(answer(two_stages()) == "valid");
  CHECK(answer(two_pipelines()) == "valid");
  CHECK(answer(ordered()) == "valid");
  for (const mode m : {mode::inference, mode::generation}) CHECK(answer(two_stages(), [&](plan& p) { p.workload.mode = m; }) == "valid");
  CHECK(answer(two_stages(), [](plan& p) { p.schedule.kind = schedule_kind::gpipe; }) == "valid");
  CHECK(answer(two_stages(), [](plan& p) { p.parameter_server = device_id(3); }) == "valid");
}

TEST_CASE("a plan's own numbers: sizes, workload, stages, parameter server") {
  const auto broken = [](const change& c) { return answer(two_stages(), c); };
  CHECK(broken([](plan& p) { p.microbatch_size = 0; }) == "/microbatch_size: expected an integer >= 1, got 0");
  CHECK(broken([](plan& p) { p.microbatches = -1; }) == "/microbatches: expected an integer >= 1, got -1");
  CHECK(broken([](plan& p) { p.workload.optimizer_factor = -1; }) == "/workload/optimizer_factor: expected a finite number >= 0, got -1");
  CHECK(broken([](plan& p) { p.workload.optimizer_factor = not_a_number; }) ==
        "/workload/optimizer_factor: expected a finite number >= 0, got nan");
  CHECK(broken([](plan& p) { p.workload.context = -1; }) == "/workload/context: expected an integer >= 0, got -1");
  CHECK(broken([](plan& p) { p.workload = {.mode = mode::generation, .tokens = 0}; }) ==
        "/workload/tokens: expected an integer >= 1, got 0");
  CHECK(broken([](plan& p) { p.workload.tokens = 1; }) == "valid");  // only generation reads the tokens
  CHECK(broken([](plan& p) { p.stages.clear(); }) == "/stages: expected at least one stage, got none");
  CHECK(broken([](plan& p) { p.parameter_server = device_id(4); }) == "/sync/parameter_server: expected a device of the cluster, got id 4");
  CHECK(broken([](plan& p) { p.parameter_server = device_id{}; }) == "/sync/parameter_server: expected a device of the cluster, got id -1");
}

TEST_CASE("pipelines take all samples between them, and their stages follow one another") {
  const auto broken = [](const change& c) { return answer(two_pipelines(), c); };
  CHECK(broken([](plan& p) { p.pipelines = {8, 0}; }) == "/pipelines/1/samples: expected an integer >= 1, got 0");
  CHECK(broken([](plan& p) { p.pipelines = {4, 6}; }) == "/pipelines/1/samples: expected at most the 4 samples that are left, got 6");
  CHECK(broken([](plan& p) {
          p.pipelines = {4, 2};
        }) == "/pipelines: expected samples that sum to microbatch_size * microbatches = 8, got 6");
  CHECK(broken([](plan& p) { std::swap(p.stages[1], p.stages[2]); }) == "/stages/2: expected pipelines in ascending order, got pipeline 0");
  CHECK(broken([](plan& p) { p.stages[3].pipeline = 2; }) == "/stages/3: expected pipelines in ascending order, got pipeline 2");
  CHECK(broken([](plan& p) { p.stages[0].pipeline = -1; }) == "/stages/0: expected pipelines in ascending order, got pipeline -1");
  CHECK(broken([](plan& p) { p.pipelines.clear(); }) == "/stages/2: expected pipelines in ascending order, got pipeline 1");
  CHECK(broken([](plan& p) {
          p.pipelines = {3, 5};
        }) == "/pipelines/0/stages/0/microbatch_size: expected a size that divides the pipeline's 3 samples, got 2");
  CHECK(broken([](plan& p) { p.pipelines = {2, 6}; }) == "valid");
}

TEST_CASE("a stage's microbatch size divides the samples of its pipeline") {
  const auto broken = [](const change& c) { return answer(two_stages(), c); };
  CHECK(broken([](plan& p) { p.stages[1].microbatch_size = -1; }) == "/stages/1/microbatch_size: expected an integer >= 1, got -1");
  CHECK(broken([](plan& p) { p.stages[1].microbatch_size = 3; }) ==
        "/stages/1/microbatch_size: expected a size that divides the pipeline's 8 samples, got 3");
  CHECK(broken([](plan& p) {
          p.stages[1].microbatch_size = 4;
          p.stages[1].devices[0].samples = 4;
        }) == "valid");
  CHECK(broken([](plan& p) {
          p.microbatch_size = p.microbatches = 65536;
          p.stages[0].microbatch_size = 1;
          p.stages[0].devices = {{device_id(0)}};
        }) == "/stages/0/microbatch_size: expected a size that gives at most 2147483647 microbatches, got 1");
}

TEST_CASE("a stage has layers and devices, and its devices share the microbatch between them") {
  const auto broken = [](const change& c) { return answer(two_stages(), c); };
  CHECK(broken([](plan& p) { p.stages[1].layers.clear(); }) == "/stages/1/layers: expected at least one layer, got none");
  CHECK(broken([](plan& p) { p.stages[0].devices.clear(); }) == "/stages/0/devices: expected at least one device, got none");
  CHECK(broken([](plan& p) { p.stages[0].devices[1].device = device_id(4); }) ==
        "/stages/0/devices/1: expected a device of the cluster, got id 4");
  CHECK(broken([](plan& p) { p.stages[0].devices[1].device = device_id{}; }) ==
        "/stages/0/devices/1: expected a device of the cluster, got id -1");
  CHECK(broken([](plan& p) { p.stages[0].devices[1].device = device_id(0); }) ==
        R"(/stages/0/devices/1: device "d0" appears twice in the stage)");
  CHECK(broken([](plan& p) { p.stages[0].devices[0].samples = 0; }) == "/stages/0/devices/0/samples: expected an integer >= 1, got 0");
  CHECK(broken([](plan& p) { p.stages[0].devices[0].samples = 2; }) ==
        "/stages/0/devices: expected samples that sum to the microbatch size 2, got 3");
}

TEST_CASE("tensor parallelism needs the accelerators, the interconnect, and layers that were not measured on one") {
  const auto on = [](int device, int degree, std::vector<int> last_stage = {3}) {
    plan p = two_stages();
    p.stages[0].layers = last_stage.size() == 1 ? ids({0, 1, 2}) : ids({0, 1});
    p.stages[1].layers = ids(last_stage);
    p.stages[1].devices = {{device_id(device), 2, degree}};
    return answer(p);
  };
  const std::string where = "/stages/1/devices/0/tensor_parallel: ";
  CHECK(on(2, 0) == where + R"(expected 1 to the 4 accelerators of device "d2", got 0)");
  CHECK(on(2, 5) == where + R"(expected 1 to the 4 accelerators of device "d2", got 5)");
  CHECK(on(3, 2) == where + R"(tensor parallelism on device "d3" needs its interconnect, which is not given)");
  CHECK(on(2, 4) == where + R"(layer "d" is profiled on kind "d2" for one accelerator; expected tensor_parallel 1, got 4)");
  CHECK(on(2, 1) == "valid");
  CHECK(answer(two_stages(), [](plan& p) {
          p.stages = {{.name = "s", .layers = ids({0, 1, 2}), .devices = {{device_id(2), 2, 4}}},
                      {.name = "t", .layers = ids({3}), .devices = {{device_id(0), 2}}}};
        }) == "valid");
}

TEST_CASE("every layer of the model is in exactly one stage of each pipeline") {
  const auto broken = [](const change& c) { return answer(two_stages(), c); };
  CHECK(broken([](plan& p) { p.stages[1].layers[1] = layer_id(4); }) == "/stages/1/layers/1: expected a layer of the model, got id 4");
  CHECK(broken([](plan& p) { p.stages[1].layers[1] = layer_id{}; }) == "/stages/1/layers/1: expected a layer of the model, got id -1");
  CHECK(broken([](plan& p) { p.stages[1].layers.push_back(layer_id(1)); }) ==
        R"(/stages/1/layers/2: layer "b" is in two stages of one pipeline)");
  CHECK(broken([](plan& p) { p.stages[0].layers.push_back(layer_id(1)); }) ==
        R"(/stages/0/layers/2: layer "b" is in two stages of one pipeline)");
  CHECK(broken([](plan& p) { p.stages[1].layers.pop_back(); }) == R"(/stages: layer "d" is in no stage)");
  CHECK(answer(two_pipelines(), [](plan& p) { p.stages[3].layers.pop_back(); }) == R"(/pipelines/1/stages: layer "d" is in no stage)");
  CHECK(answer(two_pipelines(), [](plan& p) { p.stages[3].layers.push_back(layer_id(0)); }) ==
        R"(/pipelines/1/stages/1/layers/2: layer "a" is in two stages of one pipeline)");
  CHECK(answer(two_pipelines(), [](plan& p) { p.stages.erase(p.stages.begin(), p.stages.begin() + 2); }) ==
        R"(/pipelines/0/stages: layer "a" is in no stage)");
}

TEST_CASE("the stages of a pipeline form a DAG") {
  CHECK(answer(two_stages(), [](plan& p) {
          p.stages[0].layers = ids({0, 2});
          p.stages[1].layers = ids({1, 3});
        }) == R"(/stages/0: stage "s0" is on or behind a cycle of stages; the stages of a pipeline must form a DAG)");
  CHECK(answer(two_pipelines(), [](plan& p) {
          p.stages[2].layers = ids({0, 2});
          p.stages[3].layers = ids({1, 3});
        }) == R"(/pipelines/1/stages/0: stage "t0" is on or behind a cycle of stages; the stages of a pipeline must form a DAG)");
}

TEST_CASE("a plan is small enough to be expanded") {
  // Each microbatch has F and B on 3 device positions, 2 transfers forward and 2 backward.
  const std::string most = "expected a plan of at most 4e+06 tasks and transfers, which take 1 GB, got ";
  CHECK(answer(two_stages(), [](plan& p) { p.microbatches = 400'000; }) == "valid");
  CHECK(answer(two_stages(), [](plan& p) { p.microbatches = 400'001; }) ==
        "/microbatches: " + most + "2400006 tasks and 1600004 transfers");
  CHECK(answer(two_stages(), [](plan& p) {
          p.workload.mode = mode::inference;
          p.microbatches = 800'000;
        }) == "valid");
  // Each step has 3 tasks and 2 transfers, and each but the last 2 token transfers.
  CHECK(answer(two_stages(), [](plan& p) {
          p.workload = {.mode = mode::generation, .tokens = 1000};
          p.microbatches = 1000;
        }) == "/workload/tokens: " + most + "3e+06 tasks and 3998000 transfers");
  CHECK(answer(two_stages(), [](plan& p) {
          p.workload = {.mode = mode::generation, .tokens = 2};
          p.microbatches = 1'000'000;
        }) == "/microbatches: " + most + "6e+06 tasks and 6e+06 transfers");
}

TEST_CASE("what is too large to be expanded is told as validate tells it, for pipelines of many devices, too") {
  const int devices = 42;
  std::vector<layer_spec> layers;
  std::vector<test::tensor> edges;
  plan p{.model = "by hand", .cluster = "wireless", .microbatch_size = 1};
  for (int d = 0; d < devices; ++d) {
    layers.push_back(test::work_of("l" + std::to_string(d), 1, 1, 1));
    if (d > 0) edges.push_back({d - 1, d, 1, 1});
    p.stages.push_back(test::stage_of({d}, {{d, 1}}));
  }
  const planning_graph model = test::model_of(std::move(layers), edges);
  const cluster home = test::wireless(devices);
  const double per_microbatch = 2 * devices + 2 * (devices - 1);
  for (const int microbatches : {100, 24'096, 24'097, 25'000}) {
    INFO(microbatches);
    p.microbatches = microbatches;
    const auto too_large = too_large_an_expansion(p, model);
    CHECK(too_large.has_value() == (microbatches * per_microbatch > max_expansion));
    CHECK(too_large.has_value() == validate(p, model, home).has_value());
    if (too_large) CHECK(*too_large == microbatches * per_microbatch);
  }
}

TEST_CASE("a device that holds several stages needs explicit orders") {
  const auto shared = [](schedule_kind kind) {
    return answer(two_stages(), [&](plan& p) {
      p.schedule.kind = kind;
      p.stages[1].devices = {{device_id(0), 2}};
    });
  };
  CHECK(shared(schedule_kind::one_f_one_b) == R"(/schedule/kind: device "d0" holds 2 stages; expected explicit orders, got "1f1b")");
  CHECK(shared(schedule_kind::gpipe) == R"(/schedule/kind: device "d0" holds 2 stages; expected explicit orders, got "gpipe")");
}

TEST_CASE("warm-ups are given for every stage, at least 1, and never less than what a consumer waits for") {
  const auto with = [](std::vector<int> warmup) { return answer(two_stages(), [&](plan& p) { p.schedule.warmup = warmup; }); };
  CHECK(with({2}) == "/schedule/warmup: expected one entry per stage (2), got 1");
  CHECK(with({2, 1, 1}) == "/schedule/warmup: expected one entry per stage (2), got 3");
  CHECK(with({2, 0}) == "/schedule/warmup/1: expected an integer >= 1, got 0");
  CHECK(
      with({1, 2}) ==
      R"(/schedule/warmup: cyclic order at device "d0": stage "s0" (warm-up 1) waits for stage "s1" (warm-up 2), which waits for more of its forwards)");
  CHECK(with({1, 1}) == "valid");
  CHECK(with({4, 9}) == "valid");  // with 4 microbatches, both send all forwards first
  CHECK(with({3, 9}).find("cyclic order") != std::string::npos);
  CHECK(answer(two_stages(), [](plan& p) {
          p.workload.mode = mode::inference;
          p.schedule.warmup = {1, 2};
        }) == "valid");  // forwards only
}

TEST_CASE("a warm-up rule holds only where a gradient returns") {
  plan p = stage_per_device({{0}, {1}}, 1, 4);
  p.schedule.warmup = {1, 3};
  CHECK_FALSE(validate(p, chain(2, {0}), devices(2)));
  CHECK(validate(p, chain(2), devices(2)));
}

TEST_CASE("with unequal sizes an edge without gradient can close a circle that no single edge shows") {
  planning_graph_builder b("m");
  for (const char* name : {"u", "v", "w"}) b.add_layer({.name = name, .forward_flops = 1_GFLOP});
  b.add_edge("u", "v", 1_B, 0_B);
  b.add_edge("u", "w", 1_B);
  b.add_edge("v", "w", 1_B);
  const planning_graph g = std::move(b).build();
  // Sizes are 1 (u), 4 (v), 1 (w). v needs four forwards of u before it sends one; w's first backward needs v. With warm-up 1, u waits for
  // that backward before its second forward.
  plan p = stage_per_device({{0}, {1}, {2}}, 1, 4, {1, 4, 1});
  p.schedule.warmup = {1, 1, 1};
  const auto v = validate(p, g, devices(3));
  REQUIRE(v);
  CHECK(v->where == "/schedule/warmup");
  CHECK(v->what == R"(cyclic order at device "d0": it waits for work that can never be done)");
  p.schedule.warmup = {4, 1, 1};
  CHECK_FALSE(validate(p, g, devices(3)));
}

TEST_CASE("an explicit order names each piece of work of the device's stages once, F before B before W") {
  const auto with = [](const std::string& first, const std::string& second) {
    return answer(ordered(), [&](plan& p) { p.schedule.orders = {order(first), order(second)}; });
  };
  const std::string d0 = "/schedule/orders/d0", good = "1F0 1B0 1F1 1B1";
  CHECK(with("F0 B0 F1 B1", good) == "valid");
  CHECK(with("F0 B0 W0 F1 B1 W1", good) == "valid");
  CHECK(with("F0 F1 B0 B1 W1 W0", good) == "valid");
  CHECK(with("", good) == d0 + ": expected an order for a device that holds a stage, got none");
  CHECK(answer(ordered(), [](plan& p) { p.schedule.orders.pop_back(); }) ==
        "/schedule/orders/d1: expected an order for a device that holds a stage, got none");
  CHECK(with("F0 2F0", good) == d0 + "/1: expected a stage of the plan, got 2");
  CHECK(answer(ordered(), [](plan& p) { p.schedule.orders[0][1].stage = stage_id{}; }) == d0 + "/1: expected a stage of the plan, got -1");
  CHECK(with("F0 1F0", good) == d0 + R"(/1: stage "s1" is not on device "d0")");
  CHECK(with("F0 F2", good) == d0 + "/1: expected a microbatch from 0 to 1, got 2");
  CHECK(answer(ordered(), [](plan& p) { p.schedule.orders[0][1].microbatch = -1; }) ==
        d0 + "/1: expected a microbatch from 0 to 1, got -1");
  CHECK(answer(ordered(), [](plan& p) { p.schedule.orders[0][1].what = phase::optimizer_step; }) ==
        d0 + "/1: expected phase F, B or W; the optimizer's step follows by itself");
  CHECK(with("F0 B0 F1 F1", good) == d0 + "/3: this piece of work is listed twice");
  CHECK(with("F0 B0 F1", good) == d0 + R"(: missing: backward_input of stage "s0", microbatch 1)");
  CHECK(with("F0 B0 B1", good) == d0 + R"(: missing: forward of stage "s0", microbatch 1)");
  CHECK(with("F0 B0 W0 F1 B1", good) == d0 + R"(: missing: backward_weight of stage "s0", microbatch 1)");
  CHECK(with("B0 F0 F1 B1", good) ==
        d0 + R"(/0: backward_input of stage "s0", microbatch 0 comes before the phase that it needs (F before B before W))");
  CHECK(with("F0 W0 B0 F1 B1 W1", good) ==
        d0 + R"(/1: backward_weight of stage "s0", microbatch 0 comes before the phase that it needs (F before B before W))");
  CHECK(answer(ordered(), [](plan& p) { p.schedule.orders.push_back(order("F0")); }) ==
        R"(/schedule/orders/d2/0: stage "s0" is not on device "d2")");
}

TEST_CASE("outside training no stage recomputes or shares out its optimizer's state") {
  for (const mode m : {mode::training, mode::inference, mode::generation}) {
    const auto with = [&](auto stage::*saver, auto how) {
      return answer(two_stages(), [&](plan& p) {
        p.workload.mode = m;
        p.stages[1].*saver = how;
      });
    };
    CHECK(with(&stage::recompute, recomputation::stage) ==
          (m == mode::training ? "valid" : "/stages/1/recompute: expected false outside training, got true"));
    CHECK(with(&stage::shard, sharding::state) ==
          (m == mode::training ? "valid" : "/stages/1/shard_state: expected false outside training, got true"));
  }
}

TEST_CASE("units are the layers of their stage, and what is not is named") {
  const auto with = [](std::vector<std::vector<layer_id>> units) {
    return answer(two_stages(), [&](plan& p) {
      p.stages[0].shard = sharding::fsdp;
      p.stages[0].units = std::move(units);
    });
  };
  const std::string where = "/stages/0/units";
  CHECK(with({ids({0}), ids({1})}) == "valid");
  CHECK(with({ids({0})}) == where + ": expected all layers of the stage, got none with layer \"b\"");
  CHECK(with({ids({0}), ids({0}), ids({1})}) ==
        where + "/1/0: expected layer \"b\" (the stage's, each once and in their order), got layer \"a\"");
  CHECK(with({ids({1, 0})}) == where + "/0/0: expected layer \"a\" (the stage's, each once and in their order), got layer \"b\"");
  CHECK(with({ids({0, 1}), ids({2})}) ==
        where + "/1/0: expected no more layers (the stage's, each once and in their order), got layer \"c\"");
}

TEST_CASE("a pass takes ascending samples, and at most as many as an int holds") {
  const auto with = [](long long between) {
    return answer(two_stages(), [&](plan& p) {
      p.schedule.kind = schedule_kind::gpipe;
      p.microbatches = 1'500'000'000;
      for (stage& s : p.stages) s.cuts = {.forward = {0, between, 3'000'000'000}, .backward = {0, between, 3'000'000'000}};
    });
  };
  CHECK(with(1'500'000'000) == "valid");
  CHECK(with(2) == "/stages/0/cuts/forward/2: expected passes of at most 2147483647 samples, got 3000000000 after 2");
  CHECK(with(3'000'000'000) == "/stages/0/cuts/forward/1: expected passes of at most 2147483647 samples, got 3000000000 after 0");
  CHECK(with(0) == "/stages/0/cuts/forward/1: expected ascending samples, got 0 after 0");
}

TEST_CASE("outside training an order has forwards only") {
  CHECK(answer(ordered(), [](plan& p) { p.workload.mode = mode::inference; }) ==
        "/schedule/orders/d0/2: expected phase F outside training");
  CHECK(answer(ordered(), [](plan& p) {
          p.workload.mode = mode::inference;
          p.schedule.orders = {order("F1 F0"), order("1F0 1F1")};
        }) == "valid");
}

TEST_CASE("explicit orders that can never finish are refused with a device") {
  const auto with = [](const std::string& first, const std::string& second) {
    return answer(ordered(), [&](plan& p) { p.schedule.orders = {order(first), order(second)}; });
  };
  // s1 begins with F1, which s0 sends only after B0, which waits for s1.
  CHECK(with("F0 B0 F1 B1", "1F1 1B1 1F0 1B0") ==
        R"(/schedule/orders: cyclic order at device "d0": it waits for work that can never be done)");
  CHECK(with("F0 F1 B0 B1", "1F1 1B1 1F0 1B0") == "valid");
  // Both stages on one device, a backward of s0 before the forward of s1 that it needs.
  const auto alone = [](const std::string& text) {
    return answer(ordered(), [&](plan& p) {
      p.stages[1].devices = {{device_id(0)}};
      p.schedule.orders = {order(text)};
    });
  };
  CHECK(alone("F0 1F0 1B0 B0 F1 1F1 1B1 B1") == "valid");
  CHECK(alone("F0 B0 1F0 1B0 F1 1F1 1B1 B1") ==
        R"(/schedule/orders: cyclic order at device "d0": it waits for work that can never be done)");
}

TEST_CASE("a rule for a transfer names devices, stages, a microbatch and a time that exist") {
  const auto with = [](const std::function<void(transfer_rule&)>& c) {
    return answer(two_stages(), [&](plan& p) {
      transfer_rule r{.from = device_id(0), .to = device_id(2), .from_stage = stage_id(0), .to_stage = stage_id(1)};
      c(r);
      p.schedule.transfers = {r};
    });
  };
  const std::string where = "/schedule/flows/0";
  CHECK(with([](transfer_rule&) {}) == "valid");
  CHECK(with([](transfer_rule& r) { r.to = device_id(4); }) == where + ": expected two different devices of the cluster, got 0 and 4");
  CHECK(with([](transfer_rule& r) { r.from = device_id{}; }) == where + ": expected two different devices of the cluster, got -1 and 2");
  CHECK(with([](transfer_rule& r) { r.to = device_id(0); }) == where + ": expected two different devices of the cluster, got 0 and 0");
  CHECK(with([](transfer_rule& r) { r.to_stage = stage_id(2); }) == where + ": expected stages of the plan, got 0 and 2");
  CHECK(with([](transfer_rule& r) { r.from_stage = stage_id{}; }) == where + ": expected stages of the plan, got -1 and 1");
  CHECK(with([](transfer_rule& r) { r.microbatch = 4; }) == where + "/microbatch: expected 0 to 3, got 4");
  CHECK(with([](transfer_rule& r) { r.microbatch = -1; }) == where + "/microbatch: expected 0 to 3, got -1");
  CHECK(with([](transfer_rule& r) { r.chunks = 0; }) == where + "/of: expected 1 to 100000, got 0");
  CHECK(with([](transfer_rule& r) { r.chunks = 100001; }) == where + "/of: expected 1 to 100000, got 100001");
  CHECK(with([](transfer_rule& r) { r.chunk = 1; }) == where + "/chunk: expected 0 to 0, got 1");
  CHECK(with([](transfer_rule& r) { r.chunk = -1; }) == where + "/chunk: expected 0 to 0, got -1");
  CHECK(with([](transfer_rule& r) { r.release = seconds(-1); }) == where + "/release: expected finite seconds >= 0, got -1");
  CHECK(with([](transfer_rule& r) { r.release = seconds(not_a_number); }) == where + "/release: expected finite seconds >= 0, got nan");
}

TEST_CASE("the rules for a transfer's chunks list every chunk once and agree in their number") {
  const auto with = [](std::vector<std::pair<int, int>> chunk_of) {
    return answer(two_stages(), [&](plan& p) {
      for (const auto& [chunk, of] : chunk_of) {
        p.schedule.transfers.push_back(
            {.from = device_id(0), .to = device_id(2), .from_stage = stage_id(0), .to_stage = stage_id(1), .chunk = chunk, .chunks = of});
      }
    });
  };
  CHECK(with({{0, 2}, {1, 2}}) == "valid");
  CHECK(with({{1, 2}, {0, 2}}) == "valid");
  CHECK(with({{0, 2}, {0, 2}}) == "/schedule/flows/1: chunk 0 of this flow is listed twice");
  CHECK(with({{0, 2}, {1, 3}}) == "/schedule/flows/1/of: expected the same number in every chunk of a flow, got 3");
  CHECK(with({{0, 3}, {2, 3}}) == "/schedule/flows/0: expected every chunk 0 to 2 of this flow, got 2 of them");
}

TEST_CASE("rules for one reduction speak of the same transfer, whatever microbatches they name") {
  struct named {
    int microbatch, chunk, chunks;
  };
  const auto with = [](transfer_kind kind, const std::vector<named>& rules) {
    return answer(two_stages(), [&](plan& p) {
      for (const named& r : rules) {
        p.schedule.transfers.push_back({.from = device_id(0),
                                        .to = device_id(1),
                                        .from_stage = stage_id(0),
                                        .to_stage = stage_id(0),
                                        .microbatch = r.microbatch,
                                        .kind = kind,
                                        .chunk = r.chunk,
                                        .chunks = r.chunks});
      }
    });
  };
  CHECK(with(transfer_kind::sync, {{0, 0, 2}, {3, 1, 2}}) == "valid");
  // A reduction has no microbatch, so rules for microbatches 0 and 3 name the same chunk.
  CHECK(with(transfer_kind::sync, {{0, 0, 1}, {3, 0, 1}}) ==
        "/schedule/flows/1: chunk 0 of this flow is listed twice; a reduction has no microbatch");
  CHECK(with(transfer_kind::sync, {{0, 0, 1}, {3, 0, 2}, {3, 1, 2}}) ==
        "/schedule/flows/1: chunk 0 of this flow is listed twice; a reduction has no microbatch");
  CHECK(with(transfer_kind::sync, {{0, 0, 2}, {3, 1, 3}}) ==
        "/schedule/flows/1/of: expected the same number in every chunk of a flow, got 3");
  CHECK(with(transfer_kind::forward, {{0, 0, 1}, {3, 0, 2}, {3, 1, 2}}) == "valid");
}

TEST_CASE("require_valid throws the violation's place and text") {
  plan p = two_stages();
  CHECK_NOTHROW(require_valid(p, four_layers(), four_devices()));
  p.microbatches = 0;
  CHECK_THROWS_MATCHES(require_valid(p, four_layers(), four_devices()), invalid_input,
                       Catch::Message("plan: /microbatches: expected an integer >= 1, got 0"));
}

}  // namespace test_validate
