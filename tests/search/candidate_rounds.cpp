// SPDX-License-Identifier: BSL-1.0
// What observers of planners are told: one count, whatever the estimates and parts behind it.

#include <hetplan/search/ranking.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "support/random_source.hpp"

namespace test_candidate_rounds {

using namespace hetplan;

namespace {

ranked_plan that_takes(seconds latency) { return {{}, {.latency = latency}}; }

struct told {
  std::vector<std::pair<long long, long long>> counts = {};
  std::vector<double> best_s = {};
  long long stop_at = 1LL << 40;
  control operator()(const candidate_judged& c) {
    counts.emplace_back(c.judged, c.total);
    best_s.push_back(c.best != nullptr ? c.best->evaluation.latency.value() : -1);
    return c.judged < stop_at ? control::go : control::stop;
  }
};

}  // namespace

TEST_CASE("a total is corrected by what was judged, and no share of the work is taken back") {
  candidate_count c;
  const auto next = [&](long long estimate) {
    c.next(estimate);
    return std::pair(c.judged, c.total);
  };
  CHECK(next(4) == std::pair(1LL, 4LL));
  CHECK(next(4) == std::pair(2LL, 4LL));
  CHECK(next(100) == std::pair(3LL, 6LL));  // a half is done
  CHECK(next(5) == std::pair(4LL, 5LL));
  CHECK(next(5) == std::pair(5LL, 5LL));
  CHECK(next(5) == std::pair(6LL, 6LL));
  CHECK(next(0) == std::pair(7LL, 7LL));
  for (std::uint64_t seed = test::first_seed(), end = seed + 200; seed < end; ++seed) {
    CAPTURE(seed);
    test::random_source random(seed);
    candidate_count any;
    for (int i = 0; i < 100; ++i) {
      const candidate_count before = any;
      any.next(random.chance(0.1) ? 0 : random.integer(1, 200));
      CHECK(any.judged == before.judged + 1);
      CHECK(any.total >= any.judged);
      CHECK(any.judged * before.total >= before.judged * any.total);
    }
  }
}

TEST_CASE("parts are told as one planner, with the best of all") {
  told seen;
  candidate_rounds rounds(3, minimize_latency{}, seen);
  const ranked_plan slow = that_takes(5_s), fast = that_takes(2_s), between = that_takes(3_s);
  const candidate_observer first = rounds.part();
  CHECK(first({1, 2, nullptr}) == control::go);
  CHECK(first({2, 2, &slow}) == control::go);
  const candidate_observer second = rounds.part();
  CHECK(second({1, 1, &fast}) == control::go);
  seen.stop_at = 4;
  CHECK(rounds.part()({1, 4, &between}) == control::stop);
  CHECK(seen.counts == std::vector<std::pair<long long, long long>>{{1, 6}, {2, 6}, {3, 4}, {4, 5}});  // 1/6, 1/3, 2/3, 3/4 of the parts
  CHECK(seen.best_s == std::vector<double>{-1, 5, 2, 2});
}

TEST_CASE("where nobody observes, no part is observed, and more parts than said are told all the same") {
  candidate_rounds silent(2, minimize_latency{}, {});
  CHECK_FALSE(silent.part());
  told seen;
  candidate_rounds rounds(1, minimize_latency{}, seen);
  for (int i = 0; i < 3; ++i) static_cast<void>(rounds.part()({1, 1, nullptr}));
  CHECK(seen.counts == std::vector<std::pair<long long, long long>>{{1, 1}, {2, 2}, {3, 3}});
}

}  // namespace test_candidate_rounds
