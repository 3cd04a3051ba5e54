// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Three tiers: bad input throws before any work; infeasible is a status in a result; our own bugs assert.

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include <hetplan/core/linkage.hpp>

namespace hetplan {

/// The caller's data breaks a rule. The message says who, where, what was given, what was expected.
class invalid_input : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// A plan needs a transfer between devices that nothing joins. To a planner one that is not feasible.
class missing_route : public invalid_input {
 public:
  using invalid_input::invalid_input;
};

/// A user's model (cost, energy, memory, network) returned something that its concept forbids.
class invalid_model : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A cost model cannot tell the time of a batch of that size. A plan that has such a batch is an error; bounds over all sizes
/// leave it out.
class unknown_time : public invalid_model {
 public:
  using invalid_model::invalid_model;
};

/// A number as messages and files show it: the shortest text that reads back to the same double.
[[nodiscard]] inline std::string to_text(double v) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;
  return {buffer, end};
}

namespace detail {
[[noreturn]] inline void assertion_failed(const char* what, const char* file, int line) {
  std::fprintf(stderr, "hetplan: internal error: %s (%s:%d)\n", what, file, line);
  std::abort();
}
}  // namespace detail

}  // namespace hetplan

/// A promise of the library to itself; on in every build, so never put it inside a hot loop.
#define HETPLAN_ASSERT(condition) ((condition) ? void() : ::hetplan::detail::assertion_failed(#condition, __FILE__, __LINE__))
