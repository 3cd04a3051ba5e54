// SPDX-License-Identifier: BSL-1.0
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/exchange/export_runtimes.hpp>

#include "exchange/runtime_split.hpp"
#include "io/reading.hpp"

using namespace hetplan;
using test::block_split;

namespace {

/// Returns the device of each block and of the head, as in torch: a stage begins before BEGINNING marks and after END marks.
std::vector<int> owners_in_torch(const std::string& text, int blocks, const std::string& module) {
  std::map<std::string, bool> at_end;
  std::vector<int> devices;
  for (const std::string& line : test::split_text(text, '\n')) {
    if (line.rfind("# stages: ", 0) == 0) {
      for (const std::string& name : test::split_text(line.substr(9), ',')) devices.push_back(std::stoi(name.substr(2)));
    }
    if (line.rfind("    \"", 0) != 0) continue;
    const auto end = line.find('"', 5);
    const std::string point = line.substr(end + 1);
    REQUIRE((point == ": SplitPoint.BEGINNING," || point == ": SplitPoint.END,"));
    REQUIRE(at_end.emplace(line.substr(5, end - 5), point == ": SplitPoint.END,").second);
  }
  std::vector<int> owners;
  std::size_t stage = 0, named = 0;
  for (int b = 0; b < blocks; ++b) {
    const auto point = at_end.find(module + "." + std::to_string(b));
    named += point != at_end.end() ? 1 : 0;
    if (point != at_end.end() && !point->second) ++stage;
    owners.push_back(devices.at(stage));
    if (point != at_end.end() && point->second) ++stage;
  }
  CHECK(named == at_end.size());
  CHECK(stage + 1 == devices.size());
  owners.push_back(devices.at(stage));
  return owners;
}

void check_owners(const block_split& s) {
  const std::string text =
      exchange::torch_split_spec(s.plan(), test::block_model(s.total()), test::row_of_devices(s.stages()), "model.layers");
  INFO(text);
  CHECK(owners_in_torch(text, s.total(), "model.layers") == s.owners());
}

}  // namespace

TEST_CASE("the split_spec for torch, by hand") {
  CHECK(exchange::torch_split_spec(block_split{{4, 1, 2}}.plan(mode::training), test::block_model(7), test::row_of_devices(3)) ==
        "from torch.distributed.pipelining import SplitPoint\n\n"
        "# stages: d2, d1, d0\n"
        "split_spec = {\n"
        "    \"layers.4\": SplitPoint.BEGINNING,\n"
        "    \"layers.5\": SplitPoint.BEGINNING,\n"
        "}\n");
  // A head alone begins after the last block, which cannot be marked BEGINNING as well.
  using point = exchange::torch_split_point;
  const auto points = [](const block_split& s) { return exchange::split_for_torch(s.plan(), test::block_model(s.total())).points; };
  CHECK(points({{3, 0}}) == std::vector{point{2, true}});
  CHECK(points({{2, 1, 0}}) == std::vector{point{1, true}, point{2, true}});
  CHECK(points({{0, 2, 1, 0}}) == std::vector{point{0, false}, point{1, true}, point{2, true}});
  CHECK(points({{3}}).empty());
}

TEST_CASE("torch makes the planned stages of random splits, the embedding and the head with blocks or alone") {
  test::for_random_splits(200, true, check_owners);
}

TEST_CASE("torch makes the planned stages of every split of seven blocks") {
  for (int stages = 1; stages <= 7; ++stages) {
    test::for_all_splits(7, stages, [](block_split s) {
      check_owners(s);
      s.blocks.push_back(0);
      check_owners(s);
      s.blocks.insert(s.blocks.begin(), 0);
      if (s.stages() < 9) check_owners(s);
      s.blocks.pop_back();
      check_owners(s);
    });
  }
}

TEST_CASE("a plan whose stages recompute is refused: a split point cannot say so") {
  hetplan::plan p = block_split{{4, 3}}.plan(mode::training);
  p.stages[1].recompute = recomputation::stage;
  CHECK_THROWS_MATCHES(exchange::split_for_torch(p, test::block_model(7)), invalid_input,
                       Catch::Message("export to torch: it keeps activations; stage \"" + p.stages[1].name + "\" recomputes them"));
}

TEST_CASE("a plan with more cuts than blocks is refused") {
  CHECK(test::message_of([] {
          return exchange::split_for_torch(block_split{{0, 1, 1, 0}}.plan(), test::block_model(2));
        }) == "export to torch: a split point names a block; the plan has more cuts than blocks");
}
