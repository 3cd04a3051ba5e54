// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <hetplan/cost/cost_model.hpp>
#include <hetplan/estimate/bounds.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/describe.hpp>
#include <hetplan/solve/glpk.hpp>

#include "support/limited_job.hpp"

namespace test_prove_infeasible {
using namespace hetplan;

device box(const char* name, double memory, double budget_J = 0, double max_busy = 1) {
  device d{.name = name, .memory = bytes(memory), .compute = flops_per_second(1e12), .power = {watts(2), watts(12)}};
  d.half_batch = 0;
  d.launch = {};
  if (budget_J > 0) d.energy_budget = joules(budget_J);
  d.max_busy = max_busy;
  return d;
}

/// Returns layers of 1 TFLOP with these weights in bytes.
planning_graph layers_of(const std::vector<double>& weights, const char* group = "") {
  planning_graph_builder b("m");
  for (std::size_t i = 0; i < weights.size(); ++i) {
    b.add_layer({.name = "l" + std::to_string(i), .forward_flops = flops(1e12), .weight = bytes(weights[i]), .weight_group = group});
    if (i > 0) b.add_edge(layer_id(i - 1), layer_id(i), bytes(1));
  }
  return std::move(b).build();
}

std::optional<infeasibility_proof> proof_for(const planning_graph& m, std::vector<device> devices, hetplan::job j = {},
                                             any_lp_solver lp = {}) {
  const cluster c("c", std::move(devices), shared_medium{bytes_per_second(1e6), seconds(0)});
  return prove_infeasible(planning_problem{m, c, roofline{}, j, {}, std::move(lp)});
}

job inference(int batch) { return {.workload = {.mode = mode::inference}, .batch = batch}; }

void check_row(const std::optional<infeasibility_proof>& proof, double needed, double available) {
  REQUIRE(proof);
  REQUIRE(proof->rows.size() == 1);
  CAPTURE(describe(*proof));
  CHECK(proof->rows.front().needed == Approx(needed));
  CHECK(proof->rows.front().available == Approx(available));
}

TEST_CASE("what memory proves, by hand") {
  const hetplan::job j = inference(4);
  SECTION("one layer is too large for every device") {
    check_row(proof_for(layers_of({10, 90}), {box("a", 80), box("b", 50)}, j), 90, 80);
    CHECK_FALSE(proof_for(layers_of({10, 80}), {box("a", 80), box("b", 50)}, j));
  }
  SECTION("all layers are too large for all devices") {
    check_row(proof_for(layers_of({50, 50, 50}), {box("a", 80), box("b", 60)}, j), 150, 140);
  }
  SECTION("what fits on the large devices alone is too large for them") {
    check_row(proof_for(layers_of({50, 50, 50, 1}), {box("a", 60), box("b", 60), box("c", 40), box("d", 40)}, j), 150, 120);
    CHECK_FALSE(proof_for(layers_of({50, 50, 40, 1}), {box("a", 60), box("b", 60), box("c", 40), box("d", 40)}, j));
  }
  SECTION("a tensor that layers share counts once") {
    CHECK_FALSE(proof_for(layers_of({50, 50, 50}, "tied"), {box("a", 60)}, j));
    check_row(proof_for(layers_of({50, 50, 50}, "tied"), {box("a", 40)}, j), 50, 40);
  }
  SECTION("devices may share out the optimizer's state, so one layer alone needs less of each") {
    hetplan::job training{.batch = 4};  // Adam: weights, gradients and two moments; two devices hold one moment each
    CHECK_FALSE(proof_for(layers_of({10}), {box("a", 30), box("b", 30)}, training));
    check_row(proof_for(layers_of({10}), {box("a", 29), box("b", 29)}, training), 30, 29);
    check_row(proof_for(layers_of({10, 10}), {box("a", 30), box("b", 49)}, training), 80, 79);
  }
  SECTION("no memory to speak of, and more than a number holds") {
    check_row(proof_for(layers_of({1}), {box("a", 1e-310)}, j), 1, 1e-310);
    check_row(proof_for(layers_of({1.5e308, 1.5e308}), {box("a", 1.6e308), box("b", 1e9)}, j), std::numeric_limits<double>::max(), 1.6e308);
  }
}

TEST_CASE("what energy budgets and busy shares prove, by hand") {
  const hetplan::job j = inference(2);  // each layer takes 2 s for both samples, at 12 W
  const planning_graph two = layers_of({1, 1});
  // A run takes at least 2 s: one sample through both layers.
  SECTION("four seconds of work do not fit into budgets for three") {
    for (const any_lp_solver& lp : {any_lp_solver{}, any_lp_solver(glpk_lp{})}) {
      check_row(proof_for(two, {box("a", 1e9, 19), box("b", 1e9, 19)}, j, lp), 4, 3);  // 2 J/s x 2 s + 10 W x 1.5 s = 19 J
      CHECK_FALSE(proof_for(two, {box("a", 1e9, 24), box("b", 1e9, 24)}, j, lp));
    }
  }
  SECTION("a busy share makes the run longer, and the device idles at its cost") {
    // 1.6 s of work at a busy share of 0.4 take 4 s: 8 J idle + 16 J active. A longer run has to pay for both.
    check_row(proof_for(two, {box("a", 1e9, 24, 0.4), box("b", 1e9, 24, 0.4)}, j), 4, 3.2);
  }
  SECTION("a device without a budget could do it all, unless it has no room") {
    CHECK_FALSE(proof_for(two, {box("a", 1e9, 1e-6), box("b", 1e9)}, j));
    check_row(proof_for(two, {box("a", 1e9, 1e-6), box("b", 0.5)}, j), 1, 0);
  }
  SECTION("nobody waits for anybody on one device") {
    check_row(proof_for(two, {box("a", 1e9, 0, 0.9)}, j), 1, 0.9);
    CHECK_FALSE(proof_for(two, {box("a", 1e9)}, j));
  }
}

TEST_CASE("an energy budget that memory-bound work might keep proves nothing") {
  const planning_graph one = layers_of({1});
  device d = box("a", 1e9, 5);  // a second at 12 W takes more
  CHECK(proof_for(one, {d}, inference(1)));
  d.power.memory = watts(5.1);
  CHECK(proof_for(one, {d}, inference(1)));
  d.power.memory = watts(4.9);
  CHECK_FALSE(proof_for(one, {d}, inference(1)));
}

TEST_CASE("no job for which some plan keeps the limits is called infeasible, and most others are") {
  const auto first = test::first_seed();
  int feasible = 0, proven = 0, open = 0, by_energy = 0;
  for (std::uint64_t seed = first; seed < first + 400; ++seed) {
    CAPTURE(seed);
    const test::limited_job drawn(test::random_source{seed});
    const auto proof = prove_infeasible(drawn.problem(glpk_lp{}));
    const bool weaker = prove_infeasible(drawn.problem()).has_value();
    if (weaker) CHECK(proof);
    if (drawn.any_plan(true)) {
      ++feasible;
      CHECK_FALSE(proof);
    } else if (proof) {
      ++proven;
      REQUIRE(proof->rows.front().needed > proof->rows.front().available);
      by_energy += proof->rows.front().what.rfind("seconds", 0) == 0;
    } else {
      ++open;
    }
  }
  CAPTURE(first, feasible, proven, by_energy, open);
  CHECK(feasible > 100);
  CHECK(proven > 50);
  CHECK(by_energy > 20);
}

}  // namespace test_prove_infeasible
