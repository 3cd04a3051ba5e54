// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <hetplan/partition/two_substate_dp.hpp>

#include "support/closed_form_latency.hpp"
#include "support/search_instance.hpp"

using namespace hetplan;
using namespace hetplan::partition;

namespace {

template <class Objective, class Estimator = test::closed_dominant_step>
void compare_with_brute_force(const test::search_instance& i, const Objective& objective, warmup_rule rule, int& feasible,
                              const std::optional<any_step_law>& law = {}, const Estimator& estimator = {}, int largest_share = 100,
                              memory_savers savers = {}) {
  const search_tables tables(i.model, i.sequence, i.cluster, roofline{}, plain_memory{}, linear_power{}, i.blank.workload,
                             std::min(largest_share, i.blank.microbatch_size), savers);
  space_options space;
  space.warmup = rule;
  space.largest_share = largest_share;
  space.savers = savers;
  for (const auto& members : tables.classes) space.device_order.insert(space.device_order.end(), members.begin(), members.end());
  const auto best =
      brute_force(i.sequence, i.model, i.cluster, roofline{}, plain_memory{}, linear_power{}, i.blank, space, objective, estimator, 1);
  const search_options options{.plans = 1, .warmup = rule, .law = law, .coarse_boundaries = 2};
  const search_result found = two_substate_dp(tables, test::any_order(tables, i.blank), i.blank, objective, dominance{}, options);
  search_options unpruned = options;
  unpruned.prune = false;
  const search_result all = two_substate_dp(tables, test::any_order(tables, i.blank), i.blank, objective, exhaustive{}, unpruned);
  REQUIRE(found.plans.size() == best.size());
  REQUIRE(all.plans.size() == best.size());
  if (best.empty()) {
    REQUIRE(found.status.result == outcome::none_found);
    return;
  }
  ++feasible;
  const found_plan& mine = found.plans.front();
  INFO("stages " << mine.plan.stages.size() << " against " << best.front().plan.stages.size());
  // The search scores the response, which differs from latency in generation.
  REQUIRE(score(objective, mine.estimate) == Approx(best.front().score).epsilon(1e-9));
  REQUIRE(all.plans.front().score == Approx(mine.score).epsilon(1e-12));
  const evaluation direct = estimate(mine.plan, i.model, i.cluster, roofline{}, plain_memory{}, linear_power{}, estimator);
  REQUIRE(mine.estimate.times().makespan.value() == Approx(direct.times().makespan.value()).epsilon(1e-9));
  REQUIRE(mine.estimate.times().ttft.value() == Approx(direct.times().ttft.value()).epsilon(1e-9));
  REQUIRE(mine.estimate.response().value() == Approx(direct.response().value()).epsilon(1e-9));
  REQUIRE(mine.estimate.energy().value() == Approx(direct.energy().value()).epsilon(1e-9));
  for (const device& d : i.cluster.devices()) {
    const device_evaluation &a = mine.estimate.devices[d.id.index()], &b = direct.devices[d.id.index()];
    REQUIRE(a.used == b.used);
    REQUIRE(a.peak_memory.value() == Approx(b.peak_memory.value()).epsilon(1e-9));
    REQUIRE(a.busy.value() == Approx(b.busy.value()).epsilon(1e-9));
    REQUIRE(a.energy.value() == Approx(b.energy.value()).epsilon(1e-9));
  }
  REQUIRE_FALSE(find_broken_limit(direct, i.cluster));
  if (i.blank.workload.mode != mode::training) return;
  for (const stage& s : mine.plan.stages) {
    REQUIRE(s.recompute == whole_stage_if(savers.recompute));
    REQUIRE((s.shard == sharding::state) == (savers.shard_state && s.devices.size() > 1));
  }
}

}  // namespace

TEST_CASE("with nothing dropped but what is dominated, the search finds the best plan of the whole space", "[unsanitized]") {
  int feasible = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 2400; ++seed) {
    const test::search_instance i =
        test::random_search_instance(seed, {.most_layers = seed % 4 == 0 ? 7 : 5, .most_devices = seed % 3 == 0 ? 4 : 3});
    INFO(i.what);
    const warmup_rule rule = warmup_rules[seed % 3];
    switch (seed % 4) {
      case 0: compare_with_brute_force(i, minimize_latency{}, rule, feasible); break;
      case 1: compare_with_brute_force(i, minimize_energy{}, rule, feasible); break;
      case 2: compare_with_brute_force(i, keep_qoe{seconds(0.05), 20}, rule, feasible); break;
      default: compare_with_brute_force(i, maximize_throughput{4}, rule, feasible); break;
    }
  }
  REQUIRE(feasible > 1200);
}

TEST_CASE("generation is planned for its prompt and its tokens: the search finds the best plan of the whole space", "[unsanitized]") {
  int feasible = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 2000; ++seed) {
    const test::search_instance i = test::random_search_instance(
        seed, {.most_layers = seed % 4 == 0 ? 7 : 5, .most_devices = seed % 3 == 0 ? 4 : 3, .tight = seed % 5 != 0, .tokens = true});
    INFO(i.what);
    const warmup_rule rule = warmup_rules[seed % 3];
    job limited{.workload = i.blank.workload, .batch = static_cast<int>(i.blank.batch())};
    switch (seed % 6) {
      case 0: compare_with_brute_force(i, minimize_latency{}, rule, feasible); break;
      case 1: compare_with_brute_force(i, minimize_ttft{}, rule, feasible); break;
      case 2: compare_with_brute_force(i, minimize_response{}, rule, feasible); break;
      case 3:
        compare_with_brute_force(i, keep_qoe{.lambda_J_per_s = 20, .makespan = seconds(1), .ttft = seconds(0.05)}, rule, feasible);
        break;
      case 4:
        limited.qoe.ttft = seconds(0.05);
        compare_with_brute_force(i, objective_of_job(limited), rule, feasible);
        break;
      default:
        limited.objective = objective_kind::ttft;
        if (i.blank.workload.tokens > 1) limited.qoe.time_between_tokens = seconds(0.02);
        compare_with_brute_force(i, objective_of_job(limited), rule, feasible);
        break;
    }
  }
  REQUIRE(feasible > 1000);
}

TEST_CASE("the search minimises the other estimates as exactly as the dominant step's") {
  int feasible = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 600; ++seed) {
    const test::search_instance i =
        test::random_search_instance(seed, {.most_layers = seed % 4 == 0 ? 7 : 5, .most_devices = seed % 3 == 0 ? 4 : 3});
    INFO(i.what);
    const warmup_rule rule = warmup_rules[seed % 3];
    if (seed % 2 == 0) {
      compare_with_brute_force(i, minimize_latency{}, rule, feasible, sum_and_largest{}, test::closed_sum_and_largest{});
    } else {
      compare_with_brute_force(i, keep_qoe{seconds(0.05), 20}, rule, feasible, largest_step{}, test::closed_largest_step{});
    }
  }
  REQUIRE(feasible > 300);
}

TEST_CASE("a microbatch may be larger than what one device takes of it") {
  int feasible = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 400; ++seed) {
    test::search_instance i = test::random_search_instance(seed, {.most_layers = 5, .most_devices = 4});
    i.blank.microbatch_size += 2;
    INFO(i.what);
    const int largest_share = 1 + static_cast<int>(seed % 3);
    compare_with_brute_force(i, minimize_latency{}, warmup_rules[seed % 3], feasible, std::nullopt, test::closed_dominant_step{},
                             largest_share);
  }
  REQUIRE(feasible > 60);
}

TEST_CASE("with stages that recompute or shard their states, the search finds the best plan of their whole space", "[unsanitized]") {
  int feasible = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 1200; ++seed) {
    const test::search_instance i =
        test::random_search_instance(seed, {.most_layers = seed % 4 == 0 ? 7 : 5, .most_devices = seed % 3 == 0 ? 4 : 3});
    INFO(i.what);
    const memory_savers savers{.recompute = seed % 3 != 1, .shard_state = seed % 3 != 0};
    const warmup_rule rule = warmup_rules[seed / 3 % 3];
    if (seed % 2 == 0) {
      compare_with_brute_force(i, minimize_latency{}, rule, feasible, {}, test::closed_dominant_step{}, 100, savers);
    } else {
      compare_with_brute_force(i, keep_qoe{seconds(0.05), 20}, rule, feasible, {}, test::closed_dominant_step{}, 100, savers);
    }
  }
  REQUIRE(feasible > 600);
}
