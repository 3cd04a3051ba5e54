// SPDX-License-Identifier: BSL-1.0
// The plans of ../shared/reference against the numbers of two independent programs.

#include <filesystem>
#include <fstream>
#include <string>

#include <catch2/catch.hpp>

#include "support/oracle_case.hpp"
#include "support/shared_data.hpp"

using namespace hetplan;
using namespace hetplan::test;

namespace {

void check_reference(const std::string& name, int count) {
  const auto path = shared_data("reference/" + name);
  if (!path) return;
  std::ifstream file(*path);
  const nlohmann::json document = nlohmann::json::parse(file);
  int number = 0;
  for (const nlohmann::json& c : document.at("cases")) {
    if (number == count) break;
    const deviation d = check_case(c, no_lp{});
    INFO(name << ", case " << number++ << ": " << d.where);
    CHECK(d.largest <= 1e-9);
  }
  CHECK(number == count);
}

}  // namespace

TEST_CASE("the reference plans have the reference numbers") { check_reference("simulator_cases.json", 100); }

// Several stages on a device; memory savers; blocking transfers.
TEST_CASE("the reference plans of the second file have the reference numbers") { check_reference("simulator_cases_2.json", 140); }
