// SPDX-License-Identifier: BSL-1.0
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/exchange/export_runtimes.hpp>

#include "exchange/runtime_split.hpp"
#include "io/reading.hpp"

using namespace hetplan;
using test::block_split;

TEST_CASE("exo's shards are the plan's blocks, half-open, in the order of the pipeline") {
  const auto shards = exchange::shards_for_exo(block_split{{4, 2}}.plan(mode::generation), test::block_model(6));
  CHECK(shards == std::vector<exchange::exo_shard>{{device_id(1), 0, 4}, {device_id(0), 4, 6}});
  const std::string program =
      exchange::exo_program(block_split{{4, 2}}.plan(mode::generation), test::block_model(6), test::row_of_devices(2));
  CHECK(program.find("    (\"d1\", 0, 4),\n    (\"d0\", 4, 6),\n") != std::string::npos);
  CHECK(program.find("    \"d1\": \"NODE_ID\",\n    \"d0\": \"NODE_ID\",\n") != std::string::npos);
}

TEST_CASE("a device's name stands quoted in exo's program, whatever it holds") {
  const cluster odd(
      "odd", {{.name = "a \"b\"\n\\", .memory = 1_GB, .compute = 1_TFLOP_per_s}, {.name = "e", .memory = 1_GB, .compute = 1_TFLOP_per_s}},
      shared_medium{1_GB_per_s});
  const std::string program = exchange::exo_program(block_split{{1, 1}}.plan(), test::block_model(2), odd);
  CHECK(program.find("    (\"a \\\"b\\\"\\n\\\\\", 1, 2),\n") != std::string::npos);
}

TEST_CASE("random splits become shards that cover all layers") {
  test::for_random_splits(200, false, [](const block_split& s) {
    const auto shards = exchange::shards_for_exo(s.plan(), test::block_model(s.total()));
    std::vector<int> owners;
    for (const exchange::exo_shard& x : shards) {
      CHECK(x.start_layer == owners.size());
      owners.resize(x.end_layer, static_cast<int>(x.device.value));
    }
    owners.push_back(static_cast<int>(shards.back().device.value));
    CHECK(owners == s.owners());
  });
}

TEST_CASE("what exo cannot run is refused") {
  const auto refusal = [](const block_split& s, mode how = mode::inference) {
    return test::message_of([&] { return exchange::shards_for_exo(s.plan(how), test::block_model(s.total())); });
  };
  CHECK(refusal(block_split{{2, 2}}, mode::training) == "export to exo: it runs inference; the plan is for training");
  CHECK(refusal(block_split{{0, 4}}) == "export to exo: it gives every device a block; stage \"s0\" has none");
}
