// SPDX-License-Identifier: BSL-1.0
#include <hetplan/core/sorting.hpp>

#include <algorithm>
#include <cstddef>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

using namespace hetplan;

TEST_CASE("sorts over indices are std::stable_sort, whatever the ties") {
  std::mt19937_64 random(36);
  for (std::size_t n = 0; n < 200; ++n) {
    INFO("n " << n);
    const std::size_t keys = 1 + random() % (n + 1);
    std::vector<std::pair<std::size_t, std::string>> all;  // (key, first place)
    for (std::size_t i = 0; i < n; ++i) all.emplace_back(random() % keys, std::to_string(i));
    const auto less = [](const auto& a, const auto& b) { return a.first < b.first; };
    const auto greater = [](const auto& a, const auto& b) { return a.first > b.first; };
    auto rising = all, falling = all, whole = all;
    std::stable_sort(rising.begin(), rising.end(), less);
    std::stable_sort(falling.begin(), falling.end(), greater);
    std::sort(whole.begin(), whole.end());

    const auto order = sorted_indices(n, [&](std::size_t a, std::size_t b) { return less(all[a], all[b]); });
    REQUIRE(order.size() == n);
    for (std::size_t i = 0; i < n; ++i) REQUIRE(all[order[i]] == rising[i]);
    auto sorted = all;
    sort_stably(sorted, greater);
    REQUIRE(sorted == falling);
    sort_stably(sorted);
    REQUIRE(sorted == whole);
    sorted = all;
    sort_by(sorted, &std::pair<std::size_t, std::string>::first);
    REQUIRE(sorted == rising);
    std::vector<std::size_t> some;
    for (const auto& [key, place] : all) some.push_back(key);
    const std::set<std::size_t> distinct(some.begin(), some.end());
    sort_distinct(some);
    REQUIRE(some == std::vector<std::size_t>(distinct.begin(), distinct.end()));
  }
}
