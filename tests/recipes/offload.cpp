// SPDX-License-Identifier: BSL-1.0
// Plans with weights below the devices' memory: the default planner against all splits and all offloads, and the simple planners.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/hetplan.hpp>
#include <hetplan/recipes/baselines.hpp>
#include <hetplan/recipes/dora.hpp>
#include <hetplan/recipes/pipeline.hpp>
#include <hetplan/zoo/models.hpp>

#include "support/chain_plans.hpp"

using namespace hetplan;
using namespace hetplan::test;

namespace {

/// Gives devices one or two tiers, slower than their memory; of one host maybe a shared disk.
cluster with_tiers(random_source& random, const cluster& c, const planning_graph& m, bool ties) {
  double weights = 0;
  for (const layer& l : m.layers()) weights += l.weight.value();
  std::vector<device> devices(c.devices().begin(), c.devices().end());
  for (device& d : devices) {
    if (random.chance(0.15)) continue;
    const auto tier = [&](const char* name, double most) {
      d.tiers.push_back({.name = name,
                         .memory = bytes(weights * (ties ? 1 : random.between(0.2, 1.2)) + 1),
                         .bandwidth = bytes_per_second(ties ? most : most * random.between(0.2, 1))});
    };
    tier("ram", 1e10);
    if (random.chance(0.4)) tier("disk", 2e9);
  }
  return c.with_devices(std::move(devices));
}

/// Considers a plan with each choice of where its weights lie.
void consider_offloads(const planning_problem& problem, const plan& bare, best_of_all& all) {
  const std::function<void(plan&, std::size_t)> choose = [&](plan& p, std::size_t l) {
    if (l == problem.model.size()) return all.consider(problem, p);
    choose(p, l + 1);
    for (stage& s : p.stages) {
      if (std::find(s.layers.begin(), s.layers.end(), layer_id(l)) == s.layers.end()) continue;
      for (const memory_tier& t : problem.cluster[s.devices.front().device].tiers) {
        s.offload.push_back({layer_id(l), t.name});
        choose(p, l + 1);
        s.offload.pop_back();
      }
    }
  };
  plan p = bare;
  choose(p, 0);
}

bool uses_tiers(const plan& p) {
  return std::ranges::any_of(p.stages, [](const stage& s) { return !s.offload.empty(); });
}

plan_result plan_with_dora(const planning_problem& problem) { return recipes::dora(problem, minimize_latency{}, 1); }

}  // namespace

TEST_CASE("dora is as fast as the best of all splits and all offloads", "[unsanitized]") {
  const std::uint64_t seed = first_seed();
  CAPTURE(seed);
  constexpr int cases = 320;
  int offloaded = 0, several = 0;
  const compared_plans found = compare_with_the_best(
      cases, seed * 3000,
      [](random_source& random, int i) {
        const chain_shape shape{.most_layers = i % 4 == 0 ? 6 : 4, .most_devices = i % 4 == 0 ? 1 : 3, .ties = i % 3 == 0};
        planning_graph model = random_token_chain(random, shape);
        cluster c = with_tiers(random, random_token_devices(random, model, shape, 0.15, 0.8), model, shape.ties);
        job j = random_token_job(random);
        if (i % 5 == 1) j.workload = {.mode = mode::inference};
        return chain_instance{std::move(model), std::move(c), std::move(j)};
      },
      [](const planning_problem& problem, best_of_all& all) {
        for_each_chain_plan(problem, false, [&](const plan& p) { consider_offloads(problem, p, all); });
      },
      plan_with_dora,
      [&](const best_of_all& all, const ranked_plan&) {
        offloaded += uses_tiers(*all.best) ? 1 : 0;
        several += uses_tiers(*all.best) && all.best->stages.size() > 1 ? 1 : 0;
      });
  CAPTURE(found.missed, found.worst, offloaded, several, found.none);
  CHECK(offloaded > cases / 3);
  CHECK(several > cases / 10);
  CHECK(found.missed == 0);
}

TEST_CASE("dora plans reads of one disk by several devices; frozen layers in training", "[unsanitized]") {
  // Several devices read one resource, which the search takes for the own of each, and training has orders beyond those tried here: no
  // worse than the best single device, and nearly always as fast as the best of all.
  const std::uint64_t seed = first_seed();
  for (const bool trains : {false, true}) {
    CAPTURE(seed, trains);
    constexpr int cases = 120;
    int offloaded = 0;
    best_of_all alone;
    const compared_plans found = compare_with_the_best(
        cases, seed * 6000 + (trains ? 500 : 0),
        [&](random_source& random, int i) {
          const chain_shape shape{.most_layers = 4, .most_devices = 3, .ties = i % 3 == 0, .frozen = trains ? 0.9 : 0};
          planning_graph model = random_token_chain(random, shape);
          const cluster own =
              with_tiers(random, random_token_devices(random, model, shape, trains ? 0.3 : 0.15, trains ? 1.2 : 0.8), model, shape.ties);
          std::vector<device> devices(own.devices().begin(), own.devices().end());
          for (device& d : devices) {
            for (memory_tier& t : d.tiers) {
              if (!trains) t.resource = own.network().resources().front().name;
            }
          }
          job j = random_token_job(random);
          if (trains) j = {.workload = {.mode = mode::training}, .batch = random.pick(std::vector{1, 2, 4})};
          return chain_instance{std::move(model), own.with_devices(std::move(devices)), std::move(j)};
        },
        [&](const planning_problem& problem, best_of_all& all) {
          alone = {};
          for_each_chain_plan(problem, false, [&](const plan& p) {
            consider_offloads(problem, p, all);
            if (p.stages.size() == 1) consider_offloads(problem, p, alone);
          });
        },
        plan_with_dora,
        [&](const best_of_all& all, const ranked_plan& best) {
          CHECK(best.evaluation.latency.value() <= alone.latency_s * (1 + 1e-9));
          offloaded += uses_tiers(*all.best) ? 1 : 0;
        });
    CAPTURE(found.missed, offloaded);
    CHECK(offloaded > cases / 6);
    CHECK(found.missed <= cases / 20);
  }
}

TEST_CASE("where all fits nothing is offloaded, and tiers change no answer") {
  const std::uint64_t seed = first_seed();
  for (int i = 0; i < 30; ++i) {
    random_source random(seed * 4000 + static_cast<std::uint64_t>(i));
    const chain_shape shape{.most_layers = 5, .most_devices = 3};
    const planning_graph model = random_token_chain(random, shape);
    const cluster c = random_token_devices(random, model, shape, 1.3, 2);
    std::vector<device> devices(c.devices().begin(), c.devices().end());
    for (device& d : devices) d.tiers = {{.name = "ram", .memory = bytes(1e12), .bandwidth = bytes_per_second(1e9)}};
    const cluster more = c.with_devices(devices);
    const job j = random_token_job(random);
    const planning_problem plain{model, c, roofline{}, j}, tiers{model, more, roofline{}, j};
    const plan_result a = recipes::dora(plain, minimize_latency{}, 1), b = recipes::dora(tiers, minimize_latency{}, 1);
    INFO("seed " << seed << ", case " << i);
    REQUIRE(a.plans.size() == 1);
    REQUIRE(b.plans.size() == 1);
    CHECK(a.plans.front().plan.stages == b.plans.front().plan.stages);
    CHECK(a.plans.front().evaluation.latency == b.plans.front().evaluation.latency);
  }
}

TEST_CASE("simple planners read from tiers what memory does not hold, and a proof counts tiers") {
  planning_graph_builder b("forty", {.bytes_per_parameter = 2, .tokens_per_sample = 1});
  std::vector<layer_id> layers;
  for (int i = 0; i < 10; ++i) {
    layers.push_back(b.add_layer({.name = "l" + std::to_string(i), .forward_flops = flops(2), .weight = 4_GB, .traffic = bytes{}}));
    if (i > 0) b.add_edge(layers[static_cast<std::size_t>(i) - 1], layers.back(), bytes{});
  }
  const planning_graph m = std::move(b).build();
  device d{.name = "card", .memory = 24_GB, .compute = flops_per_second(100e12), .memory_bandwidth = bytes_per_second(936e9)};
  d.tiers = {{.name = "ram", .memory = 20_GB, .bandwidth = bytes_per_second(25e9)}};
  const job j{.workload = {.mode = mode::generation, .tokens = 1}, .batch = 1};
  const cluster home("home", d);
  const planning_problem problem{m, home, roofline{}, j};
  for (const plan_result& r : {recipes::on_device(problem, minimize_latency{}, 1), recipes::pipeline(problem, minimize_latency{}, 1),
                               recipes::even_split(problem, minimize_latency{}, 1), recipes::dora(problem, minimize_latency{}, 1)}) {
    REQUIRE(r.plans.size() == 1);
    CHECK(r.plans.front().evaluation.latency.value() == Approx(24.0 / 936 + 16.0 / 25).epsilon(1e-9));
    CHECK(r.plans.front().plan.stages.front().offload.size() == 4);
  }
  device less = d;
  less.tiers[0].memory = 15_GB;
  const cluster small("home", less);
  const plan_result none = recipes::dora(planning_problem{m, small, roofline{}, j}, minimize_latency{}, 1);
  CHECK(none.status.result == outcome::infeasible);
  REQUIRE(none.status.proof);
  CHECK(none.status.proof->rows.back().needed == Approx(40e9));
  CHECK(none.status.proof->rows.back().available == Approx(39e9));
}

TEST_CASE("in training only frozen layers leave memory") {
  planning_graph_builder b("frozen");
  const auto a = b.add_layer({.name = "a", .forward_flops = flops(1e9), .weight = 100_MB, .trainable = false});
  const auto z = b.add_layer({.name = "z", .forward_flops = flops(1e9), .weight = 10_MB});
  b.add_edge(a, z, 1_kB);
  const planning_graph m = std::move(b).build();
  device d{.name = "d", .memory = 50_MB, .compute = flops_per_second(1e12)};
  d.tiers = {{.name = "ram", .memory = 1_GB, .bandwidth = bytes_per_second(1e9)}};
  const cluster c("one", d);
  const job j{.workload = {.mode = mode::training}, .batch = 2, .microbatch_sizes = {2}};
  const planning_problem problem{m, c, roofline{}, j};
  const plan_result r = recipes::dora(problem, minimize_latency{}, 1);
  REQUIRE(r.plans.size() == 1);
  REQUIRE(r.plans.front().plan.stages.front().offload == std::vector{offloaded_layer{layer_id(0), "ram"}});
  // F and B of the frozen layer read 0.1 s each; 2 samples of 1 + 1, and of 1 + 1 + 1 ms.
  CHECK(r.plans.front().evaluation.latency.value() == Approx(0.2 + 2 * 5e-3).epsilon(1e-9));
}
