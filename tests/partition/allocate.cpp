// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include <hetplan/partition/apportion.hpp>

#include "support/random_source.hpp"

using hetplan::partition::allocate;

namespace {

/// Returns the least makespan over all integer shares within the caps; negative if there are none.
double brute_force(int samples, const std::vector<int>& caps, const std::vector<std::vector<double>>& time_s) {
  double best = -1;
  std::function<void(std::size_t, int, double)> place = [&](std::size_t d, int left, double worst) {
    if (d == caps.size()) {
      if (left == 0 && (best < 0 || worst < best)) best = worst;
      return;
    }
    for (int n = 0; n <= std::min(caps[d], left); ++n)
      place(d + 1, left - n, n == 0 ? worst : std::max(worst, time_s[d][static_cast<std::size_t>(n)]));
  };
  place(0, samples, 0);
  return best;
}

}  // namespace

TEST_CASE("shares by hand: a device twice as fast takes twice the samples") {
  const auto shares = allocate(6, {6, 6}, [](std::size_t d, int n) { return n * (d == 0 ? 1.0 : 2.0); });
  REQUIRE(shares == std::vector<int>{4, 2});
}

TEST_CASE("equal devices share evenly, and what is left over goes to the first") {
  const auto same = [](std::size_t, int n) { return 1.0 * n; };
  REQUIRE(allocate(4, {4, 4}, same) == std::vector<int>{2, 2});
  REQUIRE(allocate(6, {6, 6, 6}, same) == std::vector<int>{2, 2, 2});
  REQUIRE(allocate(5, {5, 5, 5}, same) == std::vector<int>{2, 2, 1});
  REQUIRE(allocate(5, {1, 5, 5}, same) == std::vector<int>{1, 2, 2});
  // Where time is constant, the next sample goes to the smallest share: no device idles needlessly.
  const auto flat = [](std::size_t, int) { return 1.0; };
  REQUIRE(allocate(6, {6, 6, 6}, flat) == std::vector<int>{2, 2, 2});
  REQUIRE(allocate(2, {6, 6, 6}, flat) == std::vector<int>{1, 1, 0});
  // Tie: the second sample of device 0 ends with the first sample of device 1.
  REQUIRE(allocate(2, {2, 2}, [](std::size_t d, int n) { return d == 0 ? 1.0 * n : 2.0 * n; }) == std::vector<int>{1, 1});
}

TEST_CASE("a device without memory takes nothing, and too little memory in all is said so") {
  const auto time_s = [](std::size_t, int n) { return 1.0 * n; };
  REQUIRE(allocate(4, {0, 4}, time_s) == std::vector<int>{0, 4});
  REQUIRE_FALSE(allocate(4, {1, 2}, time_s).has_value());
}

TEST_CASE("greedy shares reach the brute-force optimum for every non-decreasing time") {
  const unsigned seed = GENERATE(1U, 2U, 3U, 4U);
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 250; ++round) {
    const std::size_t devices = 1 + random() % 4;
    const int samples = 1 + static_cast<int>(random() % 9);
    std::vector<int> caps;
    std::vector<std::vector<double>> time_s(devices, std::vector<double>{0});
    for (std::size_t d = 0; d < devices; ++d) {
      caps.push_back(static_cast<int>(random() % 8));
      for (int n = 1; n <= samples; ++n) time_s[d].push_back(time_s[d].back() + static_cast<double>(random() % 5));  // with plateaus
    }
    const auto shares = allocate(samples, caps, [&](std::size_t d, int n) { return time_s[d][static_cast<std::size_t>(n)]; });
    const double best = brute_force(samples, caps, time_s);
    INFO("round " << round);
    REQUIRE(shares.has_value() == (best >= 0));
    if (!shares) continue;
    double worst = 0;
    int total = 0;
    for (std::size_t d = 0; d < devices; ++d) {
      REQUIRE((*shares)[d] <= caps[d]);
      total += (*shares)[d];
      if ((*shares)[d] > 0) worst = std::max(worst, time_s[d][static_cast<std::size_t>((*shares)[d])]);
    }
    REQUIRE(total == samples);
    REQUIRE(worst == best);
  }
}

TEST_CASE("classes of equal devices get what their devices get one by one") {
  const unsigned seed = GENERATE(1U, 2U, 3U, 4U);
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 250; ++round) {
    struct equal_devices : hetplan::partition::sample_taker {
      std::vector<double> time_s{0};
    };
    std::vector<equal_devices> classes(1 + random() % 3);
    std::vector<std::size_t> class_of;
    std::vector<int> caps;
    const int samples = 1 + static_cast<int>(random() % 12);
    for (std::size_t c = 0; c < classes.size(); ++c) {
      classes[c].devices = 1 + static_cast<int>(random() % 3);
      classes[c].cap = static_cast<int>(random() % 8);
      for (int n = 1; n <= 8; ++n) classes[c].time_s.push_back(classes[c].time_s.back() + static_cast<double>(random() % 3));
      class_of.insert(class_of.end(), static_cast<std::size_t>(classes[c].devices), c);
      caps.insert(caps.end(), static_cast<std::size_t>(classes[c].devices), classes[c].cap);
    }
    const auto time_s = [](const equal_devices& c, int share) { return c.time_s[static_cast<std::size_t>(share)]; };
    const auto one_by_one = allocate(samples, caps, [&](std::size_t d, int share) { return time_s(classes[class_of[d]], share); });
    INFO("round " << round);
    REQUIRE(hetplan::partition::apportion(samples, classes, time_s) == one_by_one.has_value());
    if (!one_by_one) continue;
    std::vector<int> shares;
    for (const equal_devices& c : classes) {
      REQUIRE(c.largest_share() <= c.cap);
      for (int i = 0; i < c.devices; ++i) shares.push_back(c.share(i));
    }
    REQUIRE(shares == *one_by_one);
  }
}

TEST_CASE("many samples go in portions, all of them, and nearly as well as one by one") {
  hetplan::test::random_source random(7);
  for (int round = 0; round < 200; ++round) {
    const int samples = random.integer(257, 20'000);
    const auto devices = static_cast<std::size_t>(random.integer(1, 5));
    std::vector<double> each, fixed;
    std::vector<int> caps;
    for (std::size_t d = 0; d < devices; ++d) {
      each.push_back(random.between(0.2, 4));
      fixed.push_back(random.between(0, 50));
      caps.push_back(random.chance(0.3) ? random.integer(0, samples) : samples);
    }
    const auto time_s = [&](std::size_t d, int n) { return fixed[d] + each[d] * n; };
    const auto shares = allocate(samples, caps, time_s);
    INFO("round " << round << ", " << samples << " samples");
    long long room = 0;
    for (const int cap : caps) room += cap;
    REQUIRE(shares.has_value() == (room >= samples));
    if (!shares) continue;
    long long all = 0;
    double slowest = 0, portion_s = 0;
    for (std::size_t d = 0; d < devices; ++d) {
      REQUIRE((*shares)[d] <= caps[d]);
      all += (*shares)[d];
      if ((*shares)[d] > 0) slowest = std::max(slowest, time_s(d, (*shares)[d]));
      portion_s = std::max(portion_s, each[d] * (samples / 256.0 + 1));
    }
    REQUIRE(all == samples);
    // A makespan shorter by one portion leaves room for no more samples than there are.
    const double earlier = slowest - portion_s;
    double fit = 0;
    for (std::size_t d = 0; d < devices; ++d) fit += std::clamp(std::floor((earlier - fixed[d]) / each[d]), 0.0, 1.0 * caps[d]);
    REQUIRE(fit <= samples);
  }
}

TEST_CASE("nothing can be shared among no devices") {
  const auto same = [](std::size_t, int n) { return 1.0 * n; };
  for (const int samples : {0, 4}) {
    CHECK_THROWS_MATCHES(allocate(samples, {}, same), hetplan::invalid_input,
                         Catch::Message("allocate: no devices for " + std::to_string(samples) + " samples; expected at least one"));
  }
}
