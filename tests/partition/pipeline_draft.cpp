// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <hetplan/partition/pipeline_draft.hpp>
#include <hetplan/simulate/evaluate.hpp>

#include "support/by_hand.hpp"
#include "support/random_draft.hpp"

namespace test_pipeline_draft {

using namespace hetplan;
using namespace hetplan::partition;
using namespace hetplan::test;

namespace {

pipeline_draft random_draft(random_source& random, const draft_problem& x, std::size_t slots) {
  pipeline_draft d;
  std::vector<std::size_t> used(x.devices.size(), 0);
  for (std::size_t first = 0; first < x.model.size(); first += static_cast<std::size_t>(random.integer(1, 2))) {
    const device_id on(random.integer(0, static_cast<int>(x.devices.size()) - 1));
    if (!d.stages.empty() && (d.stages.back().device == on || used[on.index()] == slots)) continue;
    ++used[on.index()];
    d.stages.push_back({d.stages.empty() ? 0 : first, on, x.job.workload.mode == mode::training && random.chance(0.2)});
  }
  d.sizes = random_sizes(random, x.job);
  for (std::size_t i = 0; i < x.devices.size(); ++i) d.rules.push_back(ready_rules[random.integer(0, 3)]);
  const int policy = random.integer(0, 2);
  d.policy = policy == 0 ? sharing::fair_share : policy == 1 ? sharing::exclusive : sharing::per_link;
  return d;
}

}  // namespace

TEST_CASE("a fold by hand: the ends of a pipeline on one device, with a microbatch of two samples and one of one") {
  // Layers of 1, 4 and 2 s forward and as much backward per sample; a sample crosses each boundary in 0.5 s.
  const planning_graph model =
      model_of({work_of("a", 1, 0.5, 0.5), work_of("b", 4, 2, 2), work_of("c", 2, 1, 1)}, {{0, 1, 0.5, 0.5}, {1, 2, 0.5, 0.5}});
  const cluster devices = wired(2);
  const planning_problem problem(model, devices, roofline{}, job{.batch = 3});
  const layer_sequence row = sequence_of(model);
  const search_tables tables(model, row, devices, problem.cost, problem.models.memory, problem.models.energy, problem.job.workload, 3);
  draft_replay replay(problem, tables);
  pipeline_draft d{
      .stages = {{0, device_id(0)}, {1, device_id(1)}, {2, device_id(0)}}, .sizes = {2, 1}, .rules = {ready_rule::path, ready_rule::path}};
  // d0: F0.0 0-2, F0.1 2-3; d1: F1.0 3-11, F1.1 11-15; d0: F2.0 12-16, F2.1 16-18 (its input at 15.5), B2.0 18-22, B2.1 22-24;
  // d1: B1.0 23-31, B1.1 31-35; d0: B0.0 32-34, B0.1 35.5-36.5.
  CHECK(replay(d).response_s() == near(36.5));
  const plan p = replay.to_plan(d, "by hand");
  CHECK(p.schedule.orders[0] == order_of("F0.0 F0.1 F2.0 F2.1 B2.0 B2.1 B0.0 B0.1"));
  CHECK(p.schedule.orders[1] == order_of("F1.0 F1.1 B1.0 B1.1"));
  CHECK(judged(p, model, devices).evaluation.latency.value() == near(36.5));
  // The last stage's backward first: B2.0 16-20, F2.1 20-22, B2.1 22-24; B1.0 21-29, B1.1 29-33; B0.0 30-32, B0.1 33.5-34.5.
  d.rules[0] = ready_rule::inside;
  CHECK(replay(d).response_s() == near(34.5));
  CHECK(judged(replay.to_plan(d, "by hand"), model, devices).evaluation.latency.value() == near(34.5));
}

TEST_CASE("the replay of a draft is the simulator's run of its plan") {
  int runs = 0, different = 0, folded = 0, uneven = 0, recomputing = 0, generating = 0, too_large = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 3000; ++seed) {
    random_source random(seed);
    const draft_problem x = random_draft_problem(random);
    const planning_problem problem = x.problem();
    const layer_sequence row = sequence_of(x.model);
    const search_tables tables(x.model, row, x.devices, problem.cost, problem.models.memory, problem.models.energy, x.job.workload,
                               x.job.largest_share());
    draft_replay replay(problem, tables);
    replay.estimate_energy(true);
    const pipeline_draft d = random_draft(random, x, 2);
    CAPTURE(seed);
    const draft_estimate e = replay(d);
    const plan p = replay.to_plan(d, "random");
    if (!(e.response_s() < std::numeric_limits<double>::infinity())) {
      REQUIRE(e.too_much > 0);
      ++too_large;
      continue;
    }
    const evaluation judged = judge(p, x.model, x.devices, problem.cost).evaluation;
    CHECK(!find_broken_limit(judged, x.devices));
    // Reductions are alone here; the simulator lets them share the network with the last gradients.
    const bool reduces = x.job.workload.mode == mode::training && !x.model.weight_groups().empty();
    if (reduces) {
      CHECK(e.response_s() == Approx(judged.response().value()).epsilon(0.25));
      continue;
    }
    const bool same = e.response_s() == Approx(judged.response().value()).epsilon(1e-6);
    CHECK(e.response_s() == Approx(judged.response().value()).epsilon(same ? 1e-6 : 0.1));
    if (same) CHECK(e.energy_J == Approx(judged.energy().value()).epsilon(1e-6));
    else ++different;
    CHECK(replay(d, e.response_s() * 1.001).response_s() == e.response_s());
    CHECK(replay(d, e.response_s() * 0.999).response_s() >= e.response_s());
    ++runs;
    folded += std::ranges::any_of(d.stages,
                                  [&](const auto& s) { return std::ranges::count(d.stages, s.device, &pipeline_draft::part::device) > 1; });
    uneven += std::ranges::adjacent_find(d.sizes, std::not_equal_to<>()) != d.sizes.end();
    recomputing += std::ranges::any_of(d.stages, &pipeline_draft::part::recompute);
    generating += x.job.workload.mode == mode::generation;
  }
  CAPTURE(runs, different, folded, uneven, recomputing, generating, too_large);
  CHECK(runs > 1000);
  CHECK(different < runs / 100);  // ties
  CHECK(folded > 200);
  CHECK(uneven > 300);
  CHECK(recomputing > 50);
  CHECK(generating > 100);
  CHECK(too_large > 100);
}

TEST_CASE("no stage takes less than nothing, whatever sums of times round to") {
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 50; ++seed) {
    test::random_source random(seed);
    planning_graph_builder b("no forwards");
    for (int i = 0; i < 12; ++i) {
      b.add_layer({.name = "l" + std::to_string(i),
                   .forward_flops = flops(random.chance(0.6) ? 0 : random.between(0, 1e9)),
                   .backward_input_flops = flops(random.between(0, 1e9))});
      if (i > 0) b.add_edge(layer_id(i - 1), layer_id(i), bytes(1));
    }
    const planning_graph model = std::move(b).build();
    device one;
    one.name = "d";
    one.compute = flops_per_second(random.between(1e9, 1e12));
    one.memory = bytes(1e9);
    const cluster c("one", one);
    const layer_sequence row = each_layer_of(sequence_of(model));
    const prefix_table table(model, row, c, roofline{}, plain_memory{}, {}, 4);
    for (std::size_t first = 0; first < 12; ++first) {
      for (std::size_t last = first + 1; last <= 12; ++last) {
        const interval_time t = table.time(first, last, device_id(0), 3);
        REQUIRE(t.backward_s >= 0);
        REQUIRE(t.total_s >= t.backward_s);
        REQUIRE(table.total_s(first, last, device_id(0), 3) == t.total_s);
      }
    }
  }
}

}  // namespace test_pipeline_draft
