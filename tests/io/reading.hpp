// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Shared helpers of the readers' tests.

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/io/json_document.hpp>

#include "support/message_of.hpp"

namespace hetplan::test {

inline io::json_document document(const std::string& text, const std::string& file = "f.json") {
  return io::json_document::parse(text, file);
}

/// Returns the text with the first occurrence of a part replaced; fails the test if there is none.
inline std::string with(std::string text, const std::string& part, const std::string& replacement) {
  const auto at = text.find(part);
  INFO(part);
  REQUIRE(at != std::string::npos);
  return text.replace(at, part.size(), replacement);
}

/// Returns true if a message is as expected, where "..." stands for anything.
inline bool fits(std::string_view message, std::string_view expected) {
  const auto dots = expected.find("...");
  if (dots == std::string_view::npos) return message == expected;
  if (!message.starts_with(expected.substr(0, dots))) return false;
  expected.remove_prefix(dots + 3);
  for (std::size_t at = dots; at <= message.size(); ++at) {
    if (expected.empty() || fits(message.substr(at), expected)) return true;
  }
  return false;
}

/// Checks refusals and their words: for each row of a table, `read` throws the words after `place`:
///     part => other => words    for a good text with its first such part replaced; there may be several such pairs
///     part => => words          for one without that part
///     text => words             for another text
/// A row may continue on a line that starts with =>. In words, "..." stands for anything.
template <class F>
void check_refusals(const std::string& good, F&& read, const std::string& place, const std::string& table) {
  std::vector<std::string> rows;
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    line.erase(0, line.find_first_not_of(' '));
    if (line.starts_with("=> ")) rows.back() += " " + line;
    else if (!line.empty()) rows.push_back(line);
  }
  for (const std::string& row : rows) {
    std::vector<std::string> fields;
    for (std::size_t at = 0, end = 0; end != std::string::npos; at = end + 3) {
      end = row.find(" =>", at);
      at += at > 0 && row[at] == ' ' ? 1U : 0U;
      fields.push_back(row.substr(at, end < at ? 0 : end - at));
    }
    std::string text = fields.size() == 2 ? fields[0] : good;
    for (std::size_t i = 0; i + 2 < fields.size(); i += 2) text = with(text, fields[i], fields[i + 1]);
    const std::string said = message_of([&] { return read(text); });
    INFO(row << "\n" << said);
    CHECK(fits(said, place + fields.back()));
  }
}

}  // namespace hetplan::test
