// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/recipes/dora_partitioner.hpp>

#include "support/search_instance.hpp"

using namespace hetplan;
using namespace hetplan::partition;

TEST_CASE("a search gives the same plans, counts and cells whatever its threads", "[unsanitized]") {
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

TEST_CASE("searches side by side hand over what each finds alone with what its turn allows, until nobody wants more") {
  int cut = 0, stopped = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 60; ++seed) {
    const test::search_instance i = test::random_search_instance(seed, {.most_layers = 12, .most_devices = 4});
    INFO(i.what);
    const search_tables tables = test::tables_of(i);
    const auto space = std::make_shared<const device_space>(test::any_order(tables, i.blank));
    std::vector<search_variant> variants;
    for (const warmup_rule warmup : warmup_rules) {
      for (const int microbatches : {1, 4}) {
        variants.push_back({i.blank, space, warmup});
        variants.back().blank.microbatches = microbatches;
      }
    }
    const search_options how{.plans = 4};
    for (const long long budget : {50LL, 500LL, std::numeric_limits<long long>::max()}) {
      const auto search_all = [&](int threads) {
        long long left = budget;
        std::vector<std::pair<std::vector<plan>, long long>> seen;
        const search_taker taker{.allowance = [&]() -> std::optional<long long> { return left > 0 ? std::optional(left) : std::nullopt; },
                                 .take =
                                     [&](const search_result& r) {
                                       left -= r.counts.extended;
                                       seen.push_back({{}, r.counts.extended});
                                       for (const found_plan& f : r.plans) seen.back().first.push_back(f.plan);
                                       return seed % 5 == 0 && seen.size() == 2 ? control::stop : control::go;
                                     }};
        const control end = search_side_by_side(tables, variants, minimize_latency{}, top_k{3}, how, threads, taker);
        return std::pair(seen, end);
      };
      const auto [one, end] = search_all(1);
      cut += one.size() < variants.size() && end == control::go;
      stopped += end == control::stop;
      long long left = budget;
      for (std::size_t v = 0; v < one.size(); ++v) {
        search_options alone = how;
        alone.warmup = variants[v].warmup;
        alone.most_extensions = left;
        const search_result r = two_substate_dp(tables, *space, variants[v].blank, minimize_latency{}, top_k{3}, alone);
        REQUIRE(r.counts.extended == one[v].second);
        REQUIRE(std::equal(r.plans.begin(), r.plans.end(), one[v].first.begin(), one[v].first.end(),
                           [](const found_plan& f, const plan& p) { return f.plan == p; }));
        left -= r.counts.extended;
      }
      for (const int threads : {2, 5}) REQUIRE(search_all(threads) == std::pair(one, end));
    }
  }
  CHECK(cut > 20);
  CHECK(stopped > 10);
}
