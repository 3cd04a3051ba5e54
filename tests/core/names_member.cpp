// SPDX-License-Identifier: BSL-1.0
#include <hetplan/core/error.hpp>

#include <concepts>

#include <catch2/catch.hpp>

namespace test_names_member {

using namespace hetplan;

namespace {

struct thing {};
struct other {};

struct weigh_call {
  template <class M, class... A>
  auto operator()(M& m, const A&... a) const -> decltype(m.weigh(a...));
  template <class M>
  static auto address() -> decltype(&M::weigh);
};

template <class M>
constexpr bool weighs = names_member<M, weigh_call, thing, other>;

struct nothing {};
struct final_nothing final {};
struct right {
  double weigh(const thing&, const other&) const;
};
struct final_right final {
  double weigh(const thing&, const other&) const;
};
struct not_const {
  double weigh(thing&);
};
struct datum {
  int weigh;
};
struct derived : right {};
struct made_for_all {
  template <class T>
  double weigh(const T&) const;
};
struct swapped_set {
  double weigh(const other&, const thing&) const;
  double weigh(const other&, int) const;
};
struct set_of_numbers {
  double weigh(double) const;
  double weigh(bytes) const;
};
struct set_without_arguments {
  double weigh() const;
  double weigh(int, int, int, int) const;
};
template <class T>
struct for_some {
  double weigh(const thing&, const other&) const
    requires std::same_as<T, int>;
};

static_assert(!weighs<nothing> && !weighs<final_nothing> && !weighs<int>);
static_assert(weighs<right> && weighs<final_right> && weighs<not_const> && weighs<datum> && weighs<derived> && weighs<made_for_all>);
static_assert(weighs<swapped_set> && weighs<set_of_numbers> && weighs<set_without_arguments>);
static_assert(weighs<for_some<int>> && !weighs<for_some<double>>);

}  // namespace

TEST_CASE("a member is found by its name, whatever it takes, alone or in a set of overloads, and is absent where its constraint fails") {
  CHECK(weighs<right>);
  CHECK_FALSE(weighs<nothing>);
}

namespace {
struct shares {
  double weight() const;
  static double whole();
  double weigh(int) const;
  double weigh(double) const;
  double portion = 0;
  template <class T>
  double part(T) const;

 private:
  double inner() const;
};
template <class M>
constexpr bool has_weight = HETPLAN_HAS_FUNCTION(M, weight);
template <class M>
constexpr bool has_whole = HETPLAN_HAS_FUNCTION(M, whole);
template <class M>
constexpr bool has_others = HETPLAN_HAS_FUNCTION(M, weigh) || HETPLAN_HAS_FUNCTION(M, portion) || HETPLAN_HAS_FUNCTION(M, part) ||
                            HETPLAN_HAS_FUNCTION(M, inner) || HETPLAN_HAS_FUNCTION(M, absent);
}  // namespace

TEST_CASE("a member function of a name is seen, static or not; data, overloads, templates and private ones are not") {
  STATIC_REQUIRE(has_weight<shares>);
  STATIC_REQUIRE(has_whole<shares>);
  STATIC_REQUIRE(!has_weight<right>);
  STATIC_REQUIRE(!has_weight<int>);
  STATIC_REQUIRE(!has_others<shares>);
}

}  // namespace test_names_member
