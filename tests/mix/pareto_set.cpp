// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/mix/mixing.hpp>
#include <hetplan/mix/pareto_set.hpp>

#include "support/random_source.hpp"

namespace test_pareto_set {

using namespace hetplan;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

using points = std::vector<std::vector<double>>;

/// Few values per coordinate, so that points tie in some or all of them.
points random_points(test::random_source& random, int count, std::size_t criteria, int values) {
  points all;
  for (int i = 0; i < count; ++i) {
    std::vector<double> p;
    for (std::size_t k = 0; k < criteria; ++k) p.push_back(random.integer(0, values));
    all.push_back(p);
  }
  return all;
}

/// Nowhere worse and not the same, written without the library's words.
bool beats(const std::vector<double>& a, const std::vector<double>& b) {
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (a[k] > b[k]) return false;
  }
  return a != b;
}

/// Adds up the cells between sorted coordinates that some point covers.
double volume_by_cells(const points& all, const std::vector<double>& reference) {
  const std::size_t n = reference.size();
  std::array<std::vector<double>, 3> cuts;
  for (std::size_t k = 0; k < 3; ++k) {
    if (k >= n) {
      cuts[k] = {0, 1};
      continue;
    }
    for (const auto& p : all) {
      if (p[k] < reference[k]) cuts[k].push_back(p[k]);
    }
    cuts[k].push_back(reference[k]);
    std::sort(cuts[k].begin(), cuts[k].end());
  }
  double sum = 0;
  for (std::size_t x = 0; x + 1 < cuts[0].size(); ++x) {
    for (std::size_t y = 0; y + 1 < cuts[1].size(); ++y) {
      for (std::size_t z = 0; z + 1 < cuts[2].size(); ++z) {
        const std::vector<double> corner{cuts[0][x], cuts[1][y], cuts[2][z]};
        const bool covered = std::any_of(all.begin(), all.end(), [&](const auto& p) {
          for (std::size_t k = 0; k < n; ++k) {
            if (p[k] > corner[k]) return false;
          }
          return true;
        });
        if (covered) sum += (cuts[0][x + 1] - cuts[0][x]) * (cuts[1][y + 1] - cuts[1][y]) * (cuts[2][z + 1] - cuts[2][z]);
      }
    }
  }
  return sum;
}

ranked_plan evaluated(double latency, double energy, double memory) {
  return {{}, {.latency = seconds(latency), .devices = {{.used = true, .energy = joules(energy), .peak_memory = bytes(memory)}}}};
}

}  // namespace

TEST_CASE("a Pareto set keeps exactly the points that no other one beats, in lexicographic order") {
  for (std::uint64_t seed = test::first_seed(), end = seed + 400; seed < end; ++seed) {
    CAPTURE(seed);
    test::random_source random(seed);
    const std::size_t criteria = static_cast<std::size_t>(random.integer(1, 5));
    const int count = random.integer(1, 60), values = random.integer(2, 12);
    const points all = random_points(random, count, criteria, values);
    mix::pareto_set<std::size_t> set(criteria);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool expected = std::none_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(i),
                                         [&](const auto& p) { return p == all[i] || beats(p, all[i]); });
      REQUIRE(set.insert(all[i], i) == expected);
    }
    points left;
    for (const auto& p : all) {
      if (std::none_of(all.begin(), all.end(), [&](const auto& q) { return beats(q, p); })) left.push_back(p);
    }
    std::sort(left.begin(), left.end());
    left.erase(std::unique(left.begin(), left.end()), left.end());
    REQUIRE(set.size() == left.size());
    for (std::size_t e = 0; e < left.size(); ++e) {
      REQUIRE(set.entries()[e].point == left[e]);
      // of equal points the first is there
      REQUIRE(set.entries()[e].item == static_cast<std::size_t>(std::find(all.begin(), all.end(), left[e]) - all.begin()));
    }
  }
}

TEST_CASE("a Pareto set does not depend on the order of insertion") {
  for (std::uint64_t seed = test::first_seed(), end = seed + 100; seed < end; ++seed) {
    CAPTURE(seed);
    test::random_source random(seed);
    const std::size_t criteria = static_cast<std::size_t>(random.integer(2, 4));
    points all = random_points(random, 40, criteria, 9);
    mix::pareto_set<int> one(criteria), other(criteria);
    for (const auto& p : all) one.insert(p, 0);
    random.shuffle(all);
    for (const auto& p : all) other.insert(p, 0);
    REQUIRE(one == other);
  }
}

TEST_CASE("a Pareto set refuses what it cannot compare, and takes infinity") {
  CHECK_THROWS_AS(mix::pareto_set<int>(0), invalid_input);
  mix::pareto_set<int> set(2);
  CHECK_THROWS_WITH(set.insert({1, 2, 3}, 0), "pareto_set: a point of 3 coordinates; expected 2");
  CHECK_THROWS_WITH(set.insert({1, no_number}, 0), "pareto_set: coordinate 1 is nan; expected a number");
  CHECK(set.empty());
  CHECK(set.insert({inf, 1}, 1));
  CHECK(set.insert({3, 1}, 2));
  REQUIRE(set.size() == 1);
  CHECK(set.entries()[0].item == 2);
  CHECK(mix::dominates(std::vector<double>{1, 2}, std::vector<double>{1, 3}));
  CHECK_FALSE(mix::dominates(std::vector<double>{1, 2}, std::vector<double>{1, 2}));
}

TEST_CASE("criteria read an evaluation") {
  const evaluation e{.latency = 3_s,
                     .devices = {{.used = true, .energy = 5_J, .peak_memory = 70_B}, {.used = true, .energy = 7_J, .peak_memory = 20_B}},
                     .resource_bytes = {100_B, 11_B}};
  CHECK(mix::response_time{}.value(e) == 3);
  CHECK(mix::total_energy{}.value(e) == 12);
  CHECK(mix::device_energy{device_id(1)}.value(e) == 7);
  CHECK(mix::peak_memory{}.value(e) == 70);
  CHECK(mix::bytes_moved{}.value(e) == 111);
  CHECK_THROWS_WITH(mix::device_energy{device_id(2)}.value(e),
                    "device_energy: device 2 of an evaluation with 2 devices; expected one of them");
  evaluation words = e;
  words.time_between_tokens = 20_ms;
  CHECK(mix::response_time{}.value(words) == 0.02);
}

TEST_CASE("plans are kept by the criteria that are asked for") {
  const std::vector<ranked_plan> plans{evaluated(5, 1, 9), evaluated(1, 5, 9), evaluated(3, 3, 9), evaluated(4, 4, 1), evaluated(3, 3, 9)};
  const auto items = [](const mix::pareto_set<std::size_t>& s) {
    std::vector<std::size_t> all;
    for (const auto& e : s.entries()) all.push_back(e.item);
    return all;
  };
  CHECK(items(mix::pareto_plans(plans, mix::response_time{}, mix::total_energy{})) == std::vector<std::size_t>{1, 2, 0});
  CHECK(items(mix::pareto_plans(plans, mix::response_time{}, mix::total_energy{}, mix::peak_memory{})) ==
        std::vector<std::size_t>{1, 2, 3, 0});
  CHECK(items(mix::pareto_plans(plans, mix::device_energy{device_id(0)})) == std::vector<std::size_t>{0});
  CHECK(mix::pareto_plans({}, mix::response_time{}).empty());
}

TEST_CASE("the hypervolume is the sum of the cells that points dominate") {
  for (std::uint64_t seed = test::first_seed(), end = seed + 300; seed < end; ++seed) {
    CAPTURE(seed);
    test::random_source random(seed);
    const std::size_t criteria = static_cast<std::size_t>(random.integer(2, 3));
    const bool tied = random.chance(0.5);
    points all = random_points(random, random.integer(0, 14), criteria, tied ? 5 : 1 << 20);
    const double top = tied ? 6 : 1 << 20;  // some points lie beyond the reference
    std::vector<double> reference;
    for (std::size_t k = 0; k < criteria; ++k) reference.push_back(top * random.between(0.6, 1.1));
    const double expected = volume_by_cells(all, reference);
    const double volume = mix::hypervolume(all, reference);
    CHECK(volume == Approx(expected).epsilon(1e-12));
    random.shuffle(all);
    CHECK(mix::hypervolume(all, reference) == volume);
    mix::pareto_set<int> set(criteria);
    for (const auto& p : all) set.insert(p, 0);
    CHECK(mix::hypervolume(set, reference) == Approx(expected).epsilon(1e-12));
    // a point that nothing covers adds to it
    std::vector<double> better(criteria, -1);
    all.push_back(better);
    CHECK(mix::hypervolume(all, reference) > volume);
  }
}

TEST_CASE("the hypervolume refuses what has none") {
  CHECK(mix::hypervolume(points{{1, 1}, {inf, 0}}, std::vector<double>{3, 4}) == 6);
  CHECK(mix::hypervolume(points{{3, 1}, {1, 4}}, std::vector<double>{3, 4}) == 0);
  CHECK_THROWS_WITH(mix::hypervolume(points{}, std::vector<double>(4)), "hypervolume: 4 criteria; expected 2 or 3");
  CHECK_THROWS_WITH(mix::hypervolume(points{}, std::vector<double>{1, inf}),
                    "hypervolume: the reference has a coordinate inf; expected finite ones");
  CHECK_THROWS_WITH(mix::hypervolume(points{{1}}, std::vector<double>{1, 1}), "hypervolume: point 0 has 1 coordinates; expected 2");
  CHECK_THROWS_AS(mix::hypervolume(points{{1, no_number}}, std::vector<double>{1, 1}), invalid_input);
  CHECK_THROWS_AS(mix::hypervolume(points{{1, -inf}}, std::vector<double>{1, 1}), invalid_input);
}

}  // namespace test_pareto_set
