// SPDX-License-Identifier: BSL-1.0
#include <hetplan/cluster/device.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/stage_graph.hpp>

#include <utility>
#include <vector>

#include <catch2/catch.hpp>

namespace test_reductions {

using namespace hetplan;

namespace {

/// Returns four layers: the first and the last share a tensor of 8 bytes, the second has 3 bytes, the third is frozen.
planning_graph tied() {
  planning_graph_builder b("tied");
  b.add_layer({.name = "embed", .forward_flops = 1_GFLOP, .weight = 8_B, .weight_group = "table"});
  b.add_layer({.name = "block", .forward_flops = 1_GFLOP, .weight = 3_B});
  b.add_layer({.name = "frozen", .forward_flops = 1_GFLOP, .weight = 5_B, .trainable = false});
  b.add_layer({.name = "head", .forward_flops = 1_GFLOP, .weight = 8_B, .weight_group = "table"});
  for (int l = 1; l < 4; ++l) b.add_edge(layer_id(l - 1), layer_id(l), 1_B);
  return std::move(b).build();
}

plan in_three_stages(std::vector<assignment> first, std::vector<assignment> middle, std::vector<assignment> last) {
  plan p;
  p.microbatch_size = 2;
  p.microbatches = 2;
  p.stages = {{.layers = {layer_id(0), layer_id(1)}, .devices = std::move(first)},
              {.layers = {layer_id(2)}, .devices = std::move(middle)},
              {.layers = {layer_id(3)}, .devices = std::move(last)}};
  return p;
}

constexpr device_id a(0), b(1), c(2), d(3);

std::vector<device_id> devices_of(const reduction& r) {
  std::vector<device_id> all;
  for (const reduction::member& m : r.members) all.push_back(m.device);
  return all;
}

}  // namespace

TEST_CASE("replicas reduce what they train, and the first devices of stages with a common tensor that tensor") {
  const planning_graph model = tied();
  const std::vector<reduction> all = reductions_of(in_three_stages({{a, 1}, {b, 1}}, {{c, 1}, {b, 1}}, {{d, 2}}), model);
  REQUIRE(all.size() == 2);  // the frozen stage has nothing to reduce

  CHECK(devices_of(all[0]) == std::vector{a, b});
  CHECK_FALSE(all[0].is_across_stages());
  CHECK(all[0].layers == std::vector{layer_id(0), layer_id(1)});
  CHECK(all[0].bytes == 11);

  CHECK(devices_of(all[1]) == std::vector{a, d});
  CHECK(all[1].is_across_stages());
  CHECK(all[1].holders == std::vector{stage_id(0), stage_id(2)});
  CHECK(all[1].layers == std::vector{layer_id(0)});
  CHECK(all[1].bytes == 8);
}

TEST_CASE("a tensor whose holders begin on one device is not reduced across stages") {
  CHECK(reductions_of(in_three_stages({{a, 2}}, {{b, 2}}, {{a, 2}}), tied()).empty());
}

}  // namespace test_reductions
