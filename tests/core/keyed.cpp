// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/core/keyed.hpp>

using namespace hetplan;

TEST_CASE("values by random keys of several lengths are those of std::map, in its order") {
  std::mt19937_64 random(36);
  for (const std::int64_t scale : {std::int64_t{1}, std::int64_t{1} << 32, std::int64_t{1} << 60}) {  // equal low bits, too
    std::map<std::vector<std::int64_t>, int> expected;
    keyed<int> found;
    key_index numbers;
    for (int i = 0; i < 5000; ++i) {
      std::vector<std::int64_t> name(random() % 4);
      for (std::int64_t& x : name) x = (static_cast<std::int64_t>(random() % 15) - 7) * scale;
      const key_parts key = parts_of(name);
      const auto it = expected.find(name);
      const std::size_t known = expected.size();
      REQUIRE(found.contains(key) == (it != expected.end()));
      REQUIRE((found.find(key) != nullptr ? *found.find(key) : -1) == (it != expected.end() ? it->second : -1));
      if (i % 3 == 0) continue;
      REQUIRE(numbers.insert(key) == (it == expected.end()));
      if (i % 3 == 1) {
        expected[name] += i;
        found[key] += i;
      } else {
        REQUIRE(found.insert(key, i) == expected.emplace(name, i).second);
      }
      REQUIRE(numbers.number(key) == found.keys().find(key));
      if (expected.size() > known) REQUIRE(numbers.find(key) == known);
      REQUIRE(found.size() == expected.size());
    }
    std::vector<std::vector<std::int64_t>> names;
    std::vector<int> values;
    for (const std::size_t i : found.keys().in_order()) {
      names.emplace_back();
      for (const key_part& p : found.keys().key_of(i)) names.back().push_back(p.value);
      values.push_back(found.values()[i]);
    }
    REQUIRE(std::equal(names.begin(), names.end(), expected.begin(), expected.end(),
                       [](const auto& a, const auto& b) { return a == b.first; }));
    REQUIRE(std::equal(values.begin(), values.end(), expected.begin(), expected.end(), [](int a, const auto& b) { return a == b.second; }));
  }
}

TEST_CASE("parts of a key are equal and ordered as numbers, ids, enumerators and characters are") {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> rising = {-inf, -1e300, -2, -1, -1e-320, 0, 1e-320, 1, 2, 1e300, inf};
  for (const double a : rising) {
    for (const double b : rising) {
      CHECK((key_part(a).value < key_part(b).value) == (a < b));
      CHECK((key_part(a).value == key_part(b).value) == (a == b));
    }
  }
  CHECK(key_part(-0.0).value == key_part(0.0).value);
  enum class colour { red, green };
  keyed<int> found;
  found[{stage_id(2), colour::green, true, 1.5, std::size_t{7}}] = 3;
  CHECK(found.contains({2, 1, 1, 1.5, 7}));
  CHECK_FALSE(found.contains({2, 0, 1, 1.5, 7}));
  CHECK_FALSE(found.contains({2, 1, 1, 1.5}));
  key_index names;
  for (const std::string name : {"b", "ab", "\xc3\xa4", "", "a"}) names.insert(parts_of(name));
  CHECK(names.in_order() == std::vector<std::size_t>{3, 4, 1, 0, 2});
}

TEST_CASE("texts as keys are in the order of std::string") {
  std::mt19937_64 random(7);
  std::map<std::string, std::size_t> expected;
  key_index found;
  for (int i = 0; i < 3000; ++i) {
    std::string text(random() % 17, '\0');
    for (char& c : text) c = "\0a\x7f\xff"[random() % 4];
    REQUIRE(found.insert(parts_of(text)) == expected.emplace(text, expected.size()).second);
    REQUIRE(found.find(parts_of(text)) == expected.at(text));
  }
  std::vector<std::size_t> numbers;
  for (const auto& [text, number] : expected) numbers.push_back(number);
  CHECK(found.in_order() == numbers);
}

TEST_CASE("a table without keys has none, and takes the empty key") {
  key_index names;
  CHECK(names.find({}) == key_index::none);
  CHECK(names.find({1}) == key_index::none);
  CHECK(names.in_order().empty());
  CHECK(names.insert(key_parts()));
  CHECK_FALSE(names.insert(key_parts()));
  CHECK(names.key_of(0).empty());
}
