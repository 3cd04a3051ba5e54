// SPDX-License-Identifier: BSL-1.0
// The knapsack of bytes freed against seconds added, against all choices.

#include <functional>
#include <limits>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/solve/cheapest_tiers.hpp>

#include "support/random_source.hpp"

using namespace hetplan;
using namespace hetplan::test;

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

double least_of_all(const std::vector<tier_item>& items, double need, const std::vector<double>& room) {
  double best = infinite;
  std::vector<double> left = room;
  const std::function<void(std::size_t, int, std::size_t, double, double)> go = [&](std::size_t i, int rest, std::size_t t, double freed,
                                                                                    double cost) {
    if (i == items.size()) {
      if (freed >= need * (1 - 1e-9)) best = std::min(best, cost);
      return;
    }
    if (t == room.size()) return go(i + 1, i + 1 < items.size() ? items[i + 1].count : 0, 0, freed, cost);
    for (int n = 0; n <= rest; ++n) {
      if (n > 0 && !(items[i].cost_s[t] < infinite)) break;
      if (n * items[i].weight > left[t] * (1 + 1e-9)) break;
      left[t] -= n * items[i].weight;
      go(i, rest - n, t + 1, freed + n * items[i].freed, cost + (n > 0 ? n * items[i].cost_s[t] : 0));
      left[t] += n * items[i].weight;
    }
  };
  go(0, items.front().count, 0, 0, 0);
  return best;
}

}  // namespace

TEST_CASE("the cheapest choice of tiers is that of all choices") {
  const std::uint64_t seed = first_seed();
  int possible = 0;
  for (int i = 0; i < 600; ++i) {
    random_source random(seed * 7000 + static_cast<std::uint64_t>(i));
    const bool ties = i % 2 == 0;
    const auto amount = [&] { return ties ? random.integer(1, 4) : random.between(0.5, 4); };
    std::vector<double> room;
    double all_room = 0;
    for (int t = random.integer(1, 3); t > 0; --t) all_room += room.emplace_back(random.between(1, 10));
    std::vector<tier_item> items;
    for (int k = random.integer(1, 3); k > 0; --k) {
      tier_item item{random.integer(1, 4), amount(), 0, {}};
      item.weight = random.chance(0.7) ? item.freed : amount();
      for (std::size_t t = 0; t < room.size(); ++t)
        item.cost_s.push_back(random.chance(0.1) ? infinite : random.chance(0.2) ? 0 : amount());
      items.push_back(item);
    }
    const double need = random.between(0.1, all_room);
    const double least = least_of_all(items, need, room);
    const auto found = cheapest_tiers(items, need, room);
    INFO("seed " << seed << ", case " << i);
    REQUIRE(found.has_value() == (least < infinite));
    if (!found) continue;
    ++possible;
    CHECK(found->optimal);
    CHECK(found->cost_s == Approx(least).epsilon(1e-9).margin(1e-12));
    double freed = 0;
    for (std::size_t k = 0; k < items.size(); ++k) {
      int taken = 0;
      for (std::size_t t = 0; t < room.size(); ++t) taken += found->taken[k][t];
      CHECK(taken <= items[k].count);
      freed += taken * items[k].freed;
    }
    CHECK(freed >= need * (1 - 1e-9));
  }
  CHECK(possible > 200);
}

TEST_CASE("many equal blocks are few items") {
  // 80 blocks of three sizes with the same time per byte: what counts is the least excess.
  const std::vector<tier_item> items{{80, 0.85, 0.85, {0.034}}, {80, 1.4, 1.4, {0.056}}, {2, 2.1, 2.1, {0.084}}};
  const std::vector<double> room{1e3};
  const auto found = cheapest_tiers(items, 100.05, room);
  REQUIRE(found);
  CHECK(found->cost_s >= 100.05 * 0.04 * (1 - 1e-9));
  CHECK(found->cost_s <= 100.1 * 0.04);
  CHECK_FALSE(cheapest_tiers(items, 1e4, room));
  CHECK(cheapest_tiers(items, 0, room)->cost_s == 0);
}
