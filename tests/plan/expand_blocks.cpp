// SPDX-License-Identifier: BSL-1.0
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/coarsen/fuse_operators.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/plan/expansion_size.hpp>
#include <hetplan/plan/validate.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

namespace test_expand_blocks {

using namespace hetplan;

TEST_CASE("a plan of a fused model becomes a plan of the model, stage by stage") {
  const planning_graph model = zoo::model("resnet50", {});
  const coarsen::blocks b = coarsen::fuse_operators(model, coarsen::tensorrt_like());
  const planning_graph fused = coarsen::fused_graph(model, b, coarsen::tensorrt_like());
  const cluster devices = zoo::cluster("smart-home-2");
  plan p{.model = fused.name(), .cluster = devices.name(), .workload = {.mode = mode::inference}};
  const std::size_t half = fused.size() / 2;
  p.stages.resize(2);
  for (const layer& l : fused.layers()) p.stages[l.id.index() < half ? 0 : 1].layers.push_back(l.id);
  p.stages[0].devices = {{.device = device_id(0)}};
  p.stages[1].devices = {{.device = device_id(1)}};
  REQUIRE_FALSE(validate(p, fused, devices).has_value());
  const plan whole = expand_blocks(p, b);
  CHECK_FALSE(validate(whole, model, devices).has_value());
  std::vector<int> stage_of(model.size(), -1);
  std::size_t layers = 0;
  for (int s = 0; s < 2; ++s) {
    for (const layer_id l : whole.stages[static_cast<std::size_t>(s)].layers) {
      stage_of[l.index()] = s;
      ++layers;
    }
  }
  CHECK(layers == model.size());
  for (const layer& l : model.layers()) CHECK(stage_of[l.id.index()] == (b.block_of[l.id.index()] < half ? 0 : 1));
  for (const layer_edge& e : model.edges()) CHECK(stage_of[e.from.index()] <= stage_of[e.to.index()]);
  plan rest = whole;
  rest.stages = p.stages;
  CHECK(rest == p);
}

TEST_CASE("a plan of something else than the blocks is refused") {
  plan p;
  p.stages.resize(1);
  p.stages[0].layers = {layer_id(1)};
  CHECK_THROWS_AS(expand_blocks(p, {{{layer_id(0), layer_id(1)}}, {0, 0}}), invalid_input);
}

}  // namespace test_expand_blocks
