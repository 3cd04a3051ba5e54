// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include <hetplan/partition/apportion.hpp>

namespace test_bottleneck_chain {

using hetplan::partition::bottleneck_chain;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

struct instance {
  std::vector<std::vector<double>> layer_s;  // [device][layer]
  std::vector<double> cut_bytes;             // [position]
  std::vector<std::vector<double>> link_s;   // [from][to], seconds per byte
  std::vector<double> layer_bytes;
  double memory = 0;

  double stage(std::size_t first, std::size_t last, std::size_t d, int following) const {
    double time = 0, bytes = 0;
    for (std::size_t l = first; l < last; ++l) {
      time += layer_s[d][l];
      bytes += layer_bytes[l] * (1 + following);
    }
    return bytes > memory ? inf : time;
  }
  double cut(std::size_t position, std::size_t from, std::size_t to) const { return cut_bytes[position] * link_s[from][to]; }
};

instance random_instance(std::mt19937& random, std::size_t layers, std::size_t devices) {
  const auto draw = [&](int n) { return static_cast<double>(1 + random() % static_cast<unsigned>(n)); };
  instance x;
  x.memory = draw(40) + 5;
  x.layer_s.assign(devices, {});
  x.link_s.assign(devices, std::vector<double>(devices));
  for (std::size_t l = 0; l < layers; ++l) {
    x.cut_bytes.push_back(draw(6));
    x.layer_bytes.push_back(draw(5));
    for (auto& row : x.layer_s) row.push_back(draw(9));
  }
  for (auto& row : x.link_s) {
    for (double& s : row) s = draw(4);
  }
  return x;
}

/// Returns the least bottleneck over all cuts into q stages and all increasing choices of devices.
double brute_force(const instance& x, std::size_t layers, std::size_t devices, std::size_t q) {
  double best = inf;
  std::function<void(std::size_t, std::size_t, std::size_t, double)> go = [&](std::size_t first, std::size_t d, std::size_t left,
                                                                              double worst) {
    for (std::size_t last = first + 1; last <= layers; ++last) {
      if ((left == 1) != (last == layers)) continue;
      const double here = std::max(worst, x.stage(first, last, d, static_cast<int>(left) - 1));
      if (left == 1) {
        best = std::min(best, here);
      } else {
        for (std::size_t e = d + 1; e < devices; ++e) go(last, e, left - 1, std::max(here, x.cut(last, d, e)));
      }
    }
  };
  for (std::size_t d = 0; d < devices; ++d) go(0, d, q, 0);
  return best;
}

}  // namespace

TEST_CASE("the bottleneck cut equals brute force for every number of stages") {
  const unsigned seed = GENERATE(11U, 12U, 13U);
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    INFO("round " << round);
    const std::size_t layers = 1 + random() % 7, devices = 1 + random() % 4;
    const instance x = random_instance(random, layers, devices);
    std::vector<std::size_t> positions(layers);
    for (std::size_t i = 0; i < layers; ++i) positions[i] = i;
    const auto cuts = bottleneck_chain(
        positions, layers, devices, 4, [&](auto first, auto last, auto d, int following) { return x.stage(first, last, d, following); },
        [&](auto position, auto from, auto to) { return x.cut(position, from, to); });
    REQUIRE(cuts.size() == std::min(layers, devices));
    for (std::size_t q = 1; q <= cuts.size(); ++q) {
      const auto& cut = cuts[q - 1];
      const double best = brute_force(x, layers, devices, q);
      REQUIRE(cut.bottleneck == best);
      REQUIRE(cut.exists() == (best < inf));
      if (!cut.exists()) continue;
      double worst = 0;
      for (std::size_t i = 0; i < q; ++i) {
        const std::size_t last = i + 1 < q ? cut.first[i + 1] : layers;
        worst = std::max(worst, x.stage(cut.first[i], last, cut.device[i], static_cast<int>(q - i) - 1));
        if (i + 1 < q) {
          REQUIRE(cut.device[i] < cut.device[i + 1]);
          worst = std::max(worst, x.cut(last, cut.device[i], cut.device[i + 1]));
        }
      }
      REQUIRE(worst == cut.bottleneck);
    }
  }
}

TEST_CASE("stages begin only where they may") {
  const std::vector<double> layer_s{1, 1, 1, 9, 1, 1};
  const auto stage = [&](std::size_t first, std::size_t last, std::size_t, int) {
    double t = 0;
    for (std::size_t l = first; l < last; ++l) t += layer_s[l];
    return t;
  };
  const auto free = [](std::size_t, std::size_t, std::size_t) { return 0.0; };
  REQUIRE(bottleneck_chain({0, 1, 2, 3, 4, 5}, 6, 2, 2, stage, free)[1].bottleneck == 11);
  const auto coarse = bottleneck_chain({0, 2, 5}, 6, 2, 2, stage, free)[1];
  REQUIRE(coarse.bottleneck == 12);  // stages {1 1} {1 9 1 1}
  REQUIRE(coarse.first == std::vector<std::size_t>{0, 2});
}

}  // namespace test_bottleneck_chain
