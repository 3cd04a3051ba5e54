// SPDX-License-Identifier: BSL-1.0
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/exchange/export_runtimes.hpp>

#include "exchange/runtime_split.hpp"
#include "io/reading.hpp"

namespace test_export_prima_cpp {

using namespace hetplan;
using test::block_split;

namespace {

/// Returns the owner of each block and, last, of the head by prima.cpp's rule: windows are handed out in a ring from rank 1 on until
/// they reach the layer; the head belongs to rank 0.
std::vector<int> owners_in_prima_cpp(const std::string& commands, int n_layer) {
  std::vector<std::string> lines;
  for (const std::string& line : test::split_text(commands, '\n')) {
    if (line.rfind("llama-cli ", 0) == 0) lines.push_back(line);
  }
  const std::size_t world = lines.size();
  std::vector<std::string> names;  // by rank, from --next of the rank before
  for (std::size_t rank = 0; rank < world; ++rank) {
    CHECK(test::option(lines[rank], "--world") == std::to_string(world));
    CHECK(test::option(lines[rank], "--rank") == std::to_string(rank));
    CHECK(test::option(lines[rank], "--master") == test::option(lines[0], "--master"));
    names.push_back(test::option(lines[(rank + world - 1) % world], "--next"));
  }
  CHECK(names[0] == test::option(lines[0], "--master"));
  std::vector<int> windows;
  for (const std::string& w : test::split_text(test::option(lines[0] + " ", "-lw"), ',')) windows.push_back(std::stoi(w));
  REQUIRE(windows.size() == world);
  REQUIRE(windows[0] > 0);  // 0 selects prima.cpp's own scheduler
  std::vector<int> owners;
  for (int layer = 0; layer < n_layer; ++layer) {
    std::size_t rank = 1 % world;
    for (int handed_out = windows[rank]; layer >= handed_out; handed_out += windows[rank]) rank = (rank + 1) % world;
    owners.push_back(std::stoi(names[rank].substr(1)));
  }
  owners.push_back(std::stoi(names[0].substr(1)));
  return owners;
}

void check_owners(const block_split& s, const planning_graph& model, const cluster& devices) {
  const std::string commands = exchange::prima_cpp_commands(s.plan(), model, devices);
  const auto found = owners_in_prima_cpp(commands, s.total());
  if (found == s.owners()) return;
  INFO(commands);
  CHECK(found == s.owners());
}

}  // namespace

TEST_CASE("the command lines for prima.cpp, by hand") {
  // Blocks 0 to 3 on d2, 4 and 5 on d1, 6 and the head on d0, which is rank 0.
  CHECK(exchange::prima_cpp_commands(block_split{{4, 2, 1}}.plan(), test::block_model(7), test::row_of_devices(3)) ==
        "# on d0:\nllama-cli -m MODEL.gguf --world 3 --rank 0 --master d0 --next d2 -lw 1,4,2\n"
        "# on d2:\nllama-cli -m MODEL.gguf --world 3 --rank 1 --master d0 --next d1\n"
        "# on d1:\nllama-cli -m MODEL.gguf --world 3 --rank 2 --master d0 --next d0\n");
}

TEST_CASE("prima.cpp gives every split of 28 blocks over up to three devices to the planned devices") {
  const planning_graph model = test::block_model(28);
  for (int stages = 1; stages <= 3; ++stages) {
    const cluster devices = test::row_of_devices(stages);
    test::for_all_splits(28, stages, [&](const block_split& s) { check_owners(s, model, devices); });
  }
}

TEST_CASE("prima.cpp gives random splits to the planned devices") {
  test::for_random_splits(200, false,
                          [](const block_split& s) { check_owners(s, test::block_model(s.total()), test::row_of_devices(s.stages())); });
}

TEST_CASE("what prima.cpp cannot run is refused") {
  const auto refusal = [](const block_split& s, mode how = mode::inference) {
    return test::message_of([&] { return exchange::split_for_prima_cpp(s.plan(how), test::block_model(s.total())); });
  };
  CHECK(refusal({{2, 2}}, mode::training) == "export to prima.cpp: it runs inference; the plan is for training");
  CHECK(refusal({{0, 4}}) == "export to prima.cpp: it gives every device a block; stage \"s0\" has none");
  CHECK(refusal({{2, 2, 0}}) == "export to prima.cpp: it gives every device a block; stage \"s2\" has none");
  CHECK(refusal({std::vector<int>(32, 1)}) == "no error");
  CHECK(refusal({std::vector<int>(33, 1)}) == "export to prima.cpp: it has windows for 32 devices; the plan has 33");
}

}  // namespace test_export_prima_cpp
