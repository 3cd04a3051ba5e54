// SPDX-License-Identifier: BSL-1.0
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/io/json_text.hpp>

#include "support/random_source.hpp"

namespace test_json_text {

using namespace hetplan;
using io::json;

namespace {

json some_member(test::random_source& random) {
  if (random.chance(0.5)) return std::string(random.index(110), 'x');
  return json::array({1, 2.5, std::string(random.index(110), 'y')});
}
json some_element(test::random_source& random) {
  const std::string text(random.index(random.chance(0.7) ? 12 : 150), 'z');
  return random.chance(0.3) ? json::array({text}) : json::object({{"a", text}, {"b", json::array({json::object({{"c", 1}})})}});
}

}  // namespace

TEST_CASE("an object written member by member and element by element has the text of the whole document") {
  const std::uint64_t seed = 20261122;
  INFO("seed " << seed);
  test::random_source random(seed);
  for (int run = 0; run < 2000; ++run) {
    json whole = json::object();
    io::object_text text;
    for (int i = random.integer(1, 4); i > 0; --i) {
      const std::string key(static_cast<std::size_t>(i), 'k');
      if (random.chance(0.5)) {
        whole[key] = some_member(random);
        text.add(key, whole[key]);
        continue;
      }
      std::vector<std::optional<json>> elements(random.index(7));
      whole[key] = json::array();
      for (auto& e : elements) {
        if (random.chance(0.2)) continue;
        e = some_element(random);
        whole[key].push_back(*e);
      }
      text.add_list(key, elements.size(), [&](std::size_t e) { return elements[e]; });
    }
    REQUIRE(std::move(text).text() == io::json_text(whole));
  }
}

}  // namespace test_json_text
