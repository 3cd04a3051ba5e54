// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Errors in three tiers: bad input throws before any work, infeasibility is a status in a result, internal errors abort.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
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

/// Returns the text that std::printf would write. Arguments are numbers and C strings.
template <class... Args>
[[nodiscard]] std::string format_line(const char* format, Args... args) {
  const int length = std::snprintf(nullptr, 0, format, args...);
  std::string text(static_cast<std::size_t>(length), '\0');
  std::snprintf(text.data(), text.size() + 1, format, args...);
  return text;
}

/// Returns the length of the UTF-8 character at `i`; 0 if there is none (also for surrogates and codes beyond Unicode).
[[nodiscard]] std::size_t utf8_length(std::string_view text, std::size_t i);

/// Wall-clock stopwatch that runs from its construction, for time limits and reports.
class stopwatch {
 public:
  stopwatch();
  [[nodiscard]] double elapsed_s() const;

 private:
  long long begin_ns_;
};

/// Default limit of the steps of a planner call; takes some seconds.
inline constexpr long long standard_steps = 10'000'000;

/// Extensions of partial plans in a search that count as one step.
inline constexpr long long extensions_per_step = 8;

/// Budget of a search, counted in steps: unlike a time limit, it gives the same result on every machine. A step is the work of simulating
/// one task or transfer of a candidate, about a microsecond. Work that has begun is finished, so the limit may be slightly exceeded.
class step_budget {
 public:
  explicit step_budget(long long limit = standard_steps) : limit_(limit) {}

  void spend(long long steps) { used_ += steps; }
  [[nodiscard]] long long used() const { return used_; }
  [[nodiscard]] long long left() const { return std::max(0LL, limit_ - used_); }
  [[nodiscard]] long long extensions_left() const { return std::min(left(), (1LL << 60) / extensions_per_step) * extensions_per_step; }
  void spend_extensions(long long extensions) { spend(extensions / extensions_per_step); }
  [[nodiscard]] bool spent() const { return used_ >= limit_; }

 private:
  long long limit_;
  long long used_ = 0;
};

/// Returns the status reason of a search that ran out of steps.
[[nodiscard]] inline std::string out_of_steps(long long budget, long long candidates, bool found = true) {
  return "the budget of " + std::to_string(budget) + (budget == 1 ? " step" : " steps") + " ended the search after " +
         std::to_string(candidates) + (candidates == 1 ? " candidate" : " candidates") +
         (found ? "; the best so far" : "; none of them keeps the limits");
}

/// Outcome of a search. `infeasible` is proven: the problem has no solution. `none_found` is weaker: no candidate tried is one.
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

/// Proof of infeasibility in numbers that can be checked without this library: rows of a relaxation that no solution satisfies together,
/// or the number of search steps that excluded the whole solution space.
struct infeasibility_proof {
  struct row {
    std::string what;      ///< sentence that names the amounts added up and their unit
    double needed = 0;     ///< least amount that every solution needs
    double available = 0;  ///< largest amount available; a row with needed > available is a proof by itself

    friend bool operator==(const row&, const row&) = default;
  };

  std::string of;              ///< problem without a solution: "placements of single operators in 1.1 GB", ...
  std::vector<row> rows = {};  ///< rows of the relaxation
  long long searched = 0;      ///< search steps that excluded the whole space; 0: the rows are the proof

  friend bool operator==(const infeasibility_proof&, const infeasibility_proof&) = default;
};

/// Outcome and, unless feasible, the sentence that explains it: the limit, its place and the excess, or the candidates tried.
struct status {
  outcome result = outcome::feasible;
  std::string reason;
  std::optional<infeasibility_proof> proof = {};  ///< set by every planner and search if infeasible

  [[nodiscard]] bool ok() const { return result == outcome::feasible; }
  friend bool operator==(const status&, const status&) = default;
};

// Detection of optional members by name, whatever their signature: a wrong signature is then an error, not "absent".

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

/// True if `M` has a member of the name carried by `Call`, whatever its signature. A set of overloads has no address, so the member is
/// also called: with the arguments of the right signature in any order, with other common types, and with an argument that converts to
/// anything. A member whose own constraint fails is absent.
///
/// @tparam Call     Carrier of the member's name NAME; two members, declared only:
///                      `template <class M, class... A> auto operator()(M& m, const A&... a) const -> decltype(m.NAME(a...));`
///                      `template <class M> static auto address() -> decltype(&M::NAME);`
/// @tparam Typical  Argument types of the right signature.
template <class M, class Call, class... Typical>
concept names_member =
    detail::takes_address_of_member<Call, M> || detail::calls_member<Call, M> || detail::calls_member<Call, M, detail::any_argument> ||
    detail::calls_member<Call, M, detail::any_argument, detail::any_argument> ||
    detail::calls_member<Call, M, detail::any_argument, detail::any_argument, detail::any_argument> ||
    detail::calls_member<Call, M, detail::any_argument, detail::any_argument, detail::any_argument, detail::any_argument> ||
    detail::calls_member<Call, M, double> || detail::calls_member<Call, M, bytes> ||
    (detail::calls_member_with<Call, M, Typical, Typical...> || ...);

}  // namespace hetplan

/// True if `M` has a member function named exactly `NAME`, static or not. Used for unmistakable misspellings of an optional member, which
/// would otherwise be taken for "absent" in silence. Overload sets and templates have no address and are not detected.
#define HETPLAN_HAS_FUNCTION(M, NAME) (requires { requires ::hetplan::detail::address_of_function<decltype(&M::NAME)>; })

namespace hetplan {

/// Returns the text on one line, with control characters written as `\n`, `\t` or `\u00XX`, so that a hostile file cannot control the
/// terminal. Escapes already in the text stay as they are.
[[nodiscard]] std::string escaped(std::string_view text);

/// Relative tolerance of comparisons: sums of the same numbers in another order or with other brackets differ by less.
inline constexpr double relative_tolerance = 1e-9;

/// Returns whether time `a` is at most time `b` of the same clock, up to rounding.
///
/// @param span  Duration that the tolerance is relative to: that of the task or transfer that ends then, actual or possible. Doubles near
///              a late time are coarse, so four steps of a double at `b` are tolerated, too.
/// Complexity   O(1).   False if `a` or `b` is NaN.
/// Source       semantics, section 1.
[[nodiscard]] inline bool at_most(double a, double b, double span) {
  constexpr double four_steps = 0x1p-50;
  return a <= b || a - b <= relative_tolerance * span + four_steps * std::abs(b);
}

/// Returns whether an amount, or a time since the start, is at most another one, up to rounding: one part in 10^9 of the smaller one.
[[nodiscard]] inline bool at_most(double a, double b) { return at_most(a, b, std::min(std::abs(a), std::abs(b))); }
template <int T, int D, int E, int W>
[[nodiscard]] bool at_most(quantity<T, D, E, W> a, quantity<T, D, E, W> b) {
  return at_most(a.value(), b.value());
}

/// Error in the caller's data. The message names the place, the value given and the value expected.
class invalid_input : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// Error of a plan that needs a transfer between devices without a route. Planners treat such a plan as infeasible.
class missing_route : public invalid_input {
 public:
  using invalid_input::invalid_input;
};

/// Error of a user's model (cost, energy, memory, network) that returned a value forbidden by its concept.
class invalid_model : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Error of a cost model that cannot time a batch of that size. A plan with such a batch is an error; bounds over all sizes skip it.
class unknown_time : public invalid_model {
 public:
  using invalid_model::invalid_model;
};

/// Returns the shortest text that reads back to the same double, as in messages and files.
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

/// Aborts if an internal invariant is violated. Active in every build, so never used inside a hot loop.
#define HETPLAN_ASSERT(condition) ((condition) ? void() : ::hetplan::detail::assertion_failed(#condition, __FILE__, __LINE__))

namespace hetplan {

/// Throws invalid_input, with `who` and what was `expected`, if `f` is empty or made from a null pointer.
template <class Signature>
void require_function(const std::function<Signature>& f, const std::string& who, const char* expected) {
  if (!f) throw invalid_input(who + ": was given an empty function or a null pointer; expected " + expected);
}

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/core/error.ipp>
#endif
