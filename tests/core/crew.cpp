// SPDX-License-Identifier: BSL-1.0
#include <hetplan/core/crew.hpp>

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <vector>

#include <catch2/catch.hpp>

using namespace hetplan;

TEST_CASE("a crew is called again and again, each worker once a call") {
  for (const std::size_t workers : {1U, 2U, 5U}) {
    INFO("workers " << workers);
    std::vector<long long> sums(workers, 0);
    long long step = 0;
    crew all(workers, [&](std::size_t i) { sums[i] += step * static_cast<long long>(i + 1); });
    CHECK(all.size() == workers);
    for (step = 1; step <= 1000; ++step) {
      all.call();
      REQUIRE(sums.back() == step * (step + 1) / 2 * static_cast<long long>(workers));
    }
  }
}

TEST_CASE("what a worker of a crew throws the call throws, the first worker's of several, and the crew goes on") {
  std::atomic<int> calls = 0;
  bool broken = true;
  crew all(3, [&](std::size_t i) {
    ++calls;
    if (broken && i > 0) throw std::runtime_error(i == 1 ? "one" : "two");
  });
  CHECK_THROWS_WITH(all.call(), "one");
  broken = false;
  CHECK_NOTHROW(all.call());
  CHECK_NOTHROW(all.call());
  CHECK(calls == 9);
}

TEST_CASE("a crew that is never called ends") {
  crew all(4, [](std::size_t) {});
}
