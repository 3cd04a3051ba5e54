// SPDX-License-Identifier: BSL-1.0
#include <filesystem>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/exchange/sailor_profile.hpp>
#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/plan/validate.hpp>

#include "io/reading.hpp"
#include "support/by_hand.hpp"
#include "support/shared_data.hpp"

namespace test_sailor_plan {

using namespace hetplan;
using test::check_refusals;
using test::message_of;
using test::with;

namespace {

// Two stages of two replicas each, on machines with 4 and 2 accelerators.
const std::string toy = R"({"zone": "z", "pipeline_list": [{"num_stages": 2, "layers_per_stage": [[0, 1], [2]],
 "tmp_per_stage": [[[[["fast", 4, "z"]], 4], [[["slow", 2, "z"]], 2]], [[[["slow", 2, "z"]], 2], [[["fast", 4, "y"]], 4]]],
 "dp": [2, 2]}], "mbs": 3, "gbs": 24, "real": 1.5, "red_grads": 0.25, "max_mem": 4096, "N": 4})";

exchange::sailor_plan read(const std::string& text) { return exchange::read_sailor_plan(test::document(text, "plan.json")); }
/// Returns a chain of layers of 4 FLOP forward and 8 B of weights, with 10 B between them.
planning_graph chain(int layers = 3) {
  planning_graph_builder b("toy");
  for (int i = 0; i < layers; ++i) b.add_layer({.name = "l" + std::to_string(i), .forward_flops = flops(4), .weight = bytes(8)});
  for (int i = 1; i < layers; ++i) b.add_edge(layer_id(static_cast<std::size_t>(i - 1)), layer_id(static_cast<std::size_t>(i)), bytes(10));
  return std::move(b).build();
}
cluster cluster_of(const exchange::sailor_plan& p) {
  std::vector<device> devices = exchange::sailor_devices(p);
  for (device& d : devices) {
    d.memory = 1_GB;
    d.compute = flops_per_second(1);
  }
  return {"toy", devices, mesh{bytes_per_second(1)}};
}

}  // namespace

TEST_CASE("a Sailor plan is read with its stages, replicas and measured numbers") {
  const exchange::sailor_plan p = read(toy);
  CHECK(p.microbatch_size == 3);
  CHECK(p.batch == 24);
  REQUIRE(p.stages.size() == 2);
  CHECK(p.stages[0].layers == std::vector<std::size_t>{0, 1});
  REQUIRE(p.stages[1].replicas.size() == 2);
  CHECK(p.stages[1].replicas[1] == exchange::sailor_replica{{{"fast", 4, "y"}}, 4});
  CHECK(p.iteration == seconds(1.5));
  CHECK(p.reduction == seconds(0.25));
  CHECK(p.peak_memory == bytes(4096));
  CHECK(p.layers() == 3);
  const exchange::sailor_plan planned = read(with(toy, R"(, "real": 1.5, "red_grads": 0.25, "max_mem": 4096)", ""));
  CHECK(!planned.iteration);
  CHECK(!planned.reduction);
  CHECK(!planned.peak_memory);
}

TEST_CASE("a Sailor plan becomes a valid plan with a device per replica and the warm-up of DeepSpeed") {
  const exchange::sailor_plan p = read(toy);
  const planning_graph model = chain();
  const cluster c = cluster_of(p);
  REQUIRE(c.size() == 4);
  CHECK(c[device_id(0)].name == "fast.0");
  CHECK(c[device_id(2)].name == "slow.1");
  CHECK(c[device_id(3)].name == "fast.1");
  CHECK(c[device_id(3)].accelerators == 4);
  const plan made = exchange::plan_of(p, model);
  CHECK(made.microbatch_size == 6);
  CHECK(made.microbatches == 4);
  CHECK(made.batch() == p.batch);
  CHECK(made.schedule.warmup == std::vector<int>{2, 1});
  CHECK(made.stages[1].devices == std::vector<assignment>{{device_id(2), 3}, {device_id(3), 3}});
  CHECK(made.stages[0].layers == std::vector<layer_id>{layer_id(0), layer_id(1)});
  CHECK_NOTHROW(require_valid(made, model, c));
}

TEST_CASE("a replica of a Sailor plan hears of its own samples only, and the replicas of a stage reduce their gradients") {
  const exchange::sailor_plan p = read(with(toy, R"("gbs": 24)", R"("gbs": 6)"));  // one microbatch
  const planning_graph model = chain();
  const judgement j = judge(exchange::plan_of(p, model), model, cluster_of(p), roofline{});
  // Forward: 2 layers of 4 FLOP for 3 samples, 30 B, 1 layer. Backward: twice the work. Then rings of two: 16 B and 8 B. Stage 0 ends
  // its backward last, at 24 + 30 + 12 + 24 + 30 + 48 s; its ring carries 16 B each way.
  CHECK(j.evaluation.latency.value() == test::near(24 + 30 + 12 + 24 + 30 + 48 + 16));
  std::size_t between = 0;
  for (const tasks::transfer& t : j.graph.transfers) between += t.kind == transfer_kind::forward ? 1U : 0U;
  CHECK(between == 2);
}

TEST_CASE("stages with other numbers of replicas have a microbatch size of their own") {
  std::string text = with(toy, R"([[[["slow", 2, "z"]], 2], [[["fast", 4, "y"]], 4]]])", R"([[[["slow", 2, "z"]], 2]]])");
  const exchange::sailor_plan p = read(with(text, "[2, 2]", "[2, 1]"));
  plan made = exchange::plan_of(p, chain());
  CHECK(made.size_of(made.stages[0]) == 6);
  CHECK(made.size_of(made.stages[1]) == 3);
  set_warmup(made, chain(), warmup_rule::hide_communication);  // 2 depth - 1 is too few where microbatch sizes differ
  CHECK_NOTHROW(require_valid(made, chain(), cluster_of(p)));
}

TEST_CASE("layers out of order are refused by name, and renumbered counts them on") {
  const exchange::sailor_plan p = read(with(toy, "[[0, 1], [2]]", "[[0, 11], [2]]"));
  CHECK(message_of([&] { return exchange::plan_of(p, chain()); }) == "sailor: plan.json: stage 0: expected layer 1 next, got 11");
  CHECK(exchange::renumbered(p).stages == read(toy).stages);
  CHECK(message_of([&] { return exchange::plan_of(p, chain(4)); }) == "sailor: plan.json: expected the 4 layers of model \"toy\", got 3");
}

TEST_CASE("a Sailor plan that contradicts itself is refused with the place and what was expected") {
  check_refusals(toy, read, "plan.json: ", R"(
    [] => expected a JSON object, got an empty array
    "mbs": 3,  => => /mbs: expected an integer >= 1, got nothing
    "mbs": 3 => "mbs": 0 => /mbs: expected an integer >= 1, got 0
    "gbs": 24 => "gbs": 25 => /gbs: expected a multiple of 6, what the replicas of a stage take at once, got 25
    "real": 1.5 => "real": 0 => /real: expected ...
    "max_mem": 4096 => "max_mem": "much" => /max_mem: expected ...
    [[0, 1], [2]] => [[0, 1, 2]] => /pipeline_list/0/layers_per_stage: expected layers of 2 stages, got 1
    [[0, 1], [2]] => [[0, 1], []] => /pipeline_list/0/layers_per_stage/1: expected the numbers of at least...
    [[0, 1], [2]] => [[0, 1], [-2]] => /pipeline_list/0/layers_per_stage/1/0: expected ...
    [2, 2] => [2, 3] => /pipeline_list/0/dp/1: expected the number of replicas that tmp_per_stage lists, 2, got 3
    [[["fast", 4, "z"]], 4] => [[["fast", 4, "z"]], 5]
      => /pipeline_list/0/tmp_per_stage/0/0/1: expected a degree of at most 4, as many as the machines have accelerators, got 5
    4, "z" => 4 => /pipeline_list/0/tmp_per_stage/0/0/0/0: expected a machine: kind, number of accelerators, zone, got 2...
    "pipeline_list": [ => "pipeline_list": [], "x": [ => /pipeline_list: expected one pipeline, got 0
  )");
  CHECK(message_of([] {
          return exchange::sailor_devices(read(with(toy, R"([[["fast", 4, "z"]], 4])", R"([[["fast", 4, "z"], ["slow", 2, "z"]], 4])")));
        }) == "sailor: plan.json: expected replicas of one machine each, got one of 2 machines");
}

TEST_CASE("the published Sailor plans are read, and their traps are where they are said to be") {
  const auto there = test::shared_data("data/sailor/validation");
  if (!there) return;
  const std::filesystem::path& folder = *there;
  std::size_t read_files = 0, misnumbered = 0, of_26_layers = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    INFO(entry.path());
    const exchange::sailor_plan p = exchange::read_sailor_plan(io::json_document::load(entry.path().string()));
    ++read_files;
    misnumbered += exchange::renumbered(p).stages == p.stages ? 0U : 1U;
    of_26_layers += p.layers() == 26 ? 1U : 0U;
    CHECK((p.layers() == 26 || p.layers() == 34));
    CHECK(p.iteration.has_value());
    const exchange::sailor_plan counted = exchange::renumbered(p);
    const planning_graph model = chain(static_cast<int>(p.layers()));
    CHECK_NOTHROW(require_valid(exchange::plan_of(counted, model), model, cluster_of(counted)));
  }
  CHECK(read_files == 24);
  CHECK(misnumbered == 3);
  CHECK(of_26_layers == 17);
}

}  // namespace test_sailor_plan
