// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Access to third-party graphs, profiles and reference values in ../shared, which are not part of this project.

#include <filesystem>
#include <iostream>
#include <optional>
#include <string>

#include <catch2/catch.hpp>

namespace hetplan::test {

/// Returns the place of a file or folder below ../shared; none if it is missing, and the test must return. The result is printed:
/// tests/skips.py compares it with tests/skipped_without_shared.txt, on machines with and without the data.
inline std::optional<std::filesystem::path> shared_data(const std::string& path) {
  const std::filesystem::path place = std::filesystem::path(HETPLAN_SHARED_DIR) / path;
  const bool there = std::filesystem::exists(place);
  std::cout << (there ? "USED" : "SKIPPED") << ": " << Catch::getResultCapture().getCurrentTestName() << ": " << (there ? "" : "no ")
            << "../shared/" << path << std::endl;
  return there ? std::optional(place) : std::nullopt;
}

}  // namespace hetplan::test
