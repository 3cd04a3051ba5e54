// SPDX-License-Identifier: BSL-1.0
#include <string>

#include <catch2/catch.hpp>

#include <hetplan/core/observer.hpp>

using namespace hetplan;

namespace {

struct started {
  int number;
};
struct ended {
  int number;
};

/// An observer with state: neither copyable nor const.
struct diary {
  diary() = default;
  diary(const diary&) = delete;
  std::string text;
  control operator()(const started& e) {
    text += "s" + std::to_string(e.number) + " ";
    return control::go;
  }
  control operator()(const ended& e) {
    text += "e" + std::to_string(e.number) + " ";
    return e.number == 2 ? control::stop : control::go;
  }
};

}  // namespace

TEST_CASE("every observer sees the events that it handles and no others") {
  diary both;
  int only_ends = 0;
  auto ends = [&](const ended& e) {
    only_ends += e.number;
    return control::go;
  };
  CHECK(notify(started{1}, both, ends) == control::go);
  CHECK(notify(ended{1}, both, ends) == control::go);
  CHECK(both.text == "s1 e1 ");
  CHECK(only_ends == 1);
}

TEST_CASE("one observer's stop is the answer, and the others are told all the same") {
  diary stops_at_two;
  int seen = 0;
  auto counts = [&](const ended&) {
    ++seen;
    return control::go;
  };
  CHECK(notify(ended{2}, stops_at_two, counts) == control::stop);
  CHECK(notify(ended{2}, counts, stops_at_two) == control::stop);
  CHECK(seen == 2);
  CHECK(notify(ended{3}, counts, stops_at_two) == control::go);
}

TEST_CASE("an any_observer refers to what it is made from, and several are one") {
  const auto tell = [](const any_observer<ended>& o, int n) { return o(ended{n}); };
  CHECK(tell({}, 1) == control::go);
  diary stops_at_two;
  int seen = 0;
  auto counts = [&](const ended&) {
    ++seen;
    return control::go;
  };
  CHECK(tell(counts, 1) == control::go);
  CHECK(seen == 1);  // the caller's own object, not a copy
  CHECK(tell(stops_at_two, 2) == control::stop);
  CHECK(tell(all_of(stops_at_two, counts), 2) == control::stop);
  CHECK(tell(all_of(counts, stops_at_two), 3) == control::go);
  CHECK(seen == 3);
}

TEST_CASE("without observers everything goes on") { CHECK(notify(started{1}) == control::go); }

TEST_CASE("an observer handles an event if it answers go or stop to it") {
  const auto any = [](const auto&) { return control::go; };
  const auto silent = [](const ended&) {};
  const auto truthful = [](const ended&) { return true; };
  static_assert(observes<decltype(any), started> && observer<decltype(any), started, ended>);
  static_assert(observer<diary, started> && observer<diary&, ended>);
  static_assert(!observer<decltype(silent), started, ended>);
  static_assert(!observer<decltype(truthful), started, ended>, "a bool does not say which of its values means stop");
  static_assert(!observer<diary, int>);
  static_assert(check_observer<diary, started, int>(), "one of the events suffices");
  static_cast<void>(silent);
  static_cast<void>(truthful);
}
