// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What the tests of the readers share.

#include <string>
#include <utility>

#include <catch2/catch.hpp>

#include <hetplan/core/error.hpp>
#include <hetplan/io/json_document.hpp>

namespace hetplan::test {

/// The message of the invalid_input that f throws; "no error" if it throws none. Other exceptions pass through.
template <class F>
std::string message_of(F&& f) {
  try {
    static_cast<void>(f());
  } catch (const invalid_input& e) {
    const std::string what = e.what();
    CHECK(what.find('\n') == std::string::npos);
    return what;
  }
  return "no error";
}

inline io::json_document document(const std::string& text, const std::string& file = "f.json") {
  return io::json_document::parse(text, file);
}

/// The text with the first occurrence of a part replaced; fails the test if there is none.
inline std::string with(std::string text, const std::string& part, const std::string& replacement) {
  const auto at = text.find(part);
  INFO(part);
  REQUIRE(at != std::string::npos);
  return text.replace(at, part.size(), replacement);
}

}  // namespace hetplan::test
