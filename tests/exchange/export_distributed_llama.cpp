// SPDX-License-Identifier: BSL-1.0
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/exchange/dnn_partitioning_json.hpp>
#include <hetplan/exchange/export_llama_cpp.hpp>
#include <hetplan/exchange/export_runtimes.hpp>
#include <hetplan/zoo/models.hpp>

#include "exchange/runtime_split.hpp"
#include "io/reading.hpp"

namespace test_export_distributed_llama {

using namespace hetplan;

namespace {

/// Returns a plan with all layers on rows of devices, the last device first.
plan grid(const planning_graph& m, std::vector<int> columns, int rows = 1) {
  plan p{.model = m.name(), .cluster = "row", .microbatch_size = rows};
  p.workload.mode = mode::generation;
  stage s{.name = "s0"};
  for (const layer& l : m.layers()) s.layers.push_back(l.id);
  int d = rows * static_cast<int>(columns.size());
  while (d > 0) s.devices.push_back({device_id(--d)});
  s.columns = std::move(columns);
  p.stages = {s};
  return p;
}

}  // namespace

TEST_CASE("the command lines for distributed-llama, by hand") {
  const planning_graph m = zoo::model("llama3-8b", {.tokens = 1});
  CHECK(exchange::distributed_llama_commands(grid(m, {1, 1, 1, 1}), m, test::row_of_devices(4)) ==
        "# on d2:\ndllama worker --port 9999 --nthreads CORES\n"
        "# on d1:\ndllama worker --port 9999 --nthreads CORES\n"
        "# on d0:\ndllama worker --port 9999 --nthreads CORES\n"
        "# on d3, which has the files:\ndllama chat --model MODEL.m --tokenizer TOKENIZER.t --buffer-float-type q80 --nthreads CORES "
        "--max-seq-len 16 --workers d2:9999 d1:9999 d0:9999\n");
  CHECK(exchange::nodes_for_distributed_llama(grid(m, {1}), m) == std::vector{device_id(0)});
  CHECK(exchange::nodes_for_distributed_llama(grid(m, {2, 2}), m) == std::vector{device_id(1), device_id(0)});
}

TEST_CASE("what distributed-llama cannot run is refused") {
  const planning_graph m = zoo::model("llama3-8b", {.tokens = 1});
  const auto refusal = [&](const plan& p) { return test::message_of([&] { return exchange::nodes_for_distributed_llama(p, m); }); };
  const std::string begin = "export to distributed-llama: ";
  CHECK(refusal(grid(m, {1, 3})) == begin + "it gives every node the same part; the columns of stage \"s0\" do not weigh the same");
  CHECK(refusal(grid(m, {1, 1, 1})) == begin + "it runs on 1, 2, 4 ... 2^n nodes; the plan has 3");
  CHECK(refusal(grid(m, std::vector<int>(16, 1))) == begin + "it has no more nodes than the model has key/value heads, 8; the plan has 16");
  CHECK(refusal(grid(m, {1, 1}, 2)) == begin + "its nodes share tensors, not samples; stage \"s0\" has 2 rows");
  plan two = grid(m, {1, 1});
  two.microbatches = 2;
  CHECK(refusal(two) == begin + "it generates one sequence at a time; the plan has 2");
  two.microbatches = 1;
  two.workload.prompt_chunk = 64;
  CHECK(refusal(two) == begin + "it passes prompts in chunks of 32; the plan's have 64");
  two.workload.prompt_chunk = 32;
  CHECK(exchange::nodes_for_distributed_llama(two, m).size() == 2);
  two.workload.mode = mode::training;
  CHECK(refusal(two) == begin + "it runs inference; the plan is for training");
  two = grid(m, {1});
  two.stages.push_back({.name = "s1", .layers = {two.stages[0].layers.back()}, .devices = {{device_id(1)}}});
  two.stages[0].layers.pop_back();
  CHECK(refusal(two) == begin + "all its nodes share every layer; the plan has 2 stages");
}

TEST_CASE("exports that know no grids refuse them with the reason") {
  const planning_graph m = test::block_model(4);
  const cluster c = test::row_of_devices(2);
  const plan p = grid(m, {1, 1});
  const auto refused = [&](auto&& with) { return test::message_of([&] { return with(p, m, c); }); };
  const std::string reason = "it knows stages of whole layers; stage \"s0\" is a grid, whose columns share tensors";
  CHECK(refused(exchange::llama_cpp_command) == "export to llama.cpp: " + reason);
  CHECK(refused(exchange::prima_cpp_commands) == "export to prima.cpp: " + reason);
  CHECK(refused([](const plan& q, const planning_graph& g, const cluster& d) { return exchange::torch_split_spec(q, g, d); }) ==
        "export to torch: " + reason);
  CHECK(refused([](const plan& q, const planning_graph& g, const cluster& d) { return exchange::write_placement(q, g, d); }) ==
        "placement: expected every layer on one device, got stage \"s0\", which is a grid, whose columns share tensors");
  plan sharded = grid(m, {1}, 2);
  sharded.workload.mode = mode::training;
  sharded.stages[0].columns.clear();
  sharded.stages[0].shard = sharding::fsdp;
  CHECK(test::message_of([&] { return exchange::torch_split_spec(sharded, m, c); }) ==
        "export to torch: it knows stages of whole layers; stage \"s0\" is under fsdp, which gathers weights before each use");
}

}  // namespace test_export_distributed_llama
