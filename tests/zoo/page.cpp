// SPDX-License-Identifier: BSL-1.0
/// The numbers of docs/reference/zoo.md are the models'. HETPLAN_UPDATE=1 writes them.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/io/json_document.hpp>
#include <hetplan/zoo/models.hpp>

namespace test_zoo_page {

using namespace hetplan;

namespace {

const std::string page = std::string(HETPLAN_SOURCE_DIR) + "/docs/reference/zoo.md";

/// Returns a number with spaces between thousands.
std::string spaced(double x, int digits) {
  char text[40];
  std::snprintf(text, sizeof text, "%.*f", digits, x);
  std::string s(text);
  std::size_t at = s.find('.') == std::string::npos ? s.size() : s.find('.');
  for (; at > 3; at -= 3) s.insert(at - 3, " ");
  return s;
}

/// Returns the row of the table up to the column "numbers from".
std::string row_of(std::string_view name) {
  const planning_graph g = zoo::model(name);
  double kept = 0, cache = 0;
  std::string input;
  for (const layer& l : g.layers()) {
    kept += l.activation.value();
    cache += l.kv_bytes_per_token.value();
  }
  if (!zoo::takes_tokens(name)) input = name == "efficientnet-b1" ? " (3, 240, 240)" : " (3, 224, 224)";
  return "| `" + std::string(name) + "`" + input + " | " + spaced(static_cast<double>(g.size()), 0) + " | " +
         spaced(g.parameters() / 1e6, 2) + " M | " + spaced(g.forward_flops().value() / 1e9, 2) + " | " + spaced(kept / 1e6, 0) + " MB | " +
         (cache > 0 ? spaced(cache / 1024, 0) + " KiB" : "–") + " | ";
}

std::string gflop_of(const planning_graph& g, const std::string& prefix) {
  double total = 0;
  for (const layer& l : g.layers()) total += l.name.rfind(prefix, 0) == 0 ? l.forward_flops.value() : 0;
  return spaced(total / 1e9, 2);
}

}  // namespace

TEST_CASE("the page of the zoo has the models' numbers") {
  std::string text = io::read_text(page);
  for (const std::string_view name : zoo::model_names()) {
    INFO(name);
    const std::size_t begin = text.find("\n| `" + std::string(name) + "`") + 1, end = text.find('\n', begin);
    REQUIRE(begin > 0);
    const std::size_t source = text.rfind(" | ", end) + 3;
    if (std::getenv("HETPLAN_UPDATE") != nullptr) text.replace(begin, source - begin, row_of(name));
    else CHECK(text.substr(begin, source - begin) == row_of(name));
  }
  if (std::getenv("HETPLAN_UPDATE") != nullptr) io::write_atomically(page, text);
  const planning_graph omni = zoo::model("qwen-omni");
  for (const std::string part : {"text.", "audio.", "vision.", "talker."}) {
    INFO(part << " " << gflop_of(omni, part));
    const std::size_t begin = text.find("\n| `" + part + "`") + 1;
    REQUIRE(begin > 0);
    CHECK(text.substr(begin, text.find('\n', begin) - begin).find("| " + gflop_of(omni, part) + " |") != std::string::npos);
  }
  INFO(gflop_of(omni, ""));
  CHECK(text.find("| **" + gflop_of(omni, "") + "** |") != std::string::npos);
}

TEST_CASE("the page of the zoo has every weight format with its bits") {
  const std::string text = io::read_text(page);
  for (const zoo::weight_format& f : zoo::weight_formats) {
    const std::size_t begin = text.find("\n| `" + std::string(f.name) + "`") + 1;
    INFO(f.name);
    REQUIRE(begin > 0);
    std::string row = "| `" + std::string(f.family) + "` |";
    for (const double bits : {f.product, f.sensitive, f.embedding, f.head}) row += " " + to_text(bits) + " |";
    CHECK(text.substr(begin, text.find('\n', begin) - begin).find(row) != std::string::npos);
  }
}

}  // namespace test_zoo_page
