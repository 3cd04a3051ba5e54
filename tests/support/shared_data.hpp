// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Graphs, profiles and reference values of others lie beside this project (../shared) and are no part of it.

#include <filesystem>
#include <iostream>
#include <optional>
#include <string>

#include <catch2/catch.hpp>

namespace hetplan::test {

/// Where a file or folder below ../shared is; a test that has to do without it returns at once. It says which of the two happened:
/// tests/skips.py compares with tests/skipped_without_shared.txt, on machines with the data and on those without.
inline std::optional<std::filesystem::path> shared_data(const std::string& path) {
  const std::filesystem::path place = std::filesystem::path(HETPLAN_SHARED_DIR) / path;
  const bool there = std::filesystem::exists(place);
  std::cout << (there ? "USED" : "SKIPPED") << ": " << Catch::getResultCapture().getCurrentTestName() << ": " << (there ? "" : "no ")
            << "../shared/" << path << std::endl;
  return there ? std::optional(place) : std::nullopt;
}

}  // namespace hetplan::test
