// SPDX-License-Identifier: BSL-1.0
// The plans of ../shared/reference with the numbers that two independent programs give for them.

#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>

#include "support/oracle_case.hpp"

using namespace hetplan;
using namespace hetplan::test;

TEST_CASE("the reference plans have the reference numbers") {
  const std::string path = HETPLAN_SHARED_DIR "/reference/simulator_cases.json";
  if (!std::filesystem::exists(path)) {
    WARN("SKIPPED: " << path << " is absent");
    return;
  }
  std::ifstream file(path);
  const nlohmann::json document = nlohmann::json::parse(file);
  int number = 0;
  for (const nlohmann::json& c : document.at("cases")) {
    const deviation d = check_case(c, no_lp{});
    INFO("case " << number++ << ": " << d.where);
    CHECK(d.largest <= 1e-9);
  }
  CHECK(number >= 100);
}
