// SPDX-License-Identifier: BSL-1.0
// Thousands of random plans of every kind against tests/oracle/semantics.py, an independent implementation of the semantics. Cases are
// generated at test time; HETPLAN_TEST_SEED gives others.

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>

#include <catch2/catch.hpp>

#include <hetplan/solve/glpk.hpp>

#include "support/oracle_case.hpp"
#include "support/random_source.hpp"

using namespace hetplan;
using namespace hetplan::test;

namespace {

/// A file name unique to the run; the file is removed at the end.
struct generated_cases {
  std::filesystem::path path;

  generated_cases(std::uint64_t seed, int count)
      : path(std::filesystem::temp_directory_path() / ("hetplan_cases_" + std::to_string(std::random_device{}()) + ".json")) {
    const std::string command = "python3 -B \"" HETPLAN_SOURCE_DIR "/tests/oracle/generate.py\" --seed " + std::to_string(seed) +
                                " --count " + std::to_string(count) + " > \"" + path.string() + "\"";
    INFO(command);
    REQUIRE(std::system(command.c_str()) == 0);
  }
  ~generated_cases() { std::filesystem::remove(path); }
  generated_cases(const generated_cases&) = delete;
  generated_cases& operator=(const generated_cases&) = delete;

  [[nodiscard]] nlohmann::json read() const {
    std::ifstream file(path);
    return nlohmann::json::parse(file);
  }
};

}  // namespace

TEST_CASE("generated plans of every kind have the oracle's numbers and keep the bounds") {
  constexpr int count = 3000;
  const std::uint64_t seed = first_seed();
  const generated_cases cases(seed, count);
  const nlohmann::json document = cases.read();
  std::map<std::string, int> kinds;
  double largest = 0;
  int number = 0;
  for (const nlohmann::json& c : document.at("cases")) {
    const std::string kind = c.at("kind").get<std::string>();
    INFO("generate.py --seed " << seed << " --count " << count << ": case " << number++ << ", kind " << kind);
    ++kinds[kind];
    const deviation d = check_case(c, glpk_lp{});
    INFO(d.where);
    CHECK(d.largest <= 1e-9);
    largest = std::max(largest, d.largest);
  }
  CAPTURE(largest);
  CHECK(number == count);
  CHECK(kinds.size() >= 15);
}
