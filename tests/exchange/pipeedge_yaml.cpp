// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/cost/cost_model.hpp>
#include <hetplan/exchange/pipeedge_yaml.hpp>
#include <hetplan/io/model_json.hpp>

#include "io/reading.hpp"
#include "support/by_hand.hpp"
#include "support/shared_data.hpp"

namespace test_pipeedge_yaml {

using namespace hetplan;
using test::check_refusals;
using test::message_of;
using test::near;
using test::with;

namespace {

const std::string models = R"(# comment
Dummy:
  layers: 0
  mem_MB: []
  parameters_in: 0
  parameters_out: []
tiny/vit:
  layers: 3
  mem_MB: [1.5, 2, 0.25]
  parameters_in: 12
  parameters_out: [100, 50, 7]
  accuracy: {top1: 0.5}
)";
const std::string types = R"(Idle:
  bw_Mbps: 0
  mem_MB: 0
  model_profiles:
Board:
  bw_Mbps: 1000
  mem_MB: 2048
  model_profiles:
    tiny/vit:
    - batch_size: 8
      dtype: torch.float32
      time_s: [0.5, 0.25,
        0.125]
    - batch_size: 2
      dtype: torch.float32
      time_s: [0.2, 0.1, 0.05]
    - {batch_size: 8, dtype: torch.float16, time_s: [0.3, 0.2, 0.1]}
Box:
  bw_Mbps: 100
  mem_MB: 8192
  model_profiles:
    tiny/vit:
    - batch_size: 8
      dtype: torch.float32
      time_s: [5e-2, 0, 0.01]
)";

std::vector<exchange::pipeedge_model> read_models(const std::string& text) { return exchange::parse_pipeedge_models(text, "models.yml"); }
std::vector<exchange::pipeedge_device_type> read_types(const std::string& text) {
  return exchange::parse_pipeedge_device_types(text, "types.yml");
}
std::string error(const std::string& text) {
  return message_of([&] { return read_models(text); });
}

}  // namespace

TEST_CASE("PipeEdge's models and device types are read as they stand") {
  const auto m = read_models(models);
  REQUIRE(m.size() == 2);
  CHECK(m[0].name == "Dummy");
  CHECK(m[1].name == "tiny/vit");
  CHECK(m[1].memory == std::vector<bytes>{bytes(1.5e6), bytes(2e6), bytes(0.25e6)});
  CHECK(m[1].elements_in == 12);
  CHECK(m[1].elements_out == std::vector<double>{100, 50, 7});
  const auto t = read_types(types);
  REQUIRE(t.size() == 3);
  CHECK(t[0].profiles.empty());
  CHECK(t[1].bandwidth == bytes_per_second(125e6));
  CHECK(t[1].memory == bytes(2.048e9));
  REQUIRE(t[1].profiles.size() == 3);
  CHECK(t[1].profiles[0].time_s == std::vector<double>{0.5, 0.25, 0.125});
  CHECK(t[1].profiles[2].dtype == "torch.float16");
  CHECK(t[2].profiles[0].batch == 8);
}

TEST_CASE("a PipeEdge model becomes a chain with the times of every type that measured it") {
  const auto m = read_models(models);
  const auto t = read_types(types);
  const planning_graph g = exchange::pipeedge_graph(m[1], t);
  CHECK(g.name() == "tiny/vit");
  CHECK(g.bytes_per_parameter() == 4);
  REQUIRE(g.size() == 3);
  const layer& l = g[layer_id(0)];
  CHECK(l.name == "layer1");
  CHECK(l.weight == bytes(1.5e6));
  CHECK_FALSE(l.trainable);
  REQUIRE(l.profiles.size() == 2);
  CHECK(*l.profile_for("Board") == layer_profile{"Board", {2, 8}, {0.2, 0.5}, {}});
  CHECK(*l.profile_for("Box") == layer_profile{"Box", {8, 16}, {0.05, 0.1}, {}});
  REQUIRE(g.edges().size() == 2);
  CHECK(g.edges()[0].forward == bytes(400));
  CHECK(g.edges()[1].forward == bytes(200));
  const planning_graph half = exchange::pipeedge_graph(m[1], t, "torch.float16");
  CHECK(half[layer_id(0)].profiles.size() == 1);
  CHECK(half.edges()[0].forward == bytes(200));
  CHECK(io::read_model(test::document(io::write_model(g))) == g);
}

TEST_CASE("what cannot become a chain says why") {
  const auto m = read_models(models);
  const auto t = read_types(types);
  CHECK(message_of([&] { return exchange::pipeedge_graph(m[0], t); }) ==
        "pipeedge: model \"Dummy\": expected at least one layer, got none");
  CHECK(message_of([&] { return exchange::pipeedge_graph(m[1], t, "torch.int8"); }) ==
        "pipeedge: model \"tiny/vit\": expected a device type with times in \"torch.int8\", got none");
  CHECK(message_of([&] {
          return exchange::pipeedge_graph(m[1], t, "fp32");
        }).starts_with("pipeedge: expected a dtype among torch.float64, torch.float32, "));
  CHECK(message_of([&] { return exchange::pipeedge_graph(m[1], read_types(with(types, "[0.2, 0.1, 0.05]", "[0.2, 0.1]"))); }) ==
        "pipeedge: model \"tiny/vit\": expected times of its 3 layers on device type \"Board\", got 2");
}

TEST_CASE("device types and counts make a cluster whose links have their types' bandwidths") {
  const auto t = read_types(types);
  const cluster c = exchange::pipeedge_cluster("desk", t, std::vector<exchange::pipeedge_count>{{"Box", 1}, {"Board", 2}});
  REQUIRE(c.size() == 3);
  CHECK(c[device_id(0)].name == "Box-0");
  CHECK(c[device_id(2)].name == "Board-1");
  CHECK(c[device_id(2)].kind == "Board");
  const route* r = c.network().find(device_id(0), device_id(2));
  REQUIRE(r != nullptr);
  double slowest = 1e18;
  for (const resource_use& u : r->via) slowest = std::min(slowest, c.network()[u.resource].capacity.value());
  CHECK(slowest == 12.5e6);
  CHECK(c.network()[r->via[0].resource].name == "Box-0.up");
  CHECK(c.network()[r->via[1].resource].name == "Board-1.down");
  const auto refused = [&](std::vector<exchange::pipeedge_count> counts) {
    return message_of([&] { return exchange::pipeedge_cluster("desk", t, counts); });
  };
  CHECK(refused({{"Phone", 1}}) == "pipeedge_cluster: expected a device type of the file, got \"Phone\"");
  CHECK(refused({{"Box", 0}}) == "pipeedge_cluster: \"Box\": expected a count >= 1, got 0");
  CHECK(refused({{"Idle", 1}}) == "pipeedge_cluster: \"Idle\": expected a bandwidth > 0, got 0");
  CHECK(refused({{"Box", 2000000000}}) == "pipeedge_cluster: expected at most 1000 devices, got more");
  CHECK(exchange::pipeedge_cluster("one", t, std::vector<exchange::pipeedge_count>{{"Box", 1}}).size() == 1);
}

TEST_CASE("a bad YAML file names its line") {
  CHECK(error("") == "models.yml: expected YAML, got an empty file");
  CHECK(error("# only a comment\n") == "models.yml: expected YAML, got an empty file");
  CHECK(error("- 1\n- 2\n") == "models.yml: line 1: expected a map from model to its layers, got a list");
  CHECK(error("a: 1\n---\nb: 2\n") == "models.yml: expected one YAML document, got 2");
  CHECK(error("a: [1, 2\n").starts_with("models.yml: line "));
  CHECK(error("a: &x [1]\nb: *x\n").starts_with("models.yml: line 2, column 4: expected values, got an alias"));
  CHECK(error("a\xff: 1\n") == "models.yml: expected UTF-8, got bytes that are none");
  CHECK(error(std::string("a: 1\0", 5)) == "models.yml: expected text, got a zero byte");
  CHECK(error("a: " + std::string(100, '[') + std::string(100, ']')).starts_with("models.yml: line 1, column "));
  CHECK(error(std::string(5'000'000, ' ')) == "models.yml: expected at most 4 MB of YAML, got more");
  CHECK(error("a: \"\x1b[2J\"\n").find('\x1b') == std::string::npos);
  CHECK(error(models.substr(0, 150)).starts_with("models.yml: "));
}

TEST_CASE("a bad PipeEdge model names its place") {
  CHECK(error("vit: 3\n") == "models.yml: line 1: vit: expected a map with layers, got \"3\"");
  check_refusals(models, read_models, "models.yml: line ", R"(
    layers: 3 => no_layers: 3 => 8: tiny/vit: layers: expected a number of layers, got nothing
    layers: 3 => layers: 3.5 => 8: tiny/vit: layers: expected a whole number >= 0, got "3.5"
    layers: 3 => layers: -3 => 8: tiny/vit: layers: expected a whole number >= 0, got "-3"
    layers: 3 => layers: "3" => 8: tiny/vit: layers: expected a whole number >= 0, got "3"
    layers: 3 => layers: 4 => 9: tiny/vit: mem_MB: expected one entry per layer (4), got 3
    50, 7] => 50] => 11: tiny/vit: parameters_out: expected one entry per layer (3), got 2
    0.25] => -0.25] => 9: tiny/vit: mem_MB: expected MB >= 0, got "-0.25"
    0.25] => .nan] => 9: tiny/vit: mem_MB: expected MB >= 0, got ".nan"
    0.25] => 1e308] => 9: tiny/vit: mem_MB: expected MB >= 0, got 1e+308
    [1.5, 2, 0.25] => many => 9: tiny/vit: mem_MB: expected a list of numbers >= 0, got "many"
    Dummy: => tiny/vit: => 8: tiny/vit: expected every key once, got "tiny/vit" again
  )");
}

TEST_CASE("a bad PipeEdge device type names its place") {
  check_refusals(types, read_types, "types.yml: line ", R"(
    bw_Mbps: 1000 => bw_Mbps: fast => 6: Board: bw_Mbps: expected Mbit/s >= 0, got "fast"
    bw_Mbps: 1000 => bw_Mbps: 1e305 => 6: Board: bw_Mbps: expected Mbit/s >= 0, got "1e305"
    mem_MB: 2048 => # none => 6: Board: mem_MB: expected MB >= 0, got nothing
    0.125] => -0.125] => 13: Board: model_profiles: tiny/vit: time_s: expected seconds >= 0, got "-0.125"
    0.125] => nan] => 13: Board: model_profiles: tiny/vit: time_s: expected seconds >= 0, got "nan"
    batch_size: 8 => batch_size: 0 => 10: Board: model_profiles: tiny/vit: batch_size: expected a batch size >= 1, got "0"
    size: 2 => size: 8
      => 14: Board: model_profiles: tiny/vit: expected one profile per dtype and batch size, got another of "torch.float32" at 8
    - batch => batch => ...
    dtype: torch.float32 => dtype: [1] => 11: Board: model_profiles: tiny/vit: dtype: expected a dtype, got a list
  )");
}

TEST_CASE("PipeEdge's files of the collection have the totals that were counted apart") {
  const auto there = test::shared_data("data/pipeedge");
  if (!there) return;
  const std::filesystem::path& folder = *there;
  const auto m = exchange::read_pipeedge_models((folder / "models.yml").string());
  const auto t = exchange::read_pipeedge_device_types((folder / "device_types.yml").string());
  CHECK(m.size() == 3);
  CHECK(t.size() == 3);
  // Totals of an independent script: layers, bytes of memory, bytes over all edges, seconds on the two boards.
  struct totals {
    const char* model;
    std::size_t layers;
    double memory, crossing, minnowboard_s, rcc_s;
  };
  const totals counted[] = {{"google/vit-base-patch16-224", 48, 1175019520, 64754688, 13.05843455791473, 10.386390304565447},
                            {"google/vit-large-patch16-224", 96, 2903015424, 173486080, 44.51781916618349, 35.8402621030808}};
  for (const totals& c : counted) {
    INFO(c.model);
    const auto it = std::find_if(m.begin(), m.end(), [&](const auto& each) { return each.name == c.model; });
    REQUIRE(it != m.end());
    const planning_graph g = exchange::pipeedge_graph(*it, t);
    double memory = 0, crossing = 0, minnowboard_s = 0, rcc_s = 0;
    for (const layer& l : g.layers()) {
      memory += l.weight.value();
      minnowboard_s += l.profile_for("Minnowboard-E3845")->forward_s.front();
      rcc_s += l.profile_for("RCC-VE-C2000")->forward_s.front();
    }
    for (const layer_edge& e : g.edges()) crossing += e.forward.value();
    CHECK(g.size() == c.layers);
    CHECK(g.edges().size() == c.layers - 1);
    CHECK(memory == near(c.memory));
    CHECK(crossing == c.crossing);
    CHECK(minnowboard_s == near(c.minnowboard_s));
    CHECK(rcc_s == near(c.rcc_s));
    CHECK(g[layer_id(0)].profiles.front().batch.front() == 8);
  }
}

}  // namespace test_pipeedge_yaml
