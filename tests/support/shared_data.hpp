// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Graphs, profiles and reference values of others lie beside this project (../shared) and are no part of it.

#include <filesystem>
#include <iostream>
#include <optional>
#include <string>

#include <catch2/catch.hpp>

namespace hetplan::test {

/// Where a file or folder below ../shared is; a test that has to do without it returns at once. What tests/run.sh prints and
/// compares with tests/skipped_without_shared.txt is this line.
inline std::optional<std::filesystem::path> shared_data(const std::string& path) {
  const std::filesystem::path place = std::filesystem::path(HETPLAN_SHARED_DIR) / path;
  if (std::filesystem::exists(place)) return place;
  std::cout << "SKIPPED: " << Catch::getResultCapture().getCurrentTestName() << ": no ../shared/" << path << std::endl;
  return std::nullopt;
}

}  // namespace hetplan::test
