// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/exchange/export_runtimes.hpp>
#include <hetplan/io/json_document.hpp>

#include "exchange/runtime_split.hpp"
#include "io/reading.hpp"

namespace test_export_llama_cpp {

using namespace hetplan;
using test::block_split;

namespace {

/// What llama.cpp does with a command line: who owns each block and, last, the head; -1 is the host's processor.
///
/// Its rule, in its own float: shares are summed up and divided by the sum; of the last `ngl` layers (n + 1 with the head) each
/// goes to the first device whose share is larger than its position's. `counts_head` is how newer versions find the first of
/// those layers, the others do without the head; for all layers both must agree.
std::vector<int> owners_in_llama_cpp(const std::string& command, int n_layer, bool counts_head) {
  const std::string line = test::split_text(command, '\n')[4];
  const std::vector<std::string> servers = test::split_text(test::option(line, "--rpc"), ',');
  const std::vector<std::string> names = test::split_text(test::option(line, "--device"), ',');
  std::vector<int> devices;  // of the cluster, in the order of --device
  for (const std::string& name : names) {
    REQUIRE(name.substr(0, 3) == "RPC");
    const std::string& server = servers.at(std::stoul(name.substr(3)));
    devices.push_back(std::stoi(server.substr(1, server.find(':') - 1)));
  }
  std::vector<float> splits;
  for (const std::string& number : test::split_text(test::option(line, "-ts"), ',')) splits.push_back(std::stof(number));
  REQUIRE(splits.size() == devices.size());
  REQUIRE(splits.size() < 16);
  float sum = 0;
  for (float& s : splits) s = sum += s;
  for (float& s : splits) s /= sum;
  const int ngl = std::stoi(test::option(line, "-ngl"));
  const int first = std::max(n_layer + (counts_head ? 1 : 0) - ngl, 0), active = std::min(ngl, n_layer + 1);
  std::vector<int> owners;
  for (int layer = 0; layer <= n_layer; ++layer) {
    if (layer < first || layer - first >= active) {
      owners.push_back(-1);
      continue;
    }
    const auto at = std::upper_bound(splits.begin(), splits.end(), static_cast<float>(layer - first) / static_cast<float>(active));
    REQUIRE(at != splits.end());
    owners.push_back(devices[static_cast<std::size_t>(at - splits.begin())]);
  }
  return owners;
}

void check_owners(const block_split& s, const planning_graph& model, const cluster& devices) {
  const std::string command = exchange::llama_cpp_command(s.plan(), model, devices);
  for (const bool counts_head : {false, true}) {
    const auto found = owners_in_llama_cpp(command, s.total(), counts_head);
    if (found == s.owners()) continue;
    INFO(command);
    CHECK(found == s.owners());
  }
}

}  // namespace

TEST_CASE("the command line for llama.cpp, by hand") {
  const cluster devices = test::row_of_devices(3);
  // Layers 0 to 3 on d1, 4, 5 and the head on d0.
  const block_split two{{4, 2}};
  CHECK(exchange::llama_cpp_command(two.plan(), test::block_model(6), devices) ==
        "# rpc-server asks nobody who they are, and with --host 0.0.0.0 it listens on every network of the device: start it only where\n"
        "# nobody but you can reach it, or give it the address of that one network instead; never on the internet\n"
        "# on each device:  rpc-server --host 0.0.0.0 --port 50052\n"
        "# on d1, which reads the tokens:\n"
        "llama-cli -m MODEL.gguf --rpc d1:50052,d0:50052 --device RPC0,RPC1 -ngl 7 -ts 4,3\n");
  // The embedding alone is the host and no server; the head alone is a layer.
  const exchange::llama_cpp_split alone = exchange::split_for_llama_cpp(block_split{{0, 6, 0}}.plan(), test::block_model(6));
  CHECK(alone.host == device_id(2));
  CHECK(alone.devices == std::vector{device_id(1), device_id(0)});
  CHECK(alone.tensor_split == std::vector<std::size_t>{6, 1});
  CHECK(alone.gpu_layers == 7);
}

TEST_CASE("llama.cpp gives every split of 28 blocks over up to four devices to the planned devices") {
  const planning_graph model = test::block_model(28);
  const cluster devices = test::row_of_devices(4);
  for (int stages = 1; stages <= 4; ++stages) {
    int splits = 0;
    test::for_all_splits(28, stages, [&](const block_split& s) {
      check_owners(s, model, devices);
      ++splits;
    });
    CHECK(splits == std::vector{1, 27, 351, 2925}[static_cast<std::size_t>(stages - 1)]);
  }
}

TEST_CASE("llama.cpp gives random splits to the planned devices, the head with blocks or alone") {
  test::for_random_splits(300, true,
                          [](const block_split& s) { check_owners(s, test::block_model(s.total()), test::row_of_devices(s.stages())); });
}

TEST_CASE("what llama.cpp cannot run is refused") {
  const auto refusal = [](const hetplan::plan& p, int blocks) {
    return test::message_of([&] { return exchange::split_for_llama_cpp(p, test::block_model(blocks)); });
  };
  CHECK(refusal(block_split{{2, 2}}.plan(mode::training), 4) == "export to llama.cpp: it runs inference; the plan is for training");
  CHECK(refusal(block_split{std::vector<int>(15, 1)}.plan(), 15) == "no error");
  CHECK(refusal(block_split{std::vector<int>(16, 1)}.plan(), 16) == "export to llama.cpp: its -ts takes 15 devices; the plan has 16");
}

TEST_CASE("a device's name that is no address is refused where a command line has it for one") {
  for (const std::string name : {"a b;'c\nd", "-rf d1", "-x", "a,b", "a:1", "\x1B[2J", ".", "k\u00FCche"}) {
    const cluster odd("odd",
                      {{.name = name, .memory = 1_GB, .compute = 1_TFLOP_per_s}, {.name = "e", .memory = 1_GB, .compute = 1_TFLOP_per_s}},
                      shared_medium{1_GB_per_s});
    const std::string why =
        "a device's name stands for its address: expected letters, digits, \"-\", \".\" and \"_\", a letter or a digit first; got ";
    CHECK(test::message_of([&] {
            return exchange::llama_cpp_command(block_split{{1, 1}}.plan(), test::block_model(2), odd);
          }) == "export to llama.cpp: " + why + io::in_quotes(name));
    CHECK(test::message_of([&] {
            return exchange::prima_cpp_commands(block_split{{1, 1}}.plan(), test::block_model(2), odd);
          }) == "export to prima.cpp: " + why + io::in_quotes(name));
  }
  CHECK(exchange::shell_word("") == "''");
  CHECK(exchange::shell_word("10.0.0.7:50052,home-1") == "10.0.0.7:50052,home-1");
}

}  // namespace test_export_llama_cpp
