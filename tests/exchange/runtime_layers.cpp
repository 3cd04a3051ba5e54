// SPDX-License-Identifier: BSL-1.0
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/exchange/export_runtimes.hpp>
#include <hetplan/zoo/models.hpp>

#include "exchange/runtime_split.hpp"
#include "io/reading.hpp"

using namespace hetplan;

namespace {

/// Returns a model of these layers, with edges as pairs of names.
planning_graph model_of(const std::vector<std::string>& layers, const std::vector<std::pair<std::string, std::string>>& edges) {
  planning_graph_builder b("m");
  for (const std::string& name : layers) b.add_layer({.name = name, .forward_flops = flops(1)});
  for (const auto& [from, to] : edges) b.add_edge(from, to, bytes(1));
  return std::move(b).build();
}

planning_graph row_of(const std::vector<std::string>& layers) {
  std::vector<std::pair<std::string, std::string>> edges;
  for (std::size_t i = 1; i < layers.size(); ++i) edges.emplace_back(layers[i - 1], layers[i]);
  return model_of(layers, edges);
}

std::string names_of(const planning_graph& model, const std::vector<layer_id>& layers) {
  std::string text;
  for (const layer_id l : layers) text += (text.empty() ? "" : " ") + model[l].name;
  return text;
}

std::string refusal(const planning_graph& model) {
  return test::message_of([&] { return exchange::find_runtime_layers(model); });
}

/// Returns a plan with stages of these layers, stage k on device k.
hetplan::plan plan_of(const planning_graph& model, const std::vector<std::vector<std::string>>& stages) {
  hetplan::plan p;
  p.workload.mode = mode::inference;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    stage st{.name = "s" + std::to_string(s)};
    for (const std::string& name : stages[s]) st.layers.push_back(model.find(name));
    st.devices.push_back({.device = device_id(s)});
    p.stages.push_back(std::move(st));
  }
  return p;
}

std::string refusal(const hetplan::plan& p, const planning_graph& model) {
  return test::message_of([&] { return exchange::runtime_stages(p, model, "it"); });
}

}  // namespace

TEST_CASE("the built-in language models have the blocks that they were built with") {
  const auto parts = [](const char* name) {
    const planning_graph model = zoo::model(name);
    const exchange::runtime_layers found = exchange::find_runtime_layers(model);
    for (std::size_t b = 0; b < found.blocks.size(); ++b) {
      const std::string prefix = "l" + std::to_string(b) + ".";
      std::size_t mine = 0;
      for (const layer& l : model.layers()) mine += l.name.rfind(prefix, 0) == 0 ? 1 : 0;
      CHECK(found.blocks[b].size() == mine);
      for (const layer_id l : found.blocks[b]) CHECK(model[l].name.rfind(prefix, 0) == 0);
    }
    return std::to_string(found.blocks.size()) + ": " + names_of(model, found.embedding) + " / " + names_of(model, found.head);
  };
  CHECK(parts("qwen3-0.6b") == "28: tokens embed / norm lm_head");
  CHECK(parts("llama3-8b") == "32: tokens embed / norm lm_head");
  CHECK(parts("gpt2") == "12: tokens embed positions / norm lm_head");
  CHECK(parts("bert-small") == "4: tokens embed positions embed_norm / lm_head");
  CHECK(refusal(zoo::model("qwen-omni")).find("is attention outside of the blocks") != std::string::npos);
}

TEST_CASE("blocks are found by the numbers in names, however they are written") {
  const auto blocks = [](const planning_graph& m) {
    std::string text;
    const exchange::runtime_layers found = exchange::find_runtime_layers(m);
    for (const auto& b : found.blocks) text += "[" + names_of(m, b) + "]";
    return names_of(m, found.embedding) + text + names_of(m, found.head);
  };
  CHECK(blocks(row_of({"wte", "model.layers.0.attn", "model.layers.0.mlp", "model.layers.1.attn", "model.layers.1.mlp", "head"})) ==
        "wte[model.layers.0.attn model.layers.0.mlp][model.layers.1.attn model.layers.1.mlp]head");
  // The most frequent number counts blocks; a version, the parts of a block and the layers of the head are fewer.
  CHECK(blocks(row_of({"v3.h0.fc1", "v3.h0.fc2", "v3.h1.fc1", "v3.h1.fc2", "v3.h2.fc1", "v3.h2.fc2", "out.fc1", "out.fc2"})) ==
        "[v3.h0.fc1 v3.h0.fc2][v3.h1.fc1 v3.h1.fc2][v3.h2.fc1 v3.h2.fc2]out.fc1 out.fc2");
  CHECK(blocks(row_of({"l0", "l1", "l2"})) == "[l0][l1][l2]");
  CHECK(blocks(row_of({"b0"})) == "[b0]");
  CHECK(blocks(row_of({"b0.c0", "b0.c1", "b1.c0", "b1.c1"})) == "[b0.c0 b0.c1][b1.c0 b1.c1]");
  // More experts than blocks, and a block without attention.
  planning_graph_builder b("experts");
  for (const char* name : {"l0.attn", "l0.e0", "l0.e1", "l0.e2", "l0.e3", "l1.attn", "l1.mlp", "l2.mlp"}) {
    b.add_layer({.name = name, .kind = std::string(name).ends_with("attn") ? "attention" : "mlp", .forward_flops = flops(1)});
  }
  for (int i = 1; i < 8; ++i) b.add_edge(layer_id(i - 1), layer_id(i), bytes(1));
  CHECK(blocks(std::move(b).build()) == "[l0.attn l0.e0 l0.e1 l0.e2 l0.e3][l1.attn l1.mlp][l2.mlp]");
}

TEST_CASE("a model without a row of blocks is refused, and the message names the layer") {
  const std::string model = "runtime_layers: model \"m\": ";
  CHECK(refusal(row_of({"a", "b"})) == model + "no layer has the number of a block in its name, as \"l0.q\" and \"layers.0.q\" have");
  CHECK(refusal(row_of({"l0", "l1", "l3"})) == model + "expected block \"l2\", got \"l3\"");
  CHECK(refusal(row_of({"l1", "l2"})) == model + "expected block \"l0\", got \"l1\"");
  CHECK(refusal(row_of({"l1", "l0"})) == model + "layer \"l1\" feeds a block before its own, that of \"l0\"");
  CHECK(refusal(row_of({"l0", "between", "l1"})) == model + "layer \"between\" stands between blocks and has no number");
  CHECK(refusal(model_of({"l0", "l1", "alone"}, {{"l0", "l1"}})) == model + "layer \"alone\" has no number and no path from or to a block");
}

TEST_CASE("a plan that is no row of whole blocks on single devices is refused in a sentence") {
  const planning_graph m = row_of({"embed", "l0.a", "l0.b", "l1.a", "l1.b", "norm", "head"});
  const hetplan::plan whole = plan_of(m, {{"embed", "l0.a", "l0.b"}, {"l1.a", "l1.b", "norm", "head"}});
  REQUIRE(refusal(whole, m) == "no error");
  const std::string it = "export to it: ";
  CHECK(refusal(plan_of(m, {{"embed", "l0.a"}, {"l0.b", "l1.a", "l1.b", "norm", "head"}}), m) ==
        it + "it cuts a model between blocks; the plan cuts between layers \"l0.a\" and \"l0.b\"");
  CHECK(refusal(plan_of(m, {{"embed", "l0.a", "l0.b", "l1.a", "l1.b", "norm"}, {"head"}}), m) ==
        it + "it cuts a model between blocks; the plan cuts between layers \"norm\" and \"head\"");
  hetplan::plan p = whole;
  p.pipelines = {1, 1};
  CHECK(refusal(p, m) == it + "it runs one pipeline; the plan has 2");
  p = whole;
  p.stages[1].devices.push_back({.device = device_id(2)});
  CHECK(refusal(p, m) == it + "it gives a stage one device; stage \"s1\" has 2");
  p = whole;
  p.stages[0].devices[0].tensor_parallel = 2;
  CHECK(refusal(p, m) == it + "it splits a model between blocks; stage \"s0\" splits its layers 2 ways");
  p = whole;
  p.stages[1].devices[0].device = device_id(0);
  CHECK(refusal(p, m) == it + "it gives a device one range of blocks; that of stage \"s1\" has another stage");
  // A skip over a stage, and two parallel stages.
  const planning_graph skip = model_of({"l0", "l1", "l2"}, {{"l0", "l1"}, {"l1", "l2"}, {"l0", "l2"}});
  CHECK(refusal(plan_of(skip, {{"l0"}, {"l1"}, {"l2"}}), skip) == it + "it runs a row of stages; stage \"s0\" feeds others than \"s1\"");
  const planning_graph fork = model_of({"l0", "l1", "l2"}, {{"l0", "l1"}, {"l0", "l2"}});
  CHECK(refusal(plan_of(fork, {{"l0"}, {"l1"}, {"l2"}}), fork) == it + "it runs a row of stages; stage \"s0\" feeds others than \"s1\"");
}

TEST_CASE("the embedding is in the first stage, the head in the last, and blocks are in order between them") {
  const std::string it = "export to it: ";
  const planning_graph late = model_of({"l0", "e", "l1", "head"}, {{"l0", "l1"}, {"e", "l1"}, {"l1", "head"}});
  CHECK(refusal(plan_of(late, {{"l0"}, {"e", "l1", "head"}}), late) == it + "it has the embedding before all blocks; the plan has not");
  const planning_graph early = model_of({"l0", "l1", "h"}, {{"l0", "l1"}, {"l0", "h"}});
  CHECK(refusal(plan_of(early, {{"l0", "h"}, {"l1"}}), early) == it + "it has the head behind all blocks; the plan has not");
  const planning_graph loose = model_of({"e", "l0", "l1", "h"}, {{"e", "l0"}, {"e", "l1"}, {"l0", "h"}, {"l1", "h"}});
  CHECK(refusal(plan_of(loose, {{"e", "l0"}, {"l1", "h"}}), loose) == "no error");
  CHECK(refusal(plan_of(loose, {{"e", "l1"}, {"l0", "h"}}), loose) ==
        it + "it runs blocks in their order; the plan has block 1 before block 0");
}

TEST_CASE("stages come in the order of the model, whatever their order in the plan") {
  const planning_graph m = row_of({"embed", "l0", "l1", "l2", "head"});
  const auto stages = exchange::runtime_stages(plan_of(m, {{"l2", "head"}, {"embed"}, {"l0", "l1"}}), m, "it");
  REQUIRE(stages.size() == 3);
  const auto check = [&](std::size_t k, int number, std::size_t first, std::size_t end, bool has_head) {
    CHECK(stages[k].stage == stage_id(number));
    CHECK(stages[k].device == device_id(number));
    CHECK(stages[k].first_block == first);
    CHECK(stages[k].end_block == end);
    CHECK(stages[k].has_head == has_head);
  };
  check(0, 1, 0, 0, false);
  check(1, 2, 0, 2, false);
  check(2, 0, 2, 3, true);
  const auto head = exchange::runtime_stages(plan_of(m, {{"embed", "l0", "l1", "l2"}, {"head"}}), m, "it").back();
  CHECK(head.first_block == 3);
  CHECK(head.end_block == 3);
}
