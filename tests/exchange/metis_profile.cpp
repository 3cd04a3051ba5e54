// SPDX-License-Identifier: BSL-1.0
#include <filesystem>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/exchange/metis_profile.hpp>
#include <hetplan/io/model_json.hpp>

#include "io/reading.hpp"
#include "support/by_hand.hpp"
#include "support/shared_data.hpp"

namespace test_metis_profile {

using namespace hetplan;
using test::check_refusals;
using test::message_of;
using test::near;
namespace fs = std::filesystem;

namespace {

std::string text(double scale, double first_memory) {
  const auto number = [](double v) { return to_text(v); };
  return R"({"model": {"model_name": "GPT", "num_layers": 3, "parameters": {"total_parameters_bytes": 600, "parameters_per_layer_bytes": [100, 200, 300],
   "activation_parameters_bytes": [)" +
         number(16 * scale) + ", " + number(16 * scale) + ", " + number(8 * scale) + R"(]}},
   "execution_time": {"total_time_ms": 9, "optimizer_time_ms": 1, "layer_compute_total_ms": [)" +
         number(3 * scale) + ", " + number(6 * scale) + ", " + number(1.5 * scale) + R"(]},
   "execution_memory": {"layer_memory_total_mb": [)" +
         number(first_memory) + R"(, 4, 4]}})";
}
exchange::metis_profile read(const std::string& t, const std::string& kind = "A100", int degree = 1, int batch = 2) {
  return exchange::read_metis(test::document(t, "f.json"), {kind, degree, batch});
}

}  // namespace

TEST_CASE("names of Metis' files tell device, degree and batch") {
  using exchange::metis_name;
  CHECK(exchange::metis_name_of("profiles/DeviceType.A100_tp1_bs2.json") == metis_name{"A100", 1, 2});
  CHECK(exchange::metis_name_of("DeviceType.A100_40_tp16_bs128.json") == metis_name{"A100_40", 16, 128});
  CHECK(exchange::metis_name_of("OPT/GH-96/mbs2_tmp4.json") == metis_name{"GH-96", 4, 2});
  for (const char* other : {"mbs2_tmp4.json", "DeviceType.A100.json", "DeviceType._tp1_bs2.json", "DeviceType.A_tp0_bs2.json",
                            "x/mbs_tmp4.json", "x/mbs2_tmp4x.json", "DeviceType.A_tp1_bs99999999999.json", "", "profile.json"})
    CHECK(!exchange::metis_name_of(other));
}

TEST_CASE("profiles of Metis make a chain with times of several kinds") {
  const std::vector<exchange::metis_profile> all{read(text(1, 5), "A100", 1, 1), read(text(2, 8), "A100", 1, 2),
                                                 read(text(3, 9), "T4", 1, 2), read(text(1, 2), "A100", 2, 2)};
  const planning_graph g = exchange::metis_chain(all);
  CHECK(g.name() == "GPT");
  REQUIRE(g.size() == 3);
  REQUIRE(g.edges().size() == 2);
  const layer& l = g[layer_id(1)];
  CHECK(l.weight == bytes(200));
  REQUIRE(l.profile_for("A100") != nullptr);
  CHECK(l.profile_for("A100")->batch == std::vector<double>{1, 2});
  CHECK(l.profile_for("A100")->forward_s[1] == near(0.004));
  CHECK(l.profile_for("A100")->backward_s[1] == near(0.008));
  CHECK(l.profile_for("T4")->batch == std::vector<double>{2, 4});  // one measured size: larger ones in proportion
  CHECK(g[layer_id(0)].activation == bytes(3 * 1048576.0));        // memory grows by 3 MB a sample
  CHECK(l.activation == bytes(16));                                // it does not: the output
  CHECK(g.edges()[0].forward == bytes(16));
  CHECK(io::read_model(test::document(io::write_model(g))) == g);
  const planning_graph half = exchange::metis_chain(all, {.tensor_parallel = 2, .forward_share = 0.5, .output = bytes(7)});
  CHECK(half[layer_id(1)].profile_for("A100")->forward_s[0] == near(0.003));
  CHECK(half[layer_id(1)].profile_for("T4") == nullptr);
  CHECK(half.edges()[1].forward == bytes(7));
}

TEST_CASE("bad profiles of Metis are refused") {
  check_refusals(
      text(1, 5), [](const std::string& t) { return read(t); }, "f.json: ", R"(
    "model_name": "GPT", => => /model/model_name: expected a name, got nothing
    [100, 200, 300] => [100, 200] => ...expected one entry per layer (2), got 3
    [100, 200, 300] => [] => /model/parameters/parameters_per_layer_bytes: expected at least one layer, got an empty array
    [100, 200, 300] => [100, -200, 300] => /model/parameters/parameters_per_layer_bytes/1: expected a number >= 0, got -200
    "layer_compute_total_ms" => "layers" => /execution_time/layer_compute_total_ms: expected an array of numbers, got nothing
    "execution_time" => "time" => /execution_time: expected an object, got nothing
  )");
  const auto chain = [](std::vector<exchange::metis_profile> all, const exchange::metis_choice& c = {}) {
    return message_of([&] { return exchange::metis_chain(all, c); });
  };
  CHECK(chain({}) == "metis_chain: expected at least one profile, got none");
  CHECK(chain({read(text(1, 5))}, {.tensor_parallel = 4}) == "f.json: expected a profile of degree 4, got none");
  CHECK(chain({read(text(1, 5)), read(text(1, 5))}) == "f.json: expected one file for \"A100\", degree 1 and batch 2, got another one");
  CHECK(chain({read(text(1, 5))}, {.forward_share = 1}) == "metis_chain: forward_share = 1; expected a number in (0, 1)");
  const std::string without = test::with(text(1, 5), "activation_parameters_bytes", "other");
  CHECK(chain({read(without)}) ==
        "f.json: expected activation_parameters_bytes, or the bytes of a layer's output (--boundary), got neither");
}

TEST_CASE("published profiles in Metis' format become chains") {
  const auto there = test::shared_data("data/sailor/sailor/Planner/baselines/Metis/profiles");
  if (!there) return;
  int models = 0, refused = 0;
  for (const auto& model : fs::directory_iterator(*there)) {
    std::vector<exchange::metis_profile> all;
    for (const auto& entry : fs::recursive_directory_iterator(model.path())) {
      const auto name = exchange::metis_name_of(entry.path().string());
      if (entry.path().extension() != ".json" || !name) continue;
      const auto read_file = [&] { return exchange::read_metis(io::json_document::load(entry.path().string()), *name); };
      if (entry.path().string().find("LLAMA-3-8") == std::string::npos) {
        all.push_back(read_file());
        continue;
      }
      // Weights of 35 layers, the last norm on its own, but times of 34: which time is whose is not told.
      CHECK(message_of(read_file).ends_with("/execution_time/layer_compute_total_ms: expected one entry per layer (35), got 34"));
      ++refused;
    }
    if (all.empty()) continue;
    INFO(model.path().string());
    const planning_graph g = exchange::metis_chain(all);
    CHECK(g.size() == all[0].weights.size());
    CHECK(g[layer_id(1)].profiles.size() >= 1);
    ++models;
  }
  CHECK(models == 2);
  CHECK(refused == 10);
}

}  // namespace test_metis_profile
