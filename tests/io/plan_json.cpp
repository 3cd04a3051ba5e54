// SPDX-License-Identifier: BSL-1.0
#include <string>

#include <catch2/catch.hpp>

#include <hetplan/io/cluster_json.hpp>
#include <hetplan/io/model_json.hpp>
#include <hetplan/io/plan_json.hpp>

#include "io/reading.hpp"

namespace test_plan_json {

using namespace hetplan;
using test::document;
using test::with;

namespace {

planning_graph model() {
  planning_graph_builder b("toy");
  for (const char* name : {"a", "b", "c"}) b.add_layer({.name = name, .forward_flops = 1_GFLOP, .weight = 4_MB});
  b.add_edge("a", "b", 1_kB);
  b.add_edge("b", "c", 1_kB);
  return std::move(b).build();
}
cluster home() {
  std::vector<device> devices;
  for (const char* name : {"laptop0", "phone0", "hub"}) {
    device d;
    d.name = name;
    d.memory = 1_GB;
    d.compute = 1_TFLOP_per_s;
    d.accelerators = 2;
    if (d.name != "phone0") d.interconnect = 1_GB_per_s;
    devices.push_back(d);
  }
  return {"home", devices, shared_medium{600_Mbit_per_s}};
}

const std::string good = R"({"format": "hetplan/plan/1", "model": "toy", "cluster": "home", "planner": "dora", "mode": "training",
  "workload": {"optimizer_factor": 2, "context": 0, "tokens": 16},
  "microbatch_size": 4, "microbatches": 8, "schedule": {"kind": "1f1b", "warmup": [3, 1]}, "network": "priority",
  "stages": [{"name": "front", "layers": ["a", "b"], "devices": [{"name": "laptop0", "samples": 3, "tensor_parallel": 2}, {"name": "phone0", "samples": 1}]},
             {"name": "back", "layers": ["c"], "devices": [{"name": "hub", "samples": 4}]}]})";
const std::string ordered =
    R"({"format": "hetplan/plan/1", "model": "toy", "cluster": "home", "mode": "training", "microbatch_size": 1, "microbatches": 2,
  "schedule": {"kind": "explicit",
    "orders": {"laptop0": [["F", "x", 0], ["F", 0, 1], ["F", 2, 0], ["F", 2, 1], ["B", 2, 0], ["W", 2, 0], ["B", 2, 1], ["W", 2, 1], ["B", 0, 0], ["B", "x", 1]],
               "phone0": [["F", "y", 0], ["F", 1, 1], ["B", 1, 0], ["B", 1, 1]]},
    "flows": [{"from": "laptop0", "to": "phone0", "from_stage": "x", "microbatch": 1, "phase": "forward", "chunk": 0, "of": 2, "release": "1 s"},
              {"from": "laptop0", "to": "phone0", "from_stage": 0, "to_stage": "y", "microbatch": 1, "phase": "forward", "chunk": 1, "of": 2, "priority": -3}]},
  "stages": [{"name": "x", "layers": ["a"], "devices": [{"name": "laptop0", "samples": 1}]},
             {"name": "y", "layers": ["b"], "devices": [{"name": "phone0", "samples": 1}]},
             {"layers": ["c"], "devices": [{"name": "laptop0", "samples": 1}]}]})";
const std::string piped =
    R"({"format": "hetplan/plan/1", "model": "toy", "cluster": "home", "mode": "training", "microbatch_size": 2, "microbatches": 3,
  "sync": {"parameter_server": "hub"},
  "schedule": {"flows": [{"from": "laptop0", "to": "hub", "phase": "sync", "priority": 1}, {"from": "hub", "to": "phone0", "phase": "sync", "priority": 2}]},
  "pipelines": [{"samples": 2, "stages": [{"layers": ["a", "b", "c"], "microbatch_size": 1, "devices": [{"name": "laptop0", "samples": 1}]}]},
                {"samples": 4, "stages": [{"layers": ["a", "b", "c"], "devices": [{"name": "phone0", "samples": 2}]}]}]})";

io::plan_file read_file(const std::string& text) { return io::read_plan(document(text, "p.json"), model(), home()); }
plan read(const std::string& text) { return read_file(text).plan; }
void check_bad(const std::string& text, const std::string& table) { test::check_refusals(text, read, "p.json: ", table); }

}  // namespace

TEST_CASE("a plan file means what it says") {
  const plan p = read(good);
  CHECK(p.model == "toy");
  CHECK(p.cluster == "home");
  CHECK(p.planner == "dora");
  CHECK(p.workload == workload{});
  CHECK(p.batch() == 32);
  CHECK(p.sharing_policy == sharing::priority);
  CHECK(p.schedule.warmup == std::vector<int>{3, 1});
  REQUIRE(p.stages.size() == 2);
  CHECK(p.stages[0] == stage{"front", {layer_id(0), layer_id(1)}, {{device_id(0), 3, 2}, {device_id(1), 1, 1}}, 0, 0});
  CHECK_FALSE(read_file(good).predicted);
  CHECK(read(io::write_plan(p, model(), home())) == p);
}

TEST_CASE("a short plan file has the defaults") {
  const plan p =
      read(R"({"format": "hetplan/plan/1", "model": "toy", "cluster": "home", "mode": "inference", "microbatch_size": 1, "microbatches": 1,
    "stages": [{"layers": ["c", "a", "b"], "devices": [{"name": "hub", "samples": 1}]}]})");
  CHECK(p.planner == "given");
  CHECK(p.workload == workload{.mode = mode::inference});
  CHECK(p.schedule == plan_schedule{});
  CHECK(p.sharing_policy == sharing::fair_share);
  CHECK(p.stages[0].name == "s0");
  CHECK(p.stages[0].devices[0].tensor_parallel == 1);
}

TEST_CASE("a plan names its optimizer, or how much state it has") {
  const std::string named = with(good, "\"optimizer_factor\": 2", "\"optimizer\": \"adamw-amp\"");
  const plan p = read(named);
  CHECK(p.workload.optimizer == optimizer::adamw_amp);
  CHECK(read(io::write_plan(p, model(), home())) == p);
  check_bad(
      named,
      R"("adamw-amp" => "adam" => /workload/optimizer: expected "adamw", "adamw-amp", "adamw-8bit", "sgd", "sgd-amp", "sgd-momentum" or "sgd-momentum-amp", got "adam"
    "adamw-amp" => "sgd", "optimizer_factor": 1 => /workload/optimizer: expected optimizer or optimizer_factor, got both)");
}

TEST_CASE("what saves memory is read and written, for each stage by itself, and only training has it") {
  const std::string saving = with(with(good, "\"samples\": 1}]", "\"samples\": 1}], \"recompute\": true, \"shard_state\": true"),
                                  "\"samples\": 4}]", "\"samples\": 4}], \"recompute\": false");
  const plan p = read(saving);
  CHECK(p.stages[0].recompute == recomputation::stage);
  CHECK(p.stages[0].shard == sharding::state);
  CHECK(p.stages[1].recompute == recomputation::none);
  CHECK(p.stages[1].shard == sharding::none);
  const std::string written = io::write_plan(p, model(), home());
  CHECK(read(written) == p);
  CHECK(nlohmann::json::parse(written)["stages"][0]["recompute"] == true);
  CHECK_FALSE(nlohmann::json::parse(written)["stages"][1].contains("recompute"));
  CHECK(p != read(good));
  check_bad(saving, R"("training" => "inference" => /stages/0/recompute: expected false outside training, got true)");
  const std::string by_blocks = with(saving, "\"recompute\": true", "\"recompute\": \"blocks\"");
  const plan blocks = read(by_blocks);
  CHECK(blocks.stages[0].recompute == recomputation::blocks);
  CHECK(read(io::write_plan(blocks, model(), home())) == blocks);
  check_bad(by_blocks, R"("training" => "inference" => /stages/0/recompute: expected false outside training, got "blocks"
    "blocks" => "layers" => /stages/0/recompute: expected true, false or "blocks", got "layers")");
}

TEST_CASE("every network policy and way of transfers is read and written") {
  for (const sharing s : all_sharings) {
    plan p = read(with(good, "priority", std::string(to_string(s))));
    CHECK(p.sharing_policy == s);
    CHECK(p.transfers == transfer_mode::overlap);
    p.transfers = transfer_mode::block;
    CHECK(read(io::write_plan(p, model(), home())) == p);
  }
  CHECK(read(with(good, "\"network\"", "\"transfers\": \"overlap\", \"network\"")) == read(good));
}

TEST_CASE("explicit orders and flows are read and written") {
  const plan p = read(ordered);
  CHECK(p.stages[2].name == "s2");
  REQUIRE(p.schedule.orders.size() == 3);
  CHECK(p.schedule.orders[0].size() == 10);
  CHECK(p.schedule.orders[0][5] == order_entry{phase::backward_weight, stage_id(2), 0});
  CHECK(p.schedule.orders[2].empty());
  REQUIRE(p.schedule.transfers.size() == 2);
  CHECK(p.schedule.transfers[0] ==
        transfer_rule{device_id(0), device_id(1), stage_id(0), stage_id(1), 1, transfer_kind::forward, 0, 2, seconds(1), 0});
  CHECK(p.schedule.transfers[1] ==
        transfer_rule{device_id(0), device_id(1), stage_id(0), stage_id(1), 1, transfer_kind::forward, 1, 2, {}, -3});
  CHECK(read(io::write_plan(p, model(), home())) == p);
}

TEST_CASE("flows may stand beside the schedule, and are found there when they are wrong") {
  std::string beside = with(piped, "\"schedule\": {\"flows\": [", "\"flows\": [");
  beside = with(beside, "\"priority\": 2}]},", "\"priority\": 2}],");
  CHECK(read(beside) == read(piped));
  check_bad(beside, R"(
    "flows" => "schedule": {"flows": []}, "flows" => /flows: expected flows once, here or in the schedule, got both
    "priority": 1} => "of": 2} => /flows/0: expected every chunk...
  )");
}

TEST_CASE("pipelines and a parameter server are read and written") {
  const plan p = read(piped);
  CHECK(p.pipelines == std::vector<long long>{2, 4});
  CHECK(p.stages[0].microbatch_size == 1);
  CHECK(p.stages[1].pipeline == 1);
  CHECK(p.parameter_server == device_id(2));
  // The server holds no stage: transfers from or to it name the other device's stage.
  CHECK(p.schedule.transfers[0].to_stage == stage_id(0));
  CHECK(p.schedule.transfers[1].from_stage == stage_id(1));
  CHECK(read(io::write_plan(p, model(), home())) == p);
}

TEST_CASE("predictions are read and written") {
  plan p = read(good);
  evaluation e;
  e.latency = seconds(1.93);
  e.devices.resize(3);
  e.devices[0] = {true, joules(0.1 + 0.2), bytes(4.1e9), {}};
  e.devices[1] = {true, joules(0), bytes(1e17), {}};
  e.resource_bytes.resize(1);
  e.bound = seconds(1.71);
  e.gap = 1.93 / 1.71 - 1;
  e.schedule_bound = seconds(1.88);
  e.schedule_gap = -1e-17;
  const auto read_again = [&] { return read_file(io::write_plan(ranked_plan{p, e}, model(), home())); };
  CHECK(read_again() == io::plan_file{p, e});
  p.workload.mode = mode::generation;
  p.schedule.warmup.clear();
  e.time_between_tokens = seconds(0.1);
  CHECK(read_again() == io::plan_file{p, e});
}

TEST_CASE("a bad plan file ends in one message with file, pointer, expectation and finding") {
  check_bad(good, R"(
    plan/1 => plan/3 => /format: expected "hetplan/plan/1", got "hetplan/plan/3"
    "model": "toy",  => => /model: expected the name of a model, got nothing
    "mode": "training" => "mode": "test" => /mode: expected "training", "inference" or "generation", got "test"
    "microbatches": 8 => "microbatches": 0 => /microbatches: expected an integer >= 1, got 0
    "microbatches": 8 => "microbatches": 4294967304 => /microbatches: expected an integer from 1 to 2147483647, got 4294967304
    s": 8 => s": 2147483647 => /microbatches: expected a plan of at most 4e+06 tasks and transfers, which take 1 GB, got ...
    "tokens": 16 => "tokens": 1.5 => /workload/tokens: expected an integer >= 0, got 1.5
    "context": 0 => "contexts": 0 => /workload/contexts: expected a known key, got "contexts"; did you mean "context"?
    "priority" => "prescribed" => /network: expected "fair_share", "priority", "exclusive", "per_link" or "unlimited", got "prescribed"
    "kind": "1f1b" => "kind": "zb" => /schedule/kind: expected "1f1b", "gpipe" or "explicit", got "zb"
    "1f1b", "warmup": [3, 1] => "explicit" => /schedule/orders: expected an object from device to its order, got nothing
    "kind": "1f1b" => "kind": "gpipe" => /schedule/warmup: expected warmup with kind "1f1b" only, got kind "gpipe"
    [3, 1] => [3] => /schedule/warmup: expected one entry per stage (2), got 1
    [3, 1] => [] => /schedule/warmup: expected one entry per stage (2), got 0
    [3, 1] => [0, 1] => /schedule/warmup/0: expected an integer >= 1, got 0
    [3, 1] => [1, 3] => /schedule/warmup: cyclic order at device "laptop0"...
    ["c"] => ["c", "d"] => /stages/1/layers/1: expected the name of a layer of model "toy", got "d"; did you mean "a"?
    ["c"] => ["b"] => /stages/1/layers/0: layer "b" is in two stages of one pipeline
    ["a", "b"] => ["a"] => /stages: expected every layer in a stage, got none with layer "b"
    ["c"] => [] => /stages/1/layers: expected at least one layer, got an empty array
    "hub" => "hob" => /stages/1/devices/0/name: expected the name of a device of cluster "home", got "hob"; did you mean "hub"?
    , "samples": 4 => => /stages/1/devices/0/samples: expected an integer >= 1, got nothing
    "samples": 4 => "samples": 3 => /stages/1/devices: expected samples that sum to the microbatch size 4, got 3
    "phone0" => "laptop0" => /stages/0/devices/1: device "laptop0" appears twice in the stage
    parallel": 2 => parallel": 3 => /stages/0/devices/0/tensor_parallel: expected 1 to the 2 accelerators of device "laptop0", got 3
    "stages" => "pipelines": [], "stages" => /pipelines: expected either stages or pipelines, got both
    "stages" => "stags" => /stags: expected a known key, got "stags"; did you mean "stages"?
    {"format": "hetplan/plan/1", "model": "m", "cluster": "c", "mode": "training", "microbatch_size": 1, "microbatches": 1}
      => /stages: expected an array of stages, got nothing
    "training", => "training", "predicted": {"latency": 1, "energy": {"laptop1": 3}},
      => /predicted/energy/laptop1: expected the name of a device of cluster "home" as key, got "laptop1"; did you mean "laptop0"?
    "training", => "training", "predicted": {"latency": -1}, => /predicted/latency: expected seconds >= 0, got -1
    "samples": 4}] => "samples": 4}], "recompute": 1 => /stages/1/recompute: expected true, false or "blocks", got 1
    "samples": 4}] => "samples": 4}], "shard": true => /stages/1/shard: expected "zero2" or "fsdp", got true
    "network" => "transfers": "stop", "network" => /transfers: expected "overlap" or "block", got "stop"
    "network" => "sync": "tree", "network" => /sync: expected "ring" or {"parameter_server": a device}, got "tree"
    "network" => "sync": {}, "network" => /sync/parameter_server: expected the name of a device, got nothing
  )");
  CHECK_NOTHROW(read(with(good, "\"network\"", "\"sync\": \"ring\", \"network\"")));
}

TEST_CASE("bad cuts and rows are found") {
  const std::string plain = with(good, "{\"kind\": \"1f1b\", \"warmup\": [3, 1]}", "{\"kind\": \"gpipe\"}");
  const std::string cut = with(plain, "[\"c\"]", R"(["c"], "cuts": {"backward": [0, 32], "forward": [0, 32]})");
  CHECK_NOTHROW(read(cut));
  const std::string grid = with(plain, R"("hub", "samples": 4}])", R"("hub"}], "grid": {"rows": [4], "columns": [1]})");
  CHECK_NOTHROW(read(grid));
  check_bad(cut, R"(
    "forward": [0, 32] => "forward": [0] => /stages/1/cuts/forward: expected 0, ..., 32, got a list of 1
    "forward": [0, 32] => "forward": [] => /stages/1/cuts/forward: expected samples: 0, ..., all of them, got an empty array
  )");
  check_bad(grid, R"(
    [4] => "4" => /stages/1/grid/rows: expected an array of integers >= 1, one for each row, got "4"
    [1] => [] => /stages/1/grid/columns: expected an array of integers >= 1, one for each column, got an empty array
  )");
}

TEST_CASE("a bad explicit order is found") {
  check_bad(ordered, R"(
    "explicit" => "1f1b" => /schedule/orders: expected orders with kind "explicit" only, got kind "1f1b"
    phone0": [ => phone1": [ => /schedule/orders/phone1: expected the name of a device of cluster "home" as key, got "phone1"; did you mean "phone0"?
    ["F", "x", 0] => ["F", "x"] => /schedule/orders/laptop0/0: expected [phase, stage, microbatch], got an array
    ["F", "x", 0] => ["F", "x", 0, 0] => /schedule/orders/laptop0/0: expected [phase, stage, microbatch], got an array
    ["F", "x", 0] => ["G", "x", 0] => /schedule/orders/laptop0/0/0: expected "F", "B" or "W", got "G"
    ["F", "x", 0] => ["F", "xx", 0] => /schedule/orders/laptop0/0/1: expected the index or name of a stage, got "xx"; did you mean "x"?
    ["F", "x", 0] => ["F", 3, 0] => /schedule/orders/laptop0/0/1: expected an integer from 0 to 2, got 3
    ["F", "x", 0] => ["F", 1, 0] => /schedule/orders/laptop0/0: stage "y" is not on device "laptop0"
    ["F", "x", 0] => ["F", "x", -1] => /schedule/orders/laptop0/0/2: expected an integer >= 0, got -1
    ["F", "x", 0] => ["F", "x", 2] => /schedule/orders/laptop0/0: expected a microbatch from 0 to 1, got 2
    ["F", "x", 0],  => => /schedule/orders/laptop0: missing: forward of stage "x", microbatch 0...
    "name": "y" => "name": "x" => /schedule/orders/laptop0/0/1: expected the index of a stage, or a name that only one has, got "x"
    ["F", "y", 0], ["F", 1, 1], ["B", 1, 0], ["B", 1, 1] => ["F", "y", 0], ["B", 1, 0], ["F", 1, 1], ["B", 1, 1]
      => /schedule/orders: cyclic order at device "laptop0": it waits for work that can never be done
    "explicit", => "explicit", "order": {}, => /schedule/order: expected a known key, got "order"; did you mean "orders"?
  )");
}

TEST_CASE("a bad flow is found") {
  check_bad(ordered, R"(
    "from_stage": "x",  => => /schedule/flows/0/from_stage: expected a stage, because device "laptop0" holds 2 of them, got nothing
    "microbatch": 1,  => => /schedule/flows/0/microbatch: expected an integer >= 0, got nothing
    "phase": "forward" => "phase": "forwards" => /schedule/flows/0/phase: expected "forward", "backward", "sync" or "token", got "forwards"
    "chunk": 0 => "chunk": 2 => /schedule/flows/0/chunk: expected 0 to 1, got 2
    "chunk": 0 => "chunk": 1 => /schedule/flows/1: chunk 1 of this flow is listed twice...
    "1 s" => -1 => /schedule/flows/0/release: expected seconds >= 0, got -1
    "of": 2, "release" => "of": 0, "release" => /schedule/flows/0/of: expected an integer >= 1, got 0
    "priority": -3 => "priority": 0.5 => /schedule/flows/1/priority: expected an integer >= -2147483648, got 0.5
    "to": "phone0" => "to": "laptop0" => /schedule/flows/0...
    "microbatches": 2, => "microbatches": 2, "transfers": "block",
      => /schedule/flows/0: a forward transfer is part of its devices' work, because transfers block...
  )");
}

TEST_CASE("bad pipelines are found") {
  check_bad(piped, R"(
    "samples": 4 => "samples": 3 => /pipelines: expected samples that sum to microbatch_size * microbatches = 6, got 5
    s": 4 => s": 9223372036854775807 => /pipelines/1/samples: expected at most the 4 samples that are left, got 9223372036854775807
    "samples": 4,  => => /pipelines/1/samples: expected an integer >= 1, got nothing
    ["a", "b", "c"], "devices" => ["a", "b"], "devices" => /pipelines/1/stages: expected every layer in a stage, got none with layer "c"
    "microbatch_size": 1 => "microbatch_size": 3 => /pipelines/0/stages/0/microbatch_size: expected a size that divides...
    "hub"} => "pub"} => /sync/parameter_server: expected the name of a device of cluster "home", got "pub"; did you mean "hub"?
  )");
}

}  // namespace test_plan_json
