// SPDX-License-Identifier: BSL-1.0
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/zoo/models.hpp>

using namespace hetplan;

namespace {

const layer& at(const planning_graph& g, const std::string& name) { return g[g.find(name)]; }

const layer_edge& edge(const planning_graph& g, const std::string& from, const std::string& to) {
  const layer_id target = g.find(to);
  for (const layer_edge& e : g.out_edges(g.find(from))) {
    if (e.to == target) return e;
  }
  throw std::runtime_error("no edge " + from + " -> " + to);
}

bool starts_with(const std::string& text, const std::string& prefix) { return text.rfind(prefix, 0) == 0; }

double parameters_of(const planning_graph& g, const std::string& prefix) {
  std::set<int> groups;
  double total = 0;
  for (const layer& l : g.layers()) {
    if (!starts_with(l.name, prefix) || (l.weight_group >= 0 && !groups.insert(l.weight_group).second)) continue;
    total += l.weight.value();
  }
  return total / g.bytes_per_parameter();
}

bool connected(const planning_graph& g) {
  std::vector<std::size_t> root(g.size());
  std::iota(root.begin(), root.end(), std::size_t{0});
  const auto find = [&](std::size_t x) {
    while (root[x] != x) x = root[x] = root[root[x]];
    return x;
  };
  for (const layer_edge& e : g.edges()) root[find(e.from.index())] = find(e.to.index());
  for (std::size_t i = 1; i < g.size(); ++i) {
    if (find(i) != find(0)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("every built-in model builds in both precisions as one connected graph") {
  REQUIRE(zoo::model_names().size() == 12);
  for (const std::string_view name : zoo::model_names()) {
    INFO(name);
    const planning_graph full = zoo::model(name, {.dtype = zoo::precision::fp32});
    const planning_graph half = zoo::model(name, {.dtype = zoo::precision::bf16});
    CHECK(full.name() == name);
    CHECK(connected(full));
    CHECK(full.bytes_per_parameter() == 4);
    CHECK(half.bytes_per_parameter() == 2);
    CHECK(full.parameters() == half.parameters());
    CHECK(full.forward_flops() == half.forward_flops());
    REQUIRE(full.edges().size() == half.edges().size());
    for (std::size_t i = 0; i < full.edges().size(); ++i) {
      const layer_edge &f = full.edges()[i], &h = half.edges()[i];
      // Token ids are 4 bytes each in every precision.
      const bool ids = half[h.from].kind == "input" && half[h.to].kind == "embedding";
      CHECK(f.forward == (ids ? 1.0 : 2.0) * h.forward);
    }
    for (const layer& l : full.layers()) {
      CHECK((full.in_edges(l.id).empty() == (l.kind == "input")));
    }
  }
}

TEST_CASE("language models default to bf16 and 512 tokens, vision models to fp32") {
  CHECK(zoo::model("qwen3-0.6b").bytes_per_parameter() == 2);
  CHECK(zoo::model("qwen-omni").bytes_per_parameter() == 2);
  CHECK(zoo::model("qwen3-0.6b").tokens_per_sample() == 512);
  CHECK(zoo::model("qwen3-0.6b", {.tokens = 64}).tokens_per_sample() == 64);
  CHECK(zoo::model("resnet50").bytes_per_parameter() == 4);
  CHECK(zoo::model("resnet50").tokens_per_sample() == 1);
}

TEST_CASE("a model says whether it takes tokens or an input: the other changes nothing") {
  for (const std::string_view name : zoo::model_names()) {
    INFO(name);
    const auto flops_of = [&](const zoo::model_options& o) { return zoo::model(name, o).forward_flops(); };
    const bool tokens = flops_of({.tokens = 64}) != flops_of({.tokens = 128});
    const bool input = flops_of({.input = zoo::image_shape{3, 64, 64}}) != flops_of({.input = zoo::image_shape{3, 128, 128}});
    CHECK(tokens == zoo::takes_tokens(name));
    CHECK(input == !zoo::takes_tokens(name));
  }
}

TEST_CASE("parameter counts are the published ones") {
  const auto parameters = [](std::string_view name) { return zoo::model(name).parameters(); };
  CHECK(parameters("bert-base") == Approx(110e6).epsilon(0.012));
  CHECK(parameters("gpt2") == 124439808);
  CHECK(parameters("qwen3-0.6b") == 596049920);
  CHECK(parameters("qwen3-1.7b") == Approx(1.72e9).epsilon(0.001));
  CHECK(parameters("llama3-8b") == Approx(8.03e9).epsilon(0.0001));
  CHECK(parameters("resnet50") == Approx(25.56e6).epsilon(0.001));
  CHECK(parameters("resnet101") == Approx(44.55e6).epsilon(0.001));
  CHECK(parameters("efficientnet-b1") == 7794184);
  CHECK(parameters("mobilenetv2") == Approx(3.5e6).epsilon(0.002));
}

TEST_CASE("multiply-adds of the vision models are the published ones") {
  const auto gmac = [](std::string_view name) { return zoo::model(name).forward_flops().value() / 2e9; };
  CHECK(gmac("resnet50") == Approx(4.11).epsilon(0.01));
  CHECK(gmac("resnet101") == Approx(7.83).epsilon(0.01));
  CHECK(gmac("efficientnet-b1") == Approx(0.71).epsilon(0.03));
  CHECK(gmac("mobilenetv2") == Approx(0.31).epsilon(0.04));
}

TEST_CASE("one attention layer worked by hand") {
  const planning_graph g = zoo::model("llama3-8b");
  const layer& a = at(g, "l0.attn");
  CHECK(a.kind == "attention");
  CHECK(a.weight == 0_B);
  CHECK(a.forward_flops == flops(4.0 * 512 * 512 * 4096));  // two products over the full square
  CHECK(a.backward_input_flops == 2.0 * a.forward_flops);
  CHECK(a.backward_weight_flops == flops{});
  CHECK(a.kv_bytes_per_token == bytes(2.0 * 8 * 128 * 2));
  CHECK(a.activation == bytes(512.0 * 4096 * 2));
  CHECK(a.traffic == bytes(512.0 * (4096 + 1024 + 1024 + 4096) * 2));
  CHECK(edge(g, "l0.k", "l0.attn").forward == bytes(512.0 * 1024 * 2));
}

TEST_CASE("a residual edge passes each branch of a block") {
  const planning_graph pre = zoo::model("qwen3-0.6b");
  CHECK(edge(pre, "embed", "l0.add1").gradient == bytes(512.0 * 1024 * 2));
  CHECK(edge(pre, "l0.add1", "l0.add2").forward == bytes(512.0 * 1024 * 2));
  const planning_graph post = zoo::model("bert-base");
  CHECK(edge(post, "embed_norm", "l0.add1").forward == edge(post, "l0.norm1", "l0.add2").forward);
  CHECK_NOTHROW(edge(post, "l0.norm2", "l1.q"));
  CHECK_NOTHROW(edge(zoo::model("mobilenetv2"), "b1.project", "b2.add"));
  CHECK_NOTHROW(edge(zoo::model("efficientnet-b1"), "b0.dw", "b0.scale"));
}

TEST_CASE("tied embeddings are one tensor held by two layers") {
  for (const std::string name : {"bert-base", "bert-small", "gpt2", "qwen3-0.6b", "qwen3-1.7b"}) {
    INFO(name);
    const planning_graph g = zoo::model(name);
    REQUIRE(g.weight_groups().size() == 1);
    CHECK(at(g, "embed").weight_group == at(g, "lm_head").weight_group);
    CHECK(at(g, "embed").weight == at(g, "lm_head").weight);
    CHECK(at(g, "embed").weight_traffic < at(g, "lm_head").weight_traffic);
    CHECK(g.parameters() * g.bytes_per_parameter() ==
          std::accumulate(g.layers().begin(), g.layers().end(), 0.0, [](double s, const layer& l) { return s + l.weight.value(); }) -
              at(g, "embed").weight.value());
  }
  CHECK(zoo::model("llama3-8b").weight_groups().empty());
}

TEST_CASE("only looked-up rows of an embedding are read, and ids have no gradient") {
  const planning_graph g = zoo::model("gpt2", {.tokens = 100});
  CHECK(at(g, "embed").weight_traffic == bytes(100.0 * 768 * 2));
  CHECK(at(g, "embed").forward_flops == flops{});
  CHECK(at(g, "embed").backward_input_flops == flops{});
  CHECK(edge(g, "tokens", "embed").forward == 400_B);
  CHECK(edge(g, "tokens", "embed").gradient == 0_B);
  CHECK(edge(g, "embed", "positions").gradient == edge(g, "embed", "positions").forward);
}

TEST_CASE("the first layer of a vision model has no input gradient") {
  const planning_graph g = zoo::model("resnet50");
  const layer& first = at(g, "conv1");
  CHECK(first.backward_input_flops == flops{});
  CHECK(first.backward_weight_flops == first.forward_flops);
  CHECK(edge(g, "input", "conv1").gradient == 0_B);
  CHECK(at(g, "input").activation == bytes(3.0 * 224 * 224 * 4));  // conv1's weight gradient needs the image
  CHECK(at(g, "l0.0.c1").backward_input_flops == at(g, "l0.0.c1").forward_flops);
}

TEST_CASE("a sink's output counts as traffic though no edge carries it") {
  const planning_graph g = zoo::model("resnet50");
  CHECK(at(g, "fc").traffic == bytes((2048.0 + 1000.0) * 4));
  CHECK(at(g, "fc").activation == bytes(1000.0 * 4));
}

TEST_CASE("every output is kept once when everything learns") {
  for (const std::string_view name : zoo::model_names()) {
    if (name == "qwen-omni-frozen") continue;
    const planning_graph g = zoo::model(name);
    for (const layer& l : g.layers()) {
      INFO(name << " " << l.name);
      CHECK(l.activation > 0_B);
      if (!g.out_edges(l.id).empty()) CHECK(l.activation == l.largest_output);
    }
  }
}

TEST_CASE("tokens scale linear layers by themselves and attention by their square") {
  const planning_graph a = zoo::model("llama3-8b", {.tokens = 256}), b = zoo::model("llama3-8b", {.tokens = 1024});
  CHECK(at(b, "l3.up").forward_flops == 4.0 * at(a, "l3.up").forward_flops);
  CHECK(at(b, "l3.attn").forward_flops == 16.0 * at(a, "l3.attn").forward_flops);
  CHECK(at(b, "l3.attn").kv_bytes_per_token == at(a, "l3.attn").kv_bytes_per_token);
  CHECK(a.parameters() == b.parameters());
}

TEST_CASE("the image of a vision model can be chosen") {
  const planning_graph g = zoo::model("efficientnet-b1", {.input = zoo::image_shape{3, 120, 240}});
  CHECK(edge(g, "stem", "b0.dw").forward == bytes(32.0 * 60 * 120 * 4));
  CHECK(g.parameters() == 7794184);
  CHECK_NOTHROW(zoo::model("resnet101", {.input = zoo::image_shape{1, 1, 1}}));
  CHECK_THROWS_WITH(zoo::model("resnet50", {.input = zoo::image_shape{3, 0, 224}}),
                    "zoo::model: \"resnet50\": input = 3,0,224; expected channels, height and width >= 1");
}

TEST_CASE("an unknown model or more tokens than the context say what is known") {
  CHECK_THROWS_AS(zoo::model("bert"), invalid_input);
  CHECK_THROWS_WITH(zoo::model("bert"),
                    Catch::StartsWith("zoo::model: unknown model \"bert\"; expected one of bert-base,") && Catch::Contains("mobilenetv2"));
  CHECK_THROWS_WITH(zoo::model("bert-base", {.tokens = 513}), "zoo::model: \"bert-base\": tokens = 513; expected 1 to 512");
  CHECK_THROWS_AS(zoo::model("qwen-omni", {.tokens = 0}), invalid_input);
  CHECK_NOTHROW(zoo::model("bert-base", {.tokens = 512}));
  CHECK_NOTHROW(zoo::model("resnet50", {.tokens = -1}));  // unused by the model
}

TEST_CASE("the parts of qwen-omni add up") {
  const planning_graph g = zoo::model("qwen-omni");
  CHECK(parameters_of(g, "text.") == 3085938688);
  CHECK(parameters_of(g, "audio.") == 637710848);
  CHECK(parameters_of(g, "vision.") == 668382208);
  CHECK(parameters_of(g, "talker.") == 384604928);
  CHECK(g.parameters() == 3085938688 + 637710848 + 668382208 + 384604928);
  CHECK(edge(g, "audio.proj", "text.join").forward == bytes(750.0 * 2048 * 2));
  CHECK(edge(g, "vision.merge2", "text.join").forward == bytes(256.0 * 2048 * 2));
  CHECK(edge(g, "text.embed", "text.join").forward == bytes(512.0 * 2048 * 2));
  CHECK_NOTHROW(edge(g, "text.join", "text.l0.add1"));
  CHECK_NOTHROW(edge(g, "text.norm", "text.lm_head"));
  CHECK_NOTHROW(edge(g, "text.norm", "talker.join"));
  std::vector<std::string> sources, sinks;
  for (const layer& l : g.layers()) {
    if (g.in_edges(l.id).empty()) sources.push_back(l.name);
    if (g.out_edges(l.id).empty()) sinks.push_back(l.name);
  }
  CHECK(sources == std::vector<std::string>{"audio.mel", "vision.patches", "text.tokens", "talker.codes"});
  CHECK(sinks == std::vector<std::string>{"text.lm_head", "talker.codec_head"});
}

TEST_CASE("a token of qwen-omni is a step of its text and talker: no towers") {
  for (const char* name : {"qwen-omni", "qwen-omni-frozen"}) {
    const planning_graph g = zoo::model(name, {.tokens = 1}), two = zoo::model(name, {.tokens = 2});
    CHECK(g.parameters() == 3085938688 + 384604928);
    CHECK(two.parameters() == zoo::model(name).parameters());
    std::vector<std::string> sources;
    for (const layer& l : g.layers()) {
      if (g.in_edges(l.id).empty()) sources.push_back(l.name);
    }
    CHECK(sources == std::vector<std::string>{"text.tokens", "talker.codes"});
    CHECK_NOTHROW(edge(g, "text.embed", "text.l0.norm1"));
    CHECK(at(g, "text.l0.up").forward_flops * 2 == at(two, "text.l0.up").forward_flops);
    CHECK(at(g, "talker.codec_head").forward_flops * 2 == at(two, "talker.codec_head").forward_flops);
  }
}

TEST_CASE("frozen towers get no gradient, and the frozen talker hands its own back") {
  const planning_graph all = zoo::model("qwen-omni"), g = zoo::model("qwen-omni-frozen");
  CHECK(all.parameters() == g.parameters());
  CHECK(all.forward_flops() == g.forward_flops());
  CHECK(all.size() == g.size());
  for (const layer& l : g.layers()) {
    INFO(l.name);
    const bool tower = starts_with(l.name, "audio.") || starts_with(l.name, "vision.");
    const bool frozen = tower || starts_with(l.name, "talker.");
    CHECK(l.trainable == !frozen);
    if (frozen) CHECK(l.backward_weight_flops == flops{});
    if (tower) {
      CHECK(l.backward_input_flops == flops{});
      CHECK(l.activation == 0_B);
      for (const layer_edge& e : g.out_edges(l.id)) CHECK(e.gradient == 0_B);
    }
  }
  CHECK(edge(all, "audio.proj", "text.join").gradient == edge(all, "audio.proj", "text.join").forward);
  CHECK(edge(g, "talker.proj", "talker.l0.norm1").gradient == edge(g, "talker.proj", "talker.l0.norm1").forward);
  CHECK(edge(g, "text.norm", "talker.join").gradient == bytes(512.0 * 2048 * 2));
  CHECK(edge(g, "talker.embed", "talker.join").gradient == 0_B);
  CHECK(at(g, "talker.l0.q").backward_input_flops == at(g, "talker.l0.q").forward_flops);
  CHECK(at(g, "text.l0.q").backward_weight_flops == at(g, "text.l0.q").forward_flops);
}

TEST_CASE("devices that share a language model's tensors sum up twice a block, and take whole key/value heads") {
  for (const char* name : {"llama3-8b", "gpt2", "bert-small"}) {
    INFO(name);
    const planning_graph g = zoo::model(name, {.tokens = 64});
    stage all;
    int blocks = 0;
    for (const layer& l : g.layers()) {
      all.layers.push_back(l.id);
      blocks += l.kind == "attention" ? 1 : 0;
      if (l.kind == "norm" || l.kind == "add" || l.kind == "input") CHECK(l.split == layer_split::none);
    }
    CHECK(all_reduces_of(g, all, phase::forward).size() == 2 * static_cast<std::size_t>(blocks));
    CHECK(at(g, "l0.q").split == layer_split::columns);
    CHECK(at(g, "l0.attn").split == layer_split::along);
    CHECK(at(g, "l0.o").split == layer_split::rows);
    CHECK(at(g, "l0.act").split == layer_split::along);
    CHECK(at(g, "lm_head").split == layer_split::columns);
    CHECK(at(g, "embed").split == layer_split::rows);
  }
  const planning_graph g = zoo::model("llama3-8b", {.tokens = 1});
  for (const char* name : {"l0.q", "l0.k", "l0.v", "l0.attn", "l0.o"}) CHECK(at(g, name).split_units == 8);
  CHECK(at(g, "l0.up").split_units == 0);
}
