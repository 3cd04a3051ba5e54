// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/core/error.hpp>
#include <hetplan/partition/region_dp.hpp>

#include "support/random_region_chain.hpp"
#include "support/random_source.hpp"

namespace test_region_split {

using namespace hetplan;
using namespace hetplan::partition;
using Catch::Matchers::Contains;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr region_cost costs[] = {region_cost::printed, region_cost::serial_links};
constexpr region_use uses[] = {region_use::all, region_use::any};

/// Tables of small integers: sums are exact, and ties are frequent.
struct tables {
  std::size_t regions, layers;
  std::vector<std::vector<int>> forward, backward, weights, bytes;  // [region][layer]
  std::vector<int> collective, memory;                              // [region]
  std::vector<std::vector<int>> link;                               // [region][region]; 0: no link
  std::vector<int> boundary;                                        // [layer]
};

tables random_tables(test::random_source& random, std::size_t regions, std::size_t layers, int slow) {
  tables t{.regions = regions,
           .layers = layers,
           .forward = {},
           .backward = {},
           .weights = {},
           .bytes = {},
           .collective = {},
           .memory = {},
           .link = {},
           .boundary = {}};
  const auto row = [&](std::size_t n, int low, int high) {
    std::vector<int> r;
    for (std::size_t i = 0; i < n; ++i) r.push_back(random.integer(low, high));
    return r;
  };
  const bool tight = random.chance(0.5);
  for (std::size_t g = 0; g < regions; ++g) {
    const int most = random.integer(1, 6);
    t.forward.push_back(row(layers, 0, most));
    t.backward.push_back(row(layers, 0, most));
    t.weights.push_back(row(layers, 0, most));
    t.bytes.push_back(row(layers, 0, 4));
    t.collective.push_back(random.integer(0, 10));
    t.memory.push_back(tight ? random.integer(1, 4 * static_cast<int>(layers) / 2) : 1000);
    t.link.push_back(row(regions, random.chance(0.2) ? 0 : 1, 1 + slow));
  }
  t.boundary = row(layers, 0, 3);
  return t;
}

region_chain chain_of(const tables& t, int microbatches) {
  region_chain c{.regions = t.regions, .layers = t.layers, .microbatches = microbatches, .stage = {}, .transfer_s = {}};
  for (std::size_t l = 0; l < t.layers; ++l) c.positions.push_back(l);
  c.stage = [t](std::size_t g, std::size_t first, std::size_t last) {
    const auto sum = [&](const std::vector<int>& row) {
      return std::accumulate(row.begin() + static_cast<std::ptrdiff_t>(first), row.begin() + static_cast<std::ptrdiff_t>(last), 0);
    };
    return region_stage{static_cast<double>(sum(t.forward[g])), static_cast<double>(sum(t.backward[g])),
                        static_cast<double>(sum(t.weights[g])), static_cast<double>(t.collective[g]), sum(t.bytes[g]) <= t.memory[g]};
  };
  c.transfer_s = [t](std::size_t g, std::size_t h, std::size_t l) {
    return t.link[g][h] == 0 ? inf : static_cast<double>(t.boundary[l] * t.link[g][h]);
  };
  return c;
}

/// Returns the cost of a split by definition, term by term.
double seconds_by_definition(const region_chain& c, const std::vector<std::size_t>& first, const std::vector<std::size_t>& region,
                             region_cost cost) {
  const std::size_t stages = first.size();
  const auto stage = [&](std::size_t s) { return c.stage(region[s], first[s], s + 1 < stages ? first[s + 1] : c.layers); };
  const auto transfer = [&](std::size_t s) { return c.transfer_s(region[s], region[s + 1], first[s + 1]); };
  double most = 0;
  for (std::size_t s = 0; s < stages; ++s) {
    const region_stage here = stage(s);
    if (!here.fits) return inf;
    double term = c.microbatches * (here.forward_s + here.backward_s + here.weights_s) + here.collective_s;
    for (std::size_t i = 0; i < s; ++i) term += stage(i).forward_s + transfer(i) + std::max(0.0, transfer(i) - stage(i).forward_s);
    most = std::max(most, term);
    if (cost == region_cost::printed || s + 1 == stages) continue;
    double sent = here.forward_s + c.microbatches * transfer(s);
    for (std::size_t i = 0; i < s; ++i) sent += stage(i).forward_s + transfer(i);
    most = std::max(most, sent);
  }
  return most;
}

/// Returns the least cost over all cuts and all orders of regions, or only the order `order`.
double brute_force(const region_chain& c, region_cost cost, region_use use, const std::vector<std::size_t>& order = {}) {
  double best = inf;
  const std::size_t wanted = order.empty() ? c.regions : order.size();
  std::vector<std::size_t> first, region;
  std::vector<bool> used(c.regions, false);
  const std::function<void(std::size_t, std::size_t)> go = [&](std::size_t at, std::size_t place) {
    if (!region.empty() && (use == region_use::any || region.size() == wanted))
      best = std::min(best, seconds_by_definition(c, first, region, cost));
    const auto put = [&](std::size_t g, std::size_t next_place) {
      used[g] = true;
      region.push_back(g);
      for (std::size_t i = region.size() == 1 ? 0 : at + 1; i < (region.size() == 1 ? 1 : c.positions.size()); ++i) {
        first.push_back(c.positions[i]);
        go(i, next_place);
        first.pop_back();
      }
      region.pop_back();
      used[g] = false;
    };
    if (order.empty()) {
      for (std::size_t g = 0; g < c.regions; ++g) {
        if (!used[g]) put(g, 0);
      }
    } else {
      for (std::size_t p = place; p < order.size(); ++p) put(order[p], p + 1);
    }
  };
  go(0, 0);
  return best;
}

void require_split(const region_chain& c, const region_result& r, region_cost cost, region_use use) {
  REQUIRE(r.split.first.size() == r.split.region.size());
  REQUIRE(r.split.seconds == region_split_seconds(c, r.split, cost));
  if (use == region_use::all) REQUIRE(r.split.region.size() == c.regions);
}

}  // namespace

TEST_CASE("the cost of a split is eq. 1, by hand") {
  region_chain c{.regions = 2, .positions = {0, 1, 2}, .layers = 4, .microbatches = 4, .stage = {}, .transfer_s = {}};
  c.stage = [](std::size_t g, std::size_t first, std::size_t last) {
    const double f = static_cast<double>(last - first) * (g == 0 ? 1 : 2);
    return region_stage{f, f, 0.5 * f, g == 0 ? 0.0 : 3.0};
  };
  c.transfer_s = [](std::size_t, std::size_t, std::size_t l) { return l == 1 ? 5.0 : 1.0; };
  // Region 0, layer 0: F = 1, 4 (1 + 1 + 0.5) = 10. Transfer: c = 5, of which 4 is exposed. Region 1, three layers: 4 (6 + 6 + 3) + 3 = 63.
  const region_split slow{.first = {0, 1}, .region = {0, 1}};
  CHECK(region_split_seconds(c, slow) == 1 + 5 + 4 + 63);
  CHECK(region_split_seconds(c, slow, region_cost::serial_links) == 73);
  // Two layers in each region: 20; F = 2 hides c = 1; 4 (4 + 4 + 2) + 3 = 43.
  CHECK(region_split_seconds(c, {.first = {0, 2}, .region = {0, 1}}) == 2 + 1 + 43);
  // The link dominates cheap stages: F + 4 c = 2 + 4 * 5.
  c.stage = [](std::size_t, std::size_t, std::size_t) { return region_stage{2, 0, 0, 0}; };
  CHECK(region_split_seconds(c, slow) == 2 + 5 + 3 + 8);
  CHECK(region_split_seconds(c, slow, region_cost::serial_links) == 2 + 4 * 5);
  c.microbatches = 2;
  CHECK(region_split_seconds(c, slow, region_cost::serial_links) == 2 + 5 + 3 + 4);
}

TEST_CASE("splits are exact: brute force over all orders and cuts, with ties, memory and missing links", "[unsanitized]") {
  int split = 0, none = 0, idle = 0;
  double worst = 0, sum = 0;
  int met = 0, missed = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 400; ++seed) {
    INFO("seed " << seed);
    test::random_source random(seed);
    const auto regions = static_cast<std::size_t>(random.integer(1, 4)), layers = static_cast<std::size_t>(random.integer(1, 12));
    const tables t = random_tables(random, regions, layers, random.pick(std::vector<int>{0, 2, 10, 40}));
    region_chain c = chain_of(t, random.pick(std::vector<int>{1, 3, 8}));
    if (layers > 4 && random.chance(0.3)) c.positions.erase(c.positions.begin() + random.integer(1, static_cast<int>(layers) - 1));
    std::vector<std::size_t> order(regions);
    std::iota(order.begin(), order.end(), std::size_t{0});
    random.shuffle(order);
    if (regions > 2 && random.chance(0.3)) order.pop_back();
    for (const region_cost cost : costs) {
      for (const region_use use : uses) {
        INFO((cost == region_cost::printed ? "printed" : "serial links") << (use == region_use::all ? ", all" : ", any"));
        const double best = brute_force(c, cost, use);
        const region_result r = split_exactly(c, {.cost = cost, .use = use});
        REQUIRE(r.split.seconds == best);
        REQUIRE(r.status.result == (best < inf ? outcome::feasible : outcome::infeasible));
        REQUIRE(r.split.exists() == (best < inf));
        REQUIRE(r.status.proof.has_value() == (best == inf));
        if (best < inf) require_split(c, r, cost, use);
        const double in_order = brute_force(c, cost, use, order);
        const region_result o = split_in_order(c, order, {.cost = cost, .use = use});
        REQUIRE(o.split.seconds == in_order);
        REQUIRE(o.split.exists() == (in_order < inf));
        const region_result beam = split_by_beam(c, {.cost = cost, .use = use});
        REQUIRE(beam.split.seconds >= best);
        if (beam.split.exists()) require_split(c, beam, cost, use);
        (best < inf ? split : none) += 1;
        idle += best < inf && use == region_use::any && r.split.region.size() < regions ? 1 : 0;
        if (best == inf) continue;
        (beam.split.exists() ? met : missed) += 1;
        if (!beam.split.exists()) continue;
        const double gap = best > 0 ? beam.split.seconds / best - 1 : 0;
        sum += gap;
        worst = std::max(worst, gap);
      }
    }
  }
  WARN("beam over the exact search: mean " << 100 * sum / met << " %, worst " << 100 * worst << " %, no split " << missed << " of "
                                           << met + missed);
  CHECK(split > 600);
  CHECK(none > 100);
  CHECK(idle > 100);
}

TEST_CASE("serial links need both numbers of a cell's labels") {
  int linked = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 300; ++seed) {
    INFO("seed " << seed);
    test::random_source random(seed);
    tables t = random_tables(random, 4, 6, 30);
    for (int g = 0; g < 4; ++g) {
      for (int& x : t.forward[static_cast<std::size_t>(g)]) x = random.integer(0, 6);
      for (int& x : t.link[static_cast<std::size_t>(g)]) x = random.integer(1, 30);
      t.memory[static_cast<std::size_t>(g)] = 1000;
    }
    const region_chain c = chain_of(t, 4);
    const double best = brute_force(c, region_cost::serial_links, region_use::all);
    REQUIRE(split_exactly(c, {.cost = region_cost::serial_links}).split.seconds == best);
    REQUIRE(split_in_order(c, {0, 1, 2, 3}, {.cost = region_cost::serial_links}).split.seconds ==
            brute_force(c, region_cost::serial_links, region_use::all, {0, 1, 2, 3}));
    linked += best > split_exactly(c).split.seconds ? 1 : 0;
  }
  CHECK(linked > 30);
}

TEST_CASE("coarse runs, windows and limits lose nothing: every order of five regions by itself", "[unsanitized]") {
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 4; ++seed) {
    for (const double slow : {0.3, 10.0}) {
      const region_chain c = test::random_region_chain(seed, 5, 60, 6, slow);
      for (const region_cost cost : costs) {
        std::vector<std::size_t> order{0, 1, 2, 3, 4};
        double best = inf, best_any = inf;
        do {
          best = std::min(best, split_in_order(c, order, {.cost = cost}).split.seconds);
          best_any = std::min(best_any, split_in_order(c, order, {.cost = cost, .use = region_use::any}).split.seconds);
        } while (std::next_permutation(order.begin(), order.end()));
        INFO("seed " << seed << ", slow " << slow);
        REQUIRE(split_exactly(c, {.cost = cost}).split.seconds == Approx(best).epsilon(1e-12));
        REQUIRE(split_exactly(c, {.cost = cost, .use = region_use::any}).split.seconds == Approx(best_any).epsilon(1e-12));
        REQUIRE(best_any <= best);
      }
    }
  }
}

TEST_CASE("splits obey laws: scaled times, other names, one region more, one more microbatch") {
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 20; ++seed) {
    INFO("seed " << seed);
    const region_chain c = test::random_region_chain(seed, 5, 30, 4, 3);
    for (const region_cost cost : costs) {
      for (const region_use use : uses) {
        const region_dp_options o{.cost = cost, .use = use};
        const region_split best = split_exactly(c, o).split;
        region_chain scaled = c;
        scaled.stage = [&](std::size_t g, std::size_t first, std::size_t last) {
          const region_stage s = c.stage(g, first, last);
          return region_stage{0.125 * s.forward_s, 0.125 * s.backward_s, 0.125 * s.weights_s, 0.125 * s.collective_s, s.fits};
        };
        scaled.transfer_s = [&](std::size_t g, std::size_t h, std::size_t l) { return 0.125 * c.transfer_s(g, h, l); };
        const region_split smaller = split_exactly(scaled, o).split;
        CHECK(smaller.first == best.first);
        CHECK(smaller.region == best.region);
        CHECK(8 * smaller.seconds == best.seconds);
        region_chain renamed = c;
        renamed.stage = [&](std::size_t g, std::size_t first, std::size_t last) { return c.stage(4 - g, first, last); };
        renamed.transfer_s = [&](std::size_t g, std::size_t h, std::size_t l) { return c.transfer_s(4 - g, 4 - h, l); };
        CHECK(split_exactly(renamed, o).split.seconds == Approx(best.seconds).epsilon(1e-12));
        region_chain busier = c;
        ++busier.microbatches;
        CHECK(split_exactly(busier, o).split.seconds >= best.seconds);
        if (use == region_use::all) continue;
        region_chain fewer = c;
        fewer.regions = 4;
        CHECK(split_exactly(fewer, o).split.seconds >= best.seconds);
        CHECK(split_exactly(c, {.cost = cost}).split.seconds >= best.seconds);
      }
    }
  }
}

TEST_CASE("searches of splits answer the same each time, and the beam by its seed") {
  const region_chain c = test::random_region_chain(3, 8, 80, 8, 5);
  for (const region_use use : uses) {
    const region_result exact = split_exactly(c, {.use = use}), beam = split_by_beam(c, {.use = use, .seed = 7});
    CHECK(split_exactly(c, {.use = use}).split == exact.split);
    const region_result again = split_by_beam(c, {.use = use, .seed = 7});
    CHECK(again.split == beam.split);
    CHECK(again.weighed == beam.weighed);
    const beam_against_exact both = compare_with_exact(c, {.use = use, .seed = 7});
    CHECK(both.exact.split == exact.split);
    CHECK(both.beam.split == beam.split);
    CHECK(both.gap() >= 0);
    CHECK(both.gap() == beam.split.seconds / exact.split.seconds - 1);
  }
}

TEST_CASE("twelve regions and four hundred layers are split exactly within the budget, and a smaller budget stops", "[long]") {
  for (const double slow : {1.0, 10.0}) {
    const region_chain c = test::random_region_chain(1, 12, 400, 16, slow);
    for (const region_use use : uses) {
      const region_result r = split_exactly(c, {.use = use});
      REQUIRE(r.status.ok());
      CHECK(r.weighed < region_dp_options{}.most_extensions / 4);
      require_split(c, r, region_cost::printed, use);
      const region_result stopped = split_exactly(c, {.use = use, .most_extensions = 1000});
      CHECK(stopped.status.result == outcome::stopped);
      CHECK(stopped.split.seconds >= r.split.seconds);
      require_split(c, stopped, region_cost::printed, use);
    }
  }
}

TEST_CASE("fifty regions are split by the beam, and its order is then cut exactly") {
  const region_chain c = test::random_region_chain(1, 50, 100, 16, 5);
  for (const region_use use : uses) {
    const region_result beam = split_by_beam(c, {.use = use, .iterations = 30});
    const region_result r = split_regions(c, {.use = use}, {.iterations = 30});
    REQUIRE(r.status.ok());
    require_split(c, r, region_cost::printed, use);
    CHECK(r.split.seconds <= beam.split.seconds);
    const region_result stopped = split_by_beam(c, {.use = use, .most_weighed = 5});
    CHECK(stopped.status.result == outcome::stopped);
    CHECK(stopped.weighed == 5);
    CHECK(stopped.split.seconds >= beam.split.seconds);
  }
}

TEST_CASE("what no split can do is said: memory, links, more regions than positions") {
  region_chain c = test::random_region_chain(1, 3, 8, 4, 1);
  const region_chain good = c;
  c.stage = [&](std::size_t g, std::size_t first, std::size_t last) {
    region_stage s = good.stage(g, first, last);
    s.fits = first > 5 || last <= 5;  // layer 5 fits nowhere
    return s;
  };
  CHECK_THAT(split_exactly(c, {.use = region_use::any}).status.reason, Contains("layer 5 is part of no run"));
  c = good;
  c.transfer_s = [](std::size_t, std::size_t, std::size_t) { return inf; };
  CHECK(split_exactly(c).status.result == outcome::infeasible);
  CHECK_THAT(split_exactly(c).status.reason, Contains("links between them, with every region used"));
  CHECK(split_by_beam(c).status.result == outcome::none_found);
  CHECK_THAT(split_by_beam(c).status.reason, Contains("the nearest has 2 stages"));
  CHECK(split_exactly(c, {.use = region_use::any}).split.region.size() == 1);
  c = good;
  c.positions = {0, 4};
  CHECK_THAT(split_exactly(c).status.reason, Contains("3 regions cannot share 2 positions"));
  CHECK_THAT(split_by_beam(c).status.reason, Contains("3 regions cannot share 2 positions"));
  CHECK(compare_with_exact(c).gap() == 0);
}

TEST_CASE("chains and splits that are none are refused") {
  const region_chain good = test::random_region_chain(1, 3, 8, 4, 1);
  const auto refuses = [&](auto&& break_it, const std::string& words) {
    region_chain c = good;
    break_it(c);
    CHECK_THROWS_WITH(split_exactly(c), Contains(words));
    CHECK_THROWS_WITH(split_by_beam(c), Contains(words));
    CHECK_THROWS_WITH(split_in_order(c, {0, 1}), Contains(words));
  };
  refuses([](region_chain& c) { c.regions = 0; }, "regions = 0");
  refuses([](region_chain& c) { c.microbatches = 0; }, "microbatches = 0");
  refuses([](region_chain& c) { c.positions = {}; }, "begin with 0");
  refuses([](region_chain& c) { c.positions = {0, 3, 3}; }, "ascend");
  refuses([](region_chain& c) { c.positions = {0, 8}; }, "the last position, 8");
  refuses([](region_chain& c) { c.stage = nullptr; }, "callable");
  refuses([](region_chain& c) { c.stage = [](auto, auto, auto) { return region_stage{-1, 0, 0, 0}; }; }, "= {-1, 0, 0, 0} s");
  refuses(
      [](region_chain& c) { c.stage = [](auto, auto, auto) {
                              return region_stage{1, 0, 0, std::numeric_limits<double>::quiet_NaN()};
                            }; },
      "{1, 0, 0, nan} s");
  refuses([](region_chain& c) { c.transfer_s = [](auto, auto, auto) { return -2.0; }; }, "= -2 s");
  CHECK_THROWS_WITH(split_exactly(test::random_region_chain(1, 13, 20, 4, 1)), Contains("13 regions; expected at most 12"));
  CHECK_THROWS_WITH(split_in_order(good, {}), Contains("empty"));
  CHECK_THROWS_WITH(split_in_order(good, {1, 1}), Contains("region 1 in the order"));
  CHECK_THROWS_WITH(split_in_order(good, {3}), Contains("region 3 in the order"));
  CHECK_THROWS_WITH(split_by_beam(good, {.width = 0}), Contains("width = 0"));
  CHECK_THROWS_WITH(region_split_seconds(good, {}), Contains("from layer 0 on"));
  CHECK_THROWS_WITH(region_split_seconds(good, {.first = {0, 9}, .region = {0, 1}}), Contains("layer 9"));
  CHECK_THROWS_WITH(region_split_seconds(good, {.first = {0, 4}, .region = {1, 1}}), Contains("region 1"));
}

}  // namespace test_region_split
