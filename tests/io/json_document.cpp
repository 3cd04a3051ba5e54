// SPDX-License-Identifier: BSL-1.0
#include <chrono>
#include <string>

#include <catch2/catch.hpp>

#include <hetplan/io/json_document.hpp>
#include <hetplan/io/json_node.hpp>
#include <hetplan/io/json_text.hpp>

#include "io/reading.hpp"

namespace test_json_document {

using namespace hetplan;
using test::document;
using test::message_of;

namespace {

std::string error(const std::string& text) {
  return message_of([&] { return document(text); });
}

}  // namespace

TEST_CASE("comments are skipped") {
  const auto d = document("// first\n{/* a */ \"x\": [1, // one\n 2] /* end */}\n// last");
  CHECK(io::json_node(d).size() == 1);
  CHECK(error("{} /* open").starts_with("f.json: line 1, column 11: "));
}

TEST_CASE("syntax errors name line and column on one line") {
  CHECK(error("") == "f.json: expected JSON, got an empty file");
  CHECK(error(" \n\t") == "f.json: expected JSON, got an empty file");
  CHECK(error("{\n  \"a\": tru\n}").starts_with("f.json: line 2, column 11: syntax error while parsing value - invalid literal"));
  CHECK(error("{\"a\": 1,\n\n\"b\": [1, 2")
            .starts_with("f.json: line 3, column 11: syntax error while parsing array - unexpected end of input; expected ']'"));
  CHECK(error("{} x").starts_with("f.json: line 1, column 4: "));
  CHECK(error("{} {}").starts_with("f.json: line 1, column 4: "));
  CHECK(error("{\"a\": 1,}").starts_with("f.json: line 1, column 9: "));
  CHECK(error("{'a': 1}").starts_with("f.json: line 1, column 2: "));
  CHECK(error("[NaN]").starts_with("f.json: line 1, column "));
  CHECK(error("[Infinity]").starts_with("f.json: line 1, column "));
  CHECK(error("[\"a\nb\"]").starts_with("f.json: line 1, column 4: "));
  CHECK(error("[\"\xFF\"]").starts_with("f.json: line 1, column 3: "));
  CHECK(error("[\"\\ud800\"]").starts_with("f.json: line 1, column "));
  CHECK(error("[01]").starts_with("f.json: line 1, column 3: "));
  CHECK(error("[" + std::string(100'000, '1') + "x]").size() < 400);
  CHECK(error("[\"" + std::string(100'000, 'a')).size() < 400);
}

TEST_CASE("a zero byte does not end a file early") {
  CHECK(error(std::string("{}\0garbage", 10)) == "f.json: line 1, column 3: expected text, got a zero byte");
}

TEST_CASE("numbers beyond double are refused") {
  CHECK(error("{\"a\": 1e999}") == "f.json: line 1, column 11: number overflow parsing '1e999'");
  CHECK(error("[-1e999]").starts_with("f.json: line 1, column 7: number overflow"));
  const auto d = document("[18446744073709551615.0, 1e20, 9223372036854775807, -9223372036854775808, 1e-999]");
  std::vector<double> values;
  for (const auto n : io::json_node(d).elements("")) values.push_back(n.number(io::range::any));
  CHECK(values == std::vector<double>{18446744073709551615.0, 1e20, 9223372036854775807.0, -9223372036854775808.0, 0});
}

TEST_CASE("integers beyond 64 bits are refused, wherever they stand and whatever reads them") {
  for (const std::string far :
       {"9223372036854775808", "-9223372036854775809", "18446744073709551615", "18446744073709551616", "100000000000000000000000000000"}) {
    const std::string expected = ": expected an integer from -2^63 to 2^63 - 1, or a number with a point or an exponent, got " + far;
    CHECK(error("{\"a\": 1, \"b\": [0, {\"c\": " + far + "}, 3]}") == "f.json: /b/1/c" + expected);
    CHECK(error("[" + far + "]") == "f.json: /0" + expected);
    CHECK(error("{\"a\": " + far + ".0}") == "no error");
    CHECK(error("{\"a\": " + far + "e0}") == "no error");
  }
  // Written numbers contain no such integers and read back to the same double.
  for (const double v : {9223372036854775808.0, 12345678901234567890.0, 1e22, -18446744073709551616.0}) {
    const auto d = document(io::json_text(io::json_number(v)));
    CHECK(io::json_node(d).number(io::range::any) == v);
  }
}

TEST_CASE("nesting is refused when it passes 64, however long the file") {
  const auto nested = [](std::size_t n) { return std::string(n, '[') + std::string(n, ']'); };
  CHECK(error(nested(64)) == "no error");
  std::string path;
  for (int i = 0; i < 64; ++i) path += "/0";
  CHECK(error(nested(65)) == "f.json: " + path + ": expected nesting of at most 64, got deeper");
  std::string objects;
  for (int i = 0; i < 65; ++i) objects += "{\"a\":";
  CHECK(error(objects).ends_with("/a: expected nesting of at most 64, got deeper"));

  const std::string bomb(60'000'000, '[');
  const auto start = std::chrono::steady_clock::now();
  CHECK(error(bomb).ends_with("expected nesting of at most 64, got deeper"));
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
}

TEST_CASE("more than 64 MB are refused before parsing") {
  CHECK(error(std::string(io::max_file_bytes + 1, ' ')) == "f.json: expected at most 64 MB, got more");
}

TEST_CASE("a key twice is refused in small and large objects") {
  CHECK(error(R"({"a": 1, "b": {"c": 1, "d": 2, "c": 3}})") == "f.json: /b/c: expected every key once, got \"c\" again");
  CHECK(error(R"({"a": 1, "\u0061": 1})") == "f.json: /a: expected every key once, got \"a\" again");
  std::string large = "{";
  for (int i = 0; i < 100'000; ++i) large += "\"k" + std::to_string(i) + "\": 0, ";
  CHECK(error(large + "\"last\": 0}") == "no error");
  CHECK(error(large + "\"k500\": 0}") == "f.json: /k500: expected every key once, got \"k500\" again");
}

TEST_CASE("nodes know their pointer") {
  const auto d = document(R"({"a": [1, {"b/c": {"d~e": [[], "x"]}}], "": 3})");
  const auto pointer = [](const io::json_node& n) { return n.pointer(); };
  const io::json_node root(d);
  CHECK(pointer(root).empty());
  std::vector<std::string> all;
  for (const auto& [key, value] : root.members()) {
    all.push_back(pointer(value));
    if (key != "a") continue;
    for (const auto element : value.elements("")) {
      all.push_back(pointer(element));
      if (!element.is_object()) continue;
      const auto inner = (*(*element.members().begin()).second.members().begin()).second;
      for (const auto x : inner.elements("")) all.push_back(pointer(x));
    }
  }
  CHECK(all == std::vector<std::string>{"/a", "/a/0", "/a/1", "/a/1/b~1c/d~0e/0", "/a/1/b~1c/d~0e/1", "/"});
}

TEST_CASE("questions to a node of another kind say what it is") {
  const auto d =
      document(R"([null, true, 7, 1.5, "six", [], {}, [1], {"a": 1}, "0123456789012345678901234567890123456789x", "a\nb\u001b\u0085"])");
  std::vector<io::json_node> n;
  for (const auto element : io::json_node(d).elements("")) n.push_back(element);
  const auto number = [&](std::size_t i) { return message_of([&] { return n[i].amount<bytes>(io::range::above_zero); }); };
  CHECK(number(0) == "f.json: /0: expected bytes > 0, got null");
  CHECK(number(1) == "f.json: /1: expected bytes > 0, got true");
  CHECK(number(4) == "f.json: /4: expected bytes > 0, got \"six\"");
  CHECK(number(5) == "f.json: /5: expected bytes > 0, got an empty array");
  CHECK(number(6) == "f.json: /6: expected bytes > 0, got an empty object");
  CHECK(number(7) == "f.json: /7: expected bytes > 0, got an array");
  CHECK(number(8) == "f.json: /8: expected bytes > 0, got an object");
  CHECK(number(9) == "f.json: /9: expected bytes > 0, got \"0123456789012345678901234567890123456789...\"");
  CHECK(number(10) == "f.json: /10: expected bytes > 0, got \"a\\nb\\u001B\\u0085\"");
  CHECK(message_of([&] { return n[2].text(); }) == "f.json: /2: expected text, got 7");
  CHECK(message_of([&] { return n[2].boolean(); }) == "f.json: /2: expected true or false, got 7");
  CHECK(message_of([&] { return n[3].integer(1); }) == "f.json: /3: expected an integer >= 1, got 1.5");
  CHECK(message_of([&] { return n[2].integer(8); }) == "f.json: /2: expected an integer >= 8, got 7");
  CHECK(message_of([&] { return n[2].integer(0, 3); }) == "f.json: /2: expected an integer from 0 to 3, got 7");
  CHECK(message_of([&] { return n[4].number(io::range::any); }) == "f.json: /4: expected a number, got \"six\"");
}

TEST_CASE("integers neither wrap nor round") {
  const auto integer = [](const std::string& text) {
    return message_of([&] {
      const auto d = document(text);
      return io::json_node(d).integer(1);
    });
  };
  CHECK(integer("2147483647") == "no error");
  CHECK(integer("4.0") == "no error");
  CHECK(integer("2147483648") == "f.json: expected an integer from 1 to 2147483647, got 2147483648");
  CHECK(integer("4294967297") == "f.json: expected an integer from 1 to 2147483647, got 4294967297");
  CHECK(integer("18446744073709551617") ==
        "f.json: : expected an integer from -2^63 to 2^63 - 1, or a number with a point or an exponent, got 18446744073709551617");
  CHECK(integer("1e300") == "f.json: expected an integer from 1 to 2147483647, got 1e+300");
  CHECK(integer("-1") == "f.json: expected an integer >= 1, got -1");
}

TEST_CASE("names near a known one are suggested, far ones are not") {
  CHECK(io::edit_distance("weigth", "weight") == 1);
  CHECK(io::edit_distance("abc", "") == 3);
  CHECK(io::edit_distance("kitten", "sitting") == 3);
  const std::vector<std::string> known{"weight", "traffic", "name"};
  CHECK(io::suggestion("weigth", known) == "; did you mean \"weight\"?");
  CHECK(io::suggestion("trafic", known) == "; did you mean \"traffic\"?");
  CHECK(io::suggestion("colour", known).empty());
}

TEST_CASE("shortened text never ends inside a character") {
  CHECK(io::shortened("abc", 3) == "abc");
  CHECK(io::shortened("ab\xC3\xA4z", 3) == "ab...");
  CHECK(io::escaped("a\x1b[31m") == "a\\u001B[31m");
}

}  // namespace test_json_document
