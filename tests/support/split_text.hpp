// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace hetplan::test {

/// Returns the parts between separators, including empty ones.
inline std::vector<std::string> split_text(const std::string& text, char separator) {
  std::istringstream all(text + separator);
  std::vector<std::string> parts;
  for (std::string part; std::getline(all, part, separator);) parts.push_back(part);
  return parts;
}

}  // namespace hetplan::test
