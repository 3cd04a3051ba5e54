// SPDX-License-Identifier: BSL-1.0
/// Built-in models against independent per-layer tables (../shared/data/layers, fp32, batch 1).
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <hetplan/zoo/models.hpp>

#include "support/shared_data.hpp"

using namespace hetplan;

namespace {

struct row {
  double parameters = 0, flop = 0;
};

struct table {
  std::map<std::string, row> layers;
  std::map<std::pair<std::string, std::string>, double> edges;  // bytes

  [[nodiscard]] row total() const {
    row t;
    for (const auto& [name, r] : layers) t = {t.parameters + r.parameters, t.flop + r.flop};
    return t;
  }
};

std::optional<table> read(const std::string& name) {
  const auto path = test::shared_data("data/layers/" + name + ".json");
  if (!path) return std::nullopt;
  std::ifstream file(*path);
  const auto json = nlohmann::json::parse(file);
  table t;
  const auto name_of = [&](std::size_t id) { return json.at("nodes").at(id).at("name").get<std::string>(); };
  for (const auto& n : json.at("nodes")) {
    t.layers[n.at("name").get<std::string>()] = {n.at("param_bytes").get<double>() / 4, n.at("flops").get<double>()};
  }
  for (const auto& e : json.at("edges")) {
    t.edges[{name_of(e.at(0).get<std::size_t>()), name_of(e.at(1).get<std::size_t>())}] = e.at(2).get<double>();
  }
  return t;
}

/// Returns the table of a model; as in the references, a shared tensor counts at its first layer only.
table table_of(const planning_graph& g) {
  table t;
  std::vector<bool> seen(g.weight_groups().size());
  for (const layer& l : g.layers()) {
    row& r = t.layers[l.name];
    r.flop = l.forward_flops.value();
    // The references count the full square of tokens.
    if (l.sequence.attention_flops > flops{} && l.sequence.attention == attention_kind::causal)
      r.flop = r.flop * 2 * g.tokens_per_sample() / (g.tokens_per_sample() + 1);
    if (l.weight_group >= 0) {
      if (seen[static_cast<std::size_t>(l.weight_group)]) continue;
      seen[static_cast<std::size_t>(l.weight_group)] = true;
    }
    r.parameters = l.weight.value() / g.bytes_per_parameter();
  }
  for (const layer_edge& e : g.edges()) t.edges[{g[e.from].name, g[e.to].name}] = e.forward.value();
  return t;
}

void compare_layers(const table& ours, const table& theirs) {
  CHECK(ours.total().parameters == theirs.total().parameters);
  CHECK(ours.total().flop == theirs.total().flop);
  REQUIRE(ours.layers.size() == theirs.layers.size());
  for (const auto& [name, r] : theirs.layers) {
    INFO(name);
    REQUIRE(ours.layers.contains(name));
    CHECK(ours.layers.at(name).parameters == r.parameters);
    CHECK(ours.layers.at(name).flop == r.flop);
  }
}

void compare(const planning_graph& g, const std::string& reference) {
  INFO(reference);
  const auto theirs = read(reference);
  if (!theirs) return;
  const table ours = table_of(g);
  compare_layers(ours, *theirs);
  CHECK(ours.edges == theirs->edges);
}

zoo::operator_graph fp32_graph() {
  zoo::operator_graph g("part", zoo::precision::fp32);
  g.set(layer_scope::request);
  return g;
}

}  // namespace

TEST_CASE("models equal the reference tables layer by layer and edge by edge") {
  compare(zoo::model("qwen3-0.6b", {.dtype = zoo::precision::fp32}), "qwen3_0.6b");
  compare(zoo::model("resnet50"), "resnet50");
  compare(zoo::model("efficientnet-b1"), "efficientnet_b1");
  compare(zoo::model("mobilenetv2"), "mobilenetv2");
}

TEST_CASE("the text part of qwen-omni equals its reference table") {
  compare(zoo::build_language_model("part", zoo::omni_text(), {.dtype = zoo::precision::fp32}), "qwen2.5_omni_3b_text");
}

TEST_CASE("the towers of qwen-omni equal their reference tables, which end in the width of the 7B model") {
  zoo::operator_graph audio = fp32_graph();
  zoo::audio_tower(audio, "", 3584);
  compare(std::move(audio).build(), "qwen2.5_omni_audio");
  zoo::operator_graph vision = fp32_graph();
  zoo::vision_tower(vision, "", 3584);
  compare(std::move(vision).build(), "qwen2.5_omni_vision");
}

TEST_CASE("models with learned positions equal the reference tables, which count them with the embedding") {
  for (const auto& [name, reference] : {std::pair("bert-base", "bert_base"), {"bert-small", "bert_small"}, {"gpt2", "gpt2_small"}}) {
    INFO(name);
    const auto theirs = read(reference);
    if (!theirs) continue;
    table ours = table_of(zoo::model(name, {.dtype = zoo::precision::fp32}));
    ours.layers["embed"].parameters += ours.layers.extract("positions").mapped().parameters;
    // The embedding norm of BERT comes first in the model, last in the table.
    if (auto odd = ours.layers.extract("embed_norm")) {
      odd.key() = "norm";
      ours.layers.insert(std::move(odd));
    }
    compare_layers(ours, *theirs);
    CHECK(ours.edges.size() == theirs->edges.size() + 1);
  }
}
