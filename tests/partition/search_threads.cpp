// SPDX-License-Identifier: BSL-1.0
#include <cstdint>
#include <utility>

#include <catch2/catch.hpp>

#include <hetplan/partition/two_substate_dp.hpp>

#include "support/search_instance.hpp"

using namespace hetplan;
using namespace hetplan::partition;

TEST_CASE("a search gives the same plans, counts and cells whatever its threads") {
  int found = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 150; ++seed) {
    const test::search_instance i = test::random_search_instance(seed, {.most_layers = 24, .most_devices = 5});
    INFO(i.what);
    const search_tables tables = test::tables_of(i);
    const device_space space = test::any_order(tables, i.blank);
    const auto search = [&](int threads) {
      std::uint64_t kept = 0;
      search_result r = two_substate_dp(tables, space, i.blank, keep_qoe{seconds(0.05), 20}, top_k{3},
                                        {.plans = 4, .threads = threads, .coarse_boundaries = 5}, [&](const cell_filled& c) {
                                          for (const partial_plan* p : c.kept) kept = kept * 31 + static_cast<std::uint64_t>(p->stages);
                                          return control::go;
                                        });
      return std::pair(std::move(r), kept);
    };
    const auto [one, cells] = search(1);
    found += !one.plans.empty();
    for (const int threads : {2, 5}) {
      const auto [many, others] = search(threads);
      REQUIRE(others == cells);
      REQUIRE(many.status == one.status);
      REQUIRE(many.counts.extended == one.counts.extended);
      REQUIRE(many.counts.kept == one.counts.kept);
      REQUIRE(many.plans.size() == one.plans.size());
      for (std::size_t p = 0; p < one.plans.size(); ++p) {
        REQUIRE(many.plans[p].plan == one.plans[p].plan);
        REQUIRE(many.plans[p].score == one.plans[p].score);
      }
    }
  }
  CHECK(found > 60);
}
