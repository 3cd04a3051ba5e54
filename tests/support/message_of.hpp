// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>

#include <catch2/catch.hpp>

#include <hetplan/core/error.hpp>

namespace hetplan::test {

/// The message of the Error that f throws, which is one line; "no error" if it throws none. Other exceptions pass through.
template <class Error = invalid_input, class F>
std::string message_of(F&& f) {
  try {
    static_cast<void>(f());
  } catch (const Error& e) {
    const std::string what = e.what();
    CHECK(what.find('\n') == std::string::npos);
    return what;
  }
  return "no error";
}

}  // namespace hetplan::test
