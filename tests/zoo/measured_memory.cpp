// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include "support/measured_memory.hpp"
#include "support/shared_data.hpp"

TEST_CASE("training takes what the allocator's peak was on an H100, and at most 15 % more") {
  const auto file = hetplan::test::shared_data("data/h100/memory.csv");
  if (!file) return;
  const auto rows = hetplan::test::read_memory_rows(*file);
  CHECK(rows.size() == 78);
  for (const hetplan::test::memory_row& r : rows) {
    const double ratio = hetplan::test::judged_bytes(r) / r.peak_bytes;
    CAPTURE(r.model, r.dtype, r.optimizer, r.by_blocks, r.batch, r.tokens, ratio);
    CHECK((ratio >= 1 && ratio <= 1.15));
  }
}
