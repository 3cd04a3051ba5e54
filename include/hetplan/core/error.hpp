// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Three tiers: bad input throws before any work; infeasible is a status in a result; our own bugs assert.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <hetplan/core/quantity.hpp>
#include <hetplan/core/version.hpp>

namespace hetplan {

// What became of a search or a run: part of the result, never an exception.

// How much a search may do, counted in steps: unlike a time limit, it gives the same answer on every machine.

// Seconds on the wall clock since something began, for limits on time and for reports.

/// Runs from its construction on.
class stopwatch {
 public:
  stopwatch();
  [[nodiscard]] double elapsed_s() const;

 private:
  long long begin_ns_;
};

/// Steps that planning takes at most unless told otherwise: some seconds.
inline constexpr long long standard_steps = 10'000'000;

/// So many extensions of a search's partial plans count as a step.
inline constexpr long long extensions_per_step = 8;

/// Counts work against a limit. A step is the work of simulating one task or transfer of a candidate, about a microsecond.
///
/// Work that has begun is finished, so a little more than the limit may be spent.
class step_budget {
 public:
  explicit step_budget(long long limit = standard_steps) : limit_(limit) {}

  void spend(long long steps) { used_ += steps; }
  [[nodiscard]] long long used() const { return used_; }
  [[nodiscard]] long long left() const { return std::max(0LL, limit_ - used_); }
  /// What is left, in extensions.
  [[nodiscard]] long long extensions_left() const { return std::min(left(), (1LL << 60) / extensions_per_step) * extensions_per_step; }
  void spend_extensions(long long extensions) { spend(extensions / extensions_per_step); }
  [[nodiscard]] bool spent() const { return used_ >= limit_; }

 private:
  long long limit_;
  long long used_ = 0;
};

/// The reason in the status of what a budget ended.
[[nodiscard]] inline std::string out_of_steps(long long budget, long long candidates, bool found = true) {
  return "the budget of " + std::to_string(budget) + (budget == 1 ? " step" : " steps") + " ended the search after " +
         std::to_string(candidates) + (candidates == 1 ? " candidate" : " candidates") +
         (found ? "; the best so far" : "; none of them keeps the limits");
}

/// `infeasible` is proven: nothing that the problem allows is a solution. `none_found` says less: what was tried holds no solution.
enum class outcome { feasible, infeasible, none_found, stopped };

[[nodiscard]] constexpr std::string_view to_string(outcome o) {
  switch (o) {
    case outcome::feasible: return "feasible";
    case outcome::infeasible: return "infeasible";
    case outcome::none_found: return "none found";
    case outcome::stopped: return "stopped";
  }
  return "?";
}

/// Why there is no solution, in numbers that can be checked without this library: rows of a relaxation that nothing satisfies together,
/// or how many steps a search took that left nothing of the whole space out.
struct infeasibility_proof {
  struct row {
    std::string what;      ///< a sentence: which amounts are added up, in which unit
    double needed = 0;     ///< at least, by every solution
    double available = 0;  ///< at most; one row proves alone where needed > available

    friend bool operator==(const row&, const row&) = default;
  };

  std::string of;              ///< the problem that has no solution: "placements of single operators in 1.1 GB", ...
  std::vector<row> rows = {};  ///< of the relaxation
  long long searched = 0;      ///< steps that excluded the whole space; 0: the rows prove it

  friend bool operator==(const infeasibility_proof&, const infeasibility_proof&) = default;
};

/// An outcome and, unless feasible, the sentence that explains it: which limit, where, by how much; or what was tried.
struct status {
  outcome result = outcome::feasible;
  std::string reason;
  std::optional<infeasibility_proof> proof = {};  ///< infeasible: set by every planner and search

  [[nodiscard]] bool ok() const { return result == outcome::feasible; }
  friend bool operator==(const status&, const status&) = default;
};

// Has a user's type a member of some name, whatever its signature? A slip in an optional member is then an error, not "absent".

namespace detail {

struct any_argument {
  template <class T>
  operator T() const;
};

template <class P>
concept address_of_function = std::is_member_function_pointer_v<P> || std::is_function_v<std::remove_pointer_t<P>>;

template <class Call, class M, class... Arguments>
concept calls_member = requires(const Call& call, M& m, const Arguments&... a) { call(m, a...); };
template <class Call, class M>
concept takes_address_of_member = requires { Call::template address<M>(); };

template <class Call, class M, class First, class... Others>
inline constexpr bool calls_member_with = calls_member<Call, M, First> || calls_member<Call, M, First, any_argument> ||
                                          calls_member<Call, M, any_argument, First> || (calls_member<Call, M, First, Others> || ...);

}  // namespace detail

/// No address can be taken of a set of overloads, so they are called: with what the right one takes, in any order, with other usual
/// things, and with what converts to anything. A member whose own constraint fails is absent.
///
/// @tparam Call     says the name, for nothing else can: two members, declared only,
///                      `template <class M, class... A> auto operator()(M& m, const A&... a) const -> decltype(m.NAME(a...));`
///                      `template <class M> static auto address() -> decltype(&M::NAME);`
/// @tparam Typical  what the right signature takes.
template <class M, class Call, class... Typical>
concept names_member =
    detail::takes_address_of_member<Call, M> || detail::calls_member<Call, M> || detail::calls_member<Call, M, detail::any_argument> ||
    detail::calls_member<Call, M, detail::any_argument, detail::any_argument> ||
    detail::calls_member<Call, M, detail::any_argument, detail::any_argument, detail::any_argument> ||
    detail::calls_member<Call, M, detail::any_argument, detail::any_argument, detail::any_argument, detail::any_argument> ||
    detail::calls_member<Call, M, double> || detail::calls_member<Call, M, bytes> ||
    (detail::calls_member_with<Call, M, Typical, Typical...> || ...);

}  // namespace hetplan

/// Has M a member function of that very name, static or not? Of an optional member's clear misspellings, which nobody would call anything
/// else: a slip would be taken for "absent", in silence. A set of overloads or a template has no address and is not seen.
#define HETPLAN_HAS_FUNCTION(M, NAME) (requires { requires ::hetplan::detail::address_of_function<decltype(&M::NAME)>; })

namespace hetplan {

// Names and messages as a terminal may see them.

/// The text with control characters written as `\n`, `\t` or `\u00XX`, so that it stays on one line and
/// a hostile file cannot speak to the terminal. What was escaped stays as it is.
[[nodiscard]] std::string escaped(std::string_view text);

// Comparing what was added up: rounding is no difference.

/// Sums of the same numbers in another order, or with other brackets, differ by less than this part of them.
inline constexpr double relative_tolerance = 1e-9;

/// Are two times of one clock in this order, or the same but for rounding?
///
/// @param span  what the tolerance is a part of: how long that takes which ends then, or may take. A clock that began long ago counts
///              in larger steps; four of these are no difference, either.
/// Complexity   O(1).   NaN is in no order.
/// Source       semantics, section 1.
[[nodiscard]] inline bool at_most(double a, double b, double span) {
  constexpr double four_steps = 0x1p-50;
  return a <= b || a - b <= relative_tolerance * span + four_steps * std::abs(b);
}

/// Is an amount, or a time since the beginning, at most another one, but for rounding: to one part in 10^9 of the smaller?
[[nodiscard]] inline bool at_most(double a, double b) { return at_most(a, b, std::min(std::abs(a), std::abs(b))); }
template <int T, int D, int E, int W>
[[nodiscard]] bool at_most(quantity<T, D, E, W> a, quantity<T, D, E, W> b) {
  return at_most(a.value(), b.value());
}

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

namespace hetplan {

// A door that takes a callable takes one that holds something: an empty std::function or a null pointer could not be called.

/// Throws invalid_input where it holds none; `who` was given it and needs `expected`.
template <class Signature>
void require_function(const std::function<Signature>& f, const std::string& who, const char* expected) {
  if (!f) throw invalid_input(who + ": was given an empty function or a null pointer; expected " + expected);
}

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/core/error.ipp>
#endif
