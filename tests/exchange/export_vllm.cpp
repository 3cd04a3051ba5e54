// SPDX-License-Identifier: BSL-1.0
#include <numeric>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/exchange/export_runtimes.hpp>

#include "exchange/runtime_split.hpp"
#include "io/reading.hpp"

using namespace hetplan;
using test::block_split;

namespace {

/// Returns the device of each block and of the head, as in vLLM: ranks take consecutive layers by the variable, the last also the head.
std::vector<int> owners_in_vllm(const std::string& command, int n_layer) {
  const auto lines = test::split_text(command, '\n');
  std::vector<int> devices;
  for (const std::string& name : test::split_text(lines[0].substr(lines[0].find(':') + 1), ','))
    devices.push_back(std::stoi(name.substr(2)));
  const std::size_t ranks = std::stoul(test::option(lines[1] + " ", "--pipeline-parallel-size"));
  REQUIRE(devices.size() == ranks);
  const std::string variable = "VLLM_PP_LAYER_PARTITION=";
  REQUIRE(lines[1].rfind(variable, 0) == 0);
  const std::string value = lines[1].substr(variable.size(), lines[1].find(' ') - variable.size());
  std::vector<int> partitions;
  for (const std::string& n : test::split_text(value, ',')) partitions.push_back(std::stoi(n));
  REQUIRE(partitions.size() == ranks);
  REQUIRE(std::accumulate(partitions.begin(), partitions.end(), 0) == n_layer);
  std::vector<int> owners(static_cast<std::size_t>(n_layer), -1);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const int start = std::accumulate(partitions.begin(), partitions.begin() + static_cast<std::ptrdiff_t>(rank), 0);
    for (int layer = start; layer < start + partitions[rank]; ++layer) owners[static_cast<std::size_t>(layer)] = devices[rank];
  }
  owners.push_back(devices.back());
  return owners;
}

}  // namespace

TEST_CASE("the command line for vLLM, by hand") {
  CHECK(exchange::vllm_command(block_split{{4, 2}}.plan(mode::generation), test::block_model(6), test::row_of_devices(2)) ==
        "# on d1; pipeline ranks: d1, d0\n"
        "VLLM_PP_LAYER_PARTITION=4,2 vllm serve MODEL --pipeline-parallel-size 2 --max-model-len 16 --max-num-seqs 1\n");
}

TEST_CASE("vLLM gives random splits to the planned devices") {
  test::for_random_splits(200, false, [](const block_split& s) {
    CHECK(owners_in_vllm(exchange::vllm_command(s.plan(), test::block_model(s.total()), test::row_of_devices(s.stages())), s.total()) ==
          s.owners());
  });
}

TEST_CASE("ranks whose devices share tensors, and the lengths of a generation, as vLLM has them") {
  plan p = block_split{{4, 2}}.plan(mode::generation);  // on d1, d0
  p.stages[0].devices = {{device_id(3)}, {device_id(1)}};
  p.stages[1].devices = {{device_id(2)}, {device_id(0)}};
  p.stages[0].columns = {1, 1};
  p.stages[1].columns = {3, 3};
  p.microbatch_size = 2;
  p.microbatches = 4;
  p.workload.context = 100;
  p.workload.tokens = 28;
  const planning_graph m = test::block_model(6);
  const auto command = [&] { return exchange::vllm_command(p, m, test::row_of_devices(4)); };
  CHECK(command() ==
        "# on d3; pipeline ranks: d3 + d1, d2 + d0\n"
        "VLLM_PP_LAYER_PARTITION=4,2 vllm serve MODEL --pipeline-parallel-size 2 --tensor-parallel-size 2 --max-model-len 128 "
        "--max-num-seqs 8\n");
  p.stages[1].columns = {1, 2};
  CHECK(test::message_of(command) ==
        "export to vLLM: it gives every device of a rank the same part; the columns of stage \"s1\" do not weigh the same");
  p.stages[1].columns = {};
  p.stages[1].devices = {{device_id(2)}};
  CHECK(test::message_of(command) ==
        "export to vLLM: all its ranks share tensors among as many devices; stage \"s1\" has 1 columns, stage \"s0\" has 2");
  p.stages[1].devices = {{device_id(2)}, {device_id(3)}};
  p.stages[1].columns = {1, 1};
  CHECK(test::message_of(command) == "export to vLLM: it gives a device one range of blocks; that of stage \"s1\" has another stage");
}

TEST_CASE("what vLLM cannot run is refused") {
  const auto refusal = [](const block_split& s, mode how = mode::inference) {
    return test::message_of([&] { return exchange::split_for_vllm(s.plan(how), test::block_model(s.total())); });
  };
  CHECK(refusal({{2, 2}}, mode::training) == "export to vLLM: it runs inference; the plan is for training");
  CHECK(refusal({{0, 4}}) == "export to vLLM: it gives every device a block; stage \"s0\" has none");
  CHECK(refusal({{4, 0}}) == "export to vLLM: it gives every device a block; stage \"s1\" has none");
}
