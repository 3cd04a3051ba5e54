// SPDX-License-Identifier: BSL-1.0
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/core/large_pages.hpp>

namespace test_large_pages {

using namespace hetplan;

TEST_CASE("small and large tables hold what is stored, grow, and are copied; a large one begins at a page of 2 MiB") {
  for (const std::size_t n : {std::size_t{1}, std::size_t{1000}, std::size_t{1} << 19, (std::size_t{1} << 19) + 7}) {
    CAPTURE(n);
    std::vector<std::int32_t, large_pages<std::int32_t>> table(n);
    if (n * sizeof(std::int32_t) >= (std::size_t{1} << 21))
      CHECK(reinterpret_cast<std::uintptr_t>(table.data()) % (std::size_t{1} << 21) == 0);
    std::iota(table.begin(), table.end(), 0);
    table.push_back(-1);
    auto copy = table;
    CHECK(copy == table);
    CHECK(copy[n - 1] == static_cast<std::int32_t>(n - 1));
    CHECK(copy[n] == -1);
    copy.swap(table);
    copy = std::move(table);
    CHECK(copy.size() == n + 1);
  }
  std::vector<std::vector<int>, large_pages<std::vector<int>>> rows(3, std::vector<int>(2, 7));
  rows.emplace_back(5, 1);
  CHECK(rows[2] == std::vector<int>{7, 7});
  CHECK(rows[3].size() == 5);
}

}  // namespace test_large_pages
