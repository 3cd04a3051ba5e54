// SPDX-License-Identifier: BSL-1.0
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/exchange/export_runtimes.hpp>
#include <hetplan/plan/validate.hpp>
#include <hetplan/zoo/models.hpp>

#include "exchange/runtime_split.hpp"
#include "io/reading.hpp"

using namespace hetplan;

namespace {

/// Stages that end before these layers, and at the model's end.
hetplan::plan cut_before(const planning_graph& model, const std::set<int>& cuts) {
  hetplan::plan p{.model = model.name(), .cluster = "row"};
  p.workload.mode = mode::inference;
  for (int l = 0; l < static_cast<int>(model.size()); ++l) {
    if (l == 0 || cuts.contains(l)) {
      const int s = static_cast<int>(p.stages.size());
      p.stages.push_back({.name = "s" + std::to_string(s), .devices = {{.device = device_id(s)}}});
    }
    p.stages.back().layers.push_back(layer_id(l));
  }
  return p;
}

}  // namespace

TEST_CASE("a cut inside a block moves to the end of the block that leaves it where most of its work is") {
  planning_graph_builder b("m");
  for (const auto& [name, work] : std::vector<std::pair<const char*, double>>{
           {"embed", 1}, {"l0.a", 1}, {"l0.b", 3}, {"l1.a", 3}, {"l1.b", 1}, {"l2.a", 2}, {"l2.b", 2}, {"norm", 0}, {"head", 9}}) {
    b.add_layer({.name = name, .forward_flops = flops(work)});
  }
  for (int i = 1; i < 9; ++i) b.add_edge(layer_id(i - 1), layer_id(i), bytes(1));
  const planning_graph m = std::move(b).build();
  const auto cuts = [&](const std::set<int>& given) {
    std::set<int> found;
    const hetplan::plan whole = exchange::with_whole_blocks(cut_before(m, given), m, "it");
    for (const stage& s : whole.stages) found.insert(s.layers.front().value);
    found.erase(0);
    return found;
  };
  CHECK(cuts({2}) == std::set{1});        // l0 is mostly behind the cut
  CHECK(cuts({4}) == std::set{5});        // l1 mostly before
  CHECK(cuts({6}) == std::set{7});        // l2 half and half: to the first
  CHECK(cuts({3, 5}) == std::set{3, 5});  // whole blocks stay
  CHECK(cuts({8}) == std::set<int>{7});   // the head is one
  CHECK(cuts({3, 4}) == std::set{3, 5});
  CHECK(cuts({4, 5}) == std::set<int>{5});  // a stage with the smaller part of a block has nothing left
  CHECK(cuts({2, 3}) == std::set{1, 3});
}

TEST_CASE("a real model cut anywhere becomes a valid plan of whole blocks, and stays so") {
  const planning_graph model = zoo::model("qwen3-0.6b");
  const cluster devices = test::row_of_devices(6);
  int in_a_row = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 40; ++seed) {
    INFO("seed " << seed);
    test::random_source random(seed);
    std::set<int> cuts;
    // Where one layer or two feed the next stage: cuts through the branches of a block are no row of stages.
    for (int n = random.integer(1, 5); n > 0; --n) cuts.insert(random.integer(1, static_cast<int>(model.size()) - 1));
    const hetplan::plan anywhere = cut_before(model, cuts);
    const std::string refusal = test::message_of([&] { return exchange::with_whole_blocks(anywhere, model, "it"); });
    if (refusal != "no error") {
      CHECK(refusal.find("it runs a row of stages") != std::string::npos);
      continue;
    }
    ++in_a_row;
    const hetplan::plan whole = exchange::with_whole_blocks(anywhere, model, "it");
    REQUIRE_FALSE(validate(whole, model, devices));
    const auto stages = exchange::runtime_stages(whole, model, "it");
    CHECK(stages.size() == whole.stages.size());
    CHECK(exchange::with_whole_blocks(whole, model, "it") == whole);
    for (std::size_t k = 1; k < whole.stages.size(); ++k) {  // a cut moves by less than a block
      const int before = anywhere[stage_id(whole[stage_id(k)].devices.front().device.value)].layers.front().value;
      CHECK(std::abs(whole[stage_id(k)].layers.front().value - before) < 13);
    }
  }
  CHECK(in_a_row >= 3);
}

TEST_CASE("what named the old cuts is given up: transfer rules, and the warm-up where a stage is left out") {
  const planning_graph m = test::block_model(2);  // two layers each: the embedding, l0, l1, the head
  const auto whole = [&](const std::set<int>& cuts) {
    hetplan::plan p = cut_before(m, cuts);
    p.schedule.warmup.assign(p.stages.size(), 1);
    p.schedule.transfers.push_back({.from = device_id(0), .to = device_id(1), .from_stage = stage_id(0), .to_stage = stage_id(1)});
    return exchange::with_whole_blocks(p, m, "it");
  };
  const hetplan::plan moved = whole({3}), fewer = whole({3, 4});
  for (const hetplan::plan& p : {moved, fewer}) {
    CHECK(p.schedule.transfers.empty());
    CHECK(p.stages.size() == 2);
  }
  CHECK(moved.schedule.warmup == std::vector<int>{1, 1});
  CHECK(fewer.schedule.warmup.empty());
}

TEST_CASE("cuts do not move under explicit orders, nor for a plan that is no row of single devices") {
  const planning_graph m = test::block_model(2);
  hetplan::plan p = cut_before(m, {3});
  p.schedule.kind = schedule_kind::explicit_orders;
  const auto refusal = [&] { return test::message_of([&] { return exchange::with_whole_blocks(p, m, "it"); }); };
  CHECK(refusal() == "export to it: cuts cannot move under explicit orders, which name the stages");
  p = cut_before(m, {3});
  p.stages[0].devices.push_back({.device = device_id(2)});
  CHECK(refusal() == "export to it: it gives a stage one device; stage \"s0\" has 2");
}
