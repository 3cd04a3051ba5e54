// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <cmath>
#include <optional>

#include <hetplan/partition/brute_force.hpp>
#include <hetplan/partition/two_substate_dp.hpp>

#include "support/no_flush.hpp"
#include "support/search_instance.hpp"

using namespace hetplan;
using namespace hetplan::partition;

namespace test_plain_dp {
namespace {

/// Returns a chain whose row is cut into chains at random, so that a search has both substates but no ports; none for other models.
[[nodiscard]] std::optional<test::search_instance> random_chain(std::uint64_t seed) {
  test::search_instance i = test::random_search_instance(seed, {.most_layers = 6, .most_devices = 3});
  if (!sequence_cuts(i.model, i.sequence).serial()) return {};
  test::random_source random(seed);
  for (std::size_t b = 1; b < i.sequence.size(); ++b) {
    if (i.sequence.chain_first.back() < b && random.chance(0.4)) i.sequence.chain_first.push_back(b);
  }
  return i;
}

/// Requires that the fast search finds the score of the plain recurrence under a law.
template <step_law Law>
void compare(const test::search_instance& i, const Law& law, warmup_rule warmup, const any_objective& objective, int& feasible) {
  const search_tables tables = test::tables_of(i);
  const device_space space = test::any_order(tables, i.blank);
  const search_options options{.plans = 1, .warmup = warmup, .law = law, .coarse_boundaries = 2};
  const plain_plan plain = plain_dp(tables, space, i.blank, objective, law, options);
  const search_result fast = two_substate_dp(tables, space, i.blank, objective, dominance{}, options);
  REQUIRE(fast.plans.empty() == std::isinf(plain.score));
  if (fast.plans.empty()) return;
  ++feasible;
  REQUIRE(fast.plans.front().score == Approx(plain.score).epsilon(1e-12));
}

}  // namespace
}  // namespace test_plain_dp

using namespace test_plain_dp;

TEST_CASE("the fast search has the score of the recurrence to read, by every law that ships and one of the user's") {
  int compared = 0, feasible = 0, with_chains = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 6000; ++seed) {
    const auto i = random_chain(seed);
    if (!i) continue;
    INFO(i->what);
    ++compared;
    with_chains += i->sequence.chains() > 1;
    const any_objective objective = seed % 3 == 0   ? any_objective(minimize_energy{})
                                    : seed % 3 == 1 ? any_objective(keep_qoe{seconds(0.05), 20})
                                                    : any_objective(minimize_latency{});
    const warmup_rule warmup = warmup_rules[seed % 3];
    switch (seed % 5) {
      case 0: compare(*i, sum_and_largest{}, warmup, objective, feasible); break;
      case 1: compare(*i, largest_step{}, warmup, objective, feasible); break;
      case 2: compare(*i, test::no_flush{}, warmup, objective, feasible); break;
      default: any_step_law(i->blank.workload.mode).visit([&](const auto& law) { compare(*i, law, warmup, objective, feasible); });
    }
  }
  CHECK(compared > 2500);
  CHECK(feasible > 1200);
  CHECK(with_chains > 1200);
}
