// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/coarsen/fuse_operators.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

#include "support/random_source.hpp"

namespace test_fuse {

using namespace hetplan;
using coarsen::blocks;
using coarsen::fuse_operators;
using coarsen::fused_graph;
using coarsen::fusion_rules;

namespace {

using rule_list = std::vector<std::vector<std::string>>;

fusion_rules rules_of(rule_list rules) { return {.name = "toy", .rules = std::move(rules)}; }

/// The rules of Moirai's Table I.
fusion_rules table_1() { return rules_of({{"conv", "bn"}, {"conv", "bn", "relu"}, {"conv", "bn", "add", "relu"}}); }

/// Returns a model with layers "0", "1", ... of these kinds; every edge has 1 byte.
planning_graph build(const std::vector<std::string>& kinds, const std::vector<std::pair<int, int>>& edges) {
  planning_graph_builder b("toy");
  for (const std::string& kind : kinds) {
    b.add_layer({.name = std::to_string(&kind - kinds.data()), .kind = kind, .forward_flops = flops(1)});
  }
  for (const auto& [from, to] : edges) b.add_edge(layer_id(from), layer_id(to), bytes(1));
  return std::move(b).build();
}

/// Returns blocks as text: members joined by "+", blocks in order, as in "0+1 2".
std::string text_of(const blocks& b) {
  std::string text;
  for (const auto& block : b.layers) {
    text += text.empty() ? "" : " ";
    for (const layer_id l : block) text += (l == block.front() ? "" : "+") + std::to_string(l.value);
  }
  return text;
}
std::string fused(const std::vector<std::string>& kinds, const std::vector<std::pair<int, int>>& edges, const fusion_rules& rules) {
  return text_of(fuse_operators(build(kinds, edges), rules));
}
std::string fused_chain(const std::vector<std::string>& kinds, const fusion_rules& rules) {
  std::vector<std::pair<int, int>> edges;
  for (int i = 1; i < static_cast<int>(kinds.size()); ++i) edges.emplace_back(i - 1, i);
  return fused(kinds, edges, rules);
}

std::vector<std::string> letters(test::random_source& random, int count, int alphabet) {
  std::vector<std::string> all;
  for (int i = 0; i < count; ++i) all.emplace_back(1, static_cast<char>('a' + random.integer(0, alphabet - 1)));
  return all;
}
fusion_rules random_rules(test::random_source& random, int alphabet) {
  fusion_rules rules = rules_of({});
  for (int i = random.integer(1, 8); i > 0; --i) rules.rules.push_back(letters(random, random.integer(2, 5), alphabet));
  return rules;
}
std::size_t longest(const fusion_rules& rules) {
  std::size_t most = 0;
  for (const auto& rule : rules.rules) most = std::max(most, rule.size());
  return most;
}

/// Checks the header's guarantees for blocks by their definitions.
void check_blocks(const planning_graph& model, const fusion_rules& rules, const blocks& b) {
  std::vector<int> times(model.size(), 0);
  REQUIRE(b.block_of.size() == model.size());
  for (std::size_t i = 0; i < b.size(); ++i) {
    REQUIRE(!b.layers[i].empty());
    REQUIRE(std::is_sorted(b.layers[i].begin(), b.layers[i].end()));
    std::vector<std::string> types;
    for (std::size_t m = 0; m < b.layers[i].size(); ++m) {
      const layer_id l = b.layers[i][m];
      ++times[l.index()];
      REQUIRE(b.block_of[l.index()] == i);
      types.push_back(model[l].kind);
      if (m + 1 == b.layers[i].size()) continue;
      REQUIRE(model.out_edges(l).size() == 1);
      REQUIRE(model.out_edges(l).front().to == b.layers[i][m + 1]);
    }
    if (types.size() > 1) REQUIRE(std::count(rules.rules.begin(), rules.rules.end(), types) > 0);
  }
  REQUIRE(std::all_of(times.begin(), times.end(), [](int t) { return t == 1; }));
  for (const layer_edge& e : model.edges()) REQUIRE(b.block_of[e.from.index()] <= b.block_of[e.to.index()]);

  // Convexity by the transitive closure: no path leaves a block and returns.
  const std::size_t n = model.size();
  std::vector<std::vector<char>> reaches(n, std::vector<char>(n, 0));
  for (std::size_t u = n; u-- > 0;) {
    for (const layer_edge& e : model.out_edges(layer_id(u))) {
      reaches[u][e.to.index()] = 1;
      for (std::size_t w = 0; w < n; ++w) reaches[u][w] |= reaches[e.to.index()][w];
    }
  }
  for (std::size_t u = 0; u < n; ++u) {
    for (std::size_t w = 0; w < n; ++w) {
      if (!reaches[u][w] || b.block_of[u] == b.block_of[w]) continue;
      for (std::size_t v = 0; v < n; ++v) REQUIRE(!(reaches[w][v] && b.block_of[v] == b.block_of[u]));
    }
  }
}

}  // namespace

TEST_CASE("the worked example of Moirai's Fig 7 is grouped as there") {
  // Upper branch: 0 add, 1 relu, 2 add, 3 relu, 8 add, 9 relu. Lower branch: 0 add, 4 conv, 5 bn, 6 conv, 7 bn, 8 add.
  const std::vector<std::string> kinds{"add", "relu", "add", "relu", "conv", "bn", "conv", "bn", "add", "relu"};
  const std::vector<std::pair<int, int>> edges{{0, 1}, {1, 2}, {2, 3}, {3, 8}, {0, 4}, {4, 5}, {5, 6}, {6, 7}, {7, 8}, {8, 9}};
  CHECK(fused(kinds, edges, table_1()) == "0 1 2 3 4+5 6+7+8+9");
}

TEST_CASE("the longest rule that completes wins, and one that never completes binds nothing") {
  const fusion_rules rules = table_1();
  CHECK(fused_chain({"conv", "bn", "relu"}, rules) == "0+1+2");
  CHECK(fused_chain({"conv", "bn", "add"}, rules) == "0+1 2");
  CHECK(fused_chain({"conv", "relu", "bn"}, rules) == "0 1 2");
  CHECK(fused_chain({"add", "relu", "conv", "bn"}, rules) == "0 1 2+3");
  CHECK(fused_chain({"a", "b", "c", "x"}, rules_of({{"a", "b", "c", "d"}, {"b", "c"}})) == "0 1+2 3");
  CHECK(fused_chain({"a", "b", "c"}, rules_of({{"a", "b"}, {"b", "c"}})) == "0+1 2");
}

TEST_CASE("an operator with two readers ends a block, one with two inputs need not") {
  const fusion_rules rules = table_1();
  CHECK(fused({"conv", "bn", "relu", "relu"}, {{0, 1}, {1, 2}, {1, 3}}, rules) == "0+1 2 3");
  CHECK(fused({"conv", "bn", "bn"}, {{0, 1}, {0, 2}}, rules) == "0 1 2");
  CHECK(fused({"input", "conv", "bn", "add", "relu"}, {{0, 1}, {1, 2}, {2, 3}, {0, 3}, {3, 4}}, rules) == "0 1+2+3+4");
}

TEST_CASE("of two branches into one operator the longer rule gets it, then the first one") {
  const std::vector<std::pair<int, int>> edges{{0, 1}, {1, 4}, {2, 3}, {3, 4}, {4, 5}};
  const std::vector<std::string> alike{"conv", "bn", "conv", "bn", "add", "relu"};
  CHECK(fused(alike, edges, table_1()) == "2+3 0+1+4+5");
  const fusion_rules unlike = rules_of({{"conv", "bn"}, {"mul", "bn", "add"}, {"conv", "bn", "add", "relu"}});
  CHECK(fused({"mul", "bn", "conv", "bn", "add", "relu"}, edges, unlike) == "0 1 2+3+4+5");
  // Operators released by the first branch may start a block of their own.
  const fusion_rules again = rules_of({{"a", "b", "c", "add"}, {"b", "c"}, {"conv", "bn", "relu", "add", "relu"}});
  CHECK(fused({"a", "b", "c", "conv", "bn", "relu", "add", "relu"}, {{0, 1}, {1, 2}, {2, 6}, {3, 4}, {4, 5}, {5, 6}, {6, 7}}, again) ==
        "0 1+2 3+4+5+6+7");
}

TEST_CASE("kinds of ONNX and of the zoo are the same operator types") {
  using coarsen::operator_types;
  using types = std::vector<std::string>;
  CHECK(operator_types("BatchNormalization") == types{"bn"});
  CHECK(operator_types("Gemm") == types{"matmul"});
  CHECK(operator_types("linear") == operator_types("MatMul"));
  CHECK(operator_types("LayerNormalization") == operator_types("norm"));
  CHECK(operator_types("conv_bn") == types{"conv", "bn"});
  CHECK(operator_types("conv_bn+Relu") == types{"conv", "bn", "relu"});
  CHECK(operator_types("Leaky-ReLU") == types{"leakyrelu"});
  CHECK(operator_types("").empty());
  CHECK(operator_types("+").empty());
  CHECK(fused_chain({"Conv", "BatchNormalization", "Relu"}, coarsen::tensorrt_like()) == "0+1+2");
  CHECK(fused_chain({"Gemm", "Gelu", "", "Softmax"}, coarsen::onednn_like()) == "0+1 2 3");
  CHECK(fused_chain({"Div", "Erf", "Add", "Mul", "Mul"}, coarsen::tensorrt_like()) == "0+1+2+3+4");
  fusion_rules mine = coarsen::no_fusion();
  mine.aliases.push_back({"mykernel", {"conv", "bn"}});
  mine.rules = {{"my_kernel", "relu"}};
  CHECK(fused_chain({"conv", "bn", "relu"}, mine) == "0+1+2");
  CHECK(fused_chain({"MyKernel", "relu", "relu"}, mine) == "0+1 2");
}

TEST_CASE("the types of a rule are one list, however layers are cut") {
  const fusion_rules rules = rules_of({{"conv", "bn", "add"}});
  CHECK(fused_chain({"conv_bn", "add"}, rules) == "0+1");
  CHECK(fused_chain({"conv", "bn+add"}, rules) == "0+1");
  CHECK(fused_chain({"conv", "bn+add+relu"}, rules) == "0 1");
}

TEST_CASE("the rules that ship have two types each and none twice") {
  for (const fusion_rules& rules : {coarsen::tensorrt_like(), coarsen::onednn_like()}) {
    INFO(rules.name);
    CHECK(std::set<std::vector<std::string>>(rules.rules.begin(), rules.rules.end()).size() == rules.rules.size());
    CHECK(coarsen::detail::rules_as_types(rules) == rules.rules);  // rules are types already
  }
  CHECK(coarsen::no_fusion().rules.empty());
}

TEST_CASE("a rule of one operator or with an empty kind is refused") {
  CHECK_THROWS_AS(fused_chain({"a"}, rules_of({{"a"}})), invalid_input);
  CHECK_THROWS_AS(fused_chain({"a"}, rules_of({{}})), invalid_input);
  CHECK_THROWS_WITH(fused_chain({"a"}, rules_of({{"a", "b"}, {"a", ""}})), Catch::Contains("rule 1"));
}

TEST_CASE("a layer that one layer cannot hold together with the others stays apart") {
  planning_graph_builder b("toy");
  const auto add = [&](const char* name, const char* kind, double weight, bool trainable, const char* group) {
    return b.add_layer(
        {.name = name, .kind = kind, .forward_flops = flops(1), .weight = bytes(weight), .trainable = trainable, .weight_group = group});
  };
  const layer_id all[] = {add("tied0", "conv", 4, true, "g"), add("bn0", "bn", 1, true, ""),      add("conv1", "conv", 4, true, ""),
                          add("bn1", "bn", 1, false, ""),     add("tied2", "conv", 4, true, "g"), add("bn2", "bn", 0, true, ""),
                          add("conv3", "conv", 4, true, ""),  add("bn3", "bn", 2, true, "")};
  for (int i = 1; i < 8; ++i) b.add_edge(all[i - 1], all[i], bytes(1));
  const planning_graph model = std::move(b).build();
  const blocks fused_blocks = fuse_operators(model, table_1());
  CHECK(text_of(fused_blocks) == "0 1 2 3 4+5 6+7");
  const planning_graph g = fused_graph(model, fused_blocks, table_1());
  CHECK(g.parameters() == model.parameters());
  CHECK(g[layer_id(4)].weight_group == g[layer_id(0)].weight_group);
  CHECK(g[layer_id(5)].weight == bytes(6));
  const blocks whole{{{layer_id(0), layer_id(1)}, {layer_id(2)}, {layer_id(3)}, {layer_id(4)}, {layer_id(5)}, {layer_id(6)}, {layer_id(7)}},
                     {0, 0, 1, 2, 3, 4, 5, 6}};
  CHECK_THROWS_WITH(fused_graph(model, whole, table_1()), Catch::Contains("weight group"));
}

TEST_CASE("blocks of random graphs are paths that match a rule, convex and acyclic") {
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 400; ++seed) {
    CAPTURE(seed);
    test::random_source random(seed);
    const int alphabet = random.integer(1, 4), size = random.integer(1, 30);
    const fusion_rules rules = random_rules(random, alphabet);
    const double density = random.between(0, 3.0 / size);
    std::vector<std::pair<int, int>> edges;
    for (int u = 0; u < size; ++u) {
      for (int v = u + 1; v < size; ++v) {
        if (random.chance(v == u + 1 ? 0.6 : density)) edges.emplace_back(u, v);
      }
    }
    const planning_graph model = build(letters(random, size, alphabet), edges);
    const blocks b = fuse_operators(model, rules);
    check_blocks(model, rules, b);
    const planning_graph g = fused_graph(model, b, rules);
    CHECK(g.size() == b.size());
    CHECK(g.forward_flops() == model.forward_flops());
    CHECK(text_of(fuse_operators(model, coarsen::no_fusion())) == text_of(coarsen::each_layer(model)));
  }
}

TEST_CASE("on a chain the answer is the longest match from the left") {
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 300; ++seed) {
    CAPTURE(seed);
    test::random_source random(seed);
    const int alphabet = random.integer(1, 3);
    const fusion_rules rules = random_rules(random, alphabet);
    const std::vector<std::string> kinds = letters(random, random.integer(1, 25), alphabet);
    std::string expected;
    for (std::size_t i = 0; i < kinds.size();) {
      std::size_t length = 1;
      for (const auto& rule : rules.rules) {
        if (rule.size() <= kinds.size() - i && std::equal(rule.begin(), rule.end(), kinds.begin() + static_cast<std::ptrdiff_t>(i))) {
          length = std::max(length, rule.size());
        }
      }
      for (std::size_t m = 0; m < length; ++m) expected += (m > 0 ? "+" : i > 0 ? " " : "") + std::to_string(i + m);
      i += length;
    }
    CHECK(fused_chain(kinds, rules) == expected);
  }
}

TEST_CASE("an operator is looked at a bounded number of times, however large the graph and however many branches meet") {
  for (const int branches : {1, 2, 50}) {
    for (const int size : {100, 1000, 10000}) {
      CAPTURE(branches, size);
      test::random_source random(test::first_seed());
      const fusion_rules rules = random_rules(random, 2);
      // Repeated joins of chains of up to six operators each.
      std::vector<std::pair<int, int>> edges;
      int at = 1;
      for (int join = 0; at < size;) {
        std::vector<int> ends;
        for (int branch = 0; branch < branches; ++branch) {
          int before = join;
          for (int i = random.integer(1, 6); i > 0; --i, ++at) edges.emplace_back(std::exchange(before, at), at);
          ends.push_back(before);
        }
        for (const int end : ends) edges.emplace_back(end, at);
        join = at++;
      }
      const planning_graph model = build(letters(random, at, 2), edges);
      coarsen::detail::operator_fusion fusion(model, rules);
      fusion.run();
      CHECK(fusion.looks() <= static_cast<long long>(model.edges().size() + 2 * model.size() * (longest(rules) + 1)));
    }
  }
}

TEST_CASE("a fused layer has what its members had, less the traffic that stays inside") {
  planning_graph_builder b("toy", 2, 7);
  const auto conv = b.add_layer({.name = "c",
                                 .kind = "Conv",
                                 .forward_flops = flops(100),
                                 .backward_input_flops = flops(90),
                                 .backward_weight_flops = flops(80),
                                 .weight = bytes(40),
                                 .weight_traffic = bytes(20),
                                 .activation = bytes(8),
                                 .activation_for_weights = bytes(3)});
  const auto skip = b.add_layer({.name = "s", .kind = "Slice", .forward_flops = flops(1), .traffic = bytes(5)});
  const auto bn = b.add_layer({.name = "n",
                               .kind = "BatchNormalization",
                               .forward_flops = flops(10),
                               .weight = bytes(4),
                               .activation = bytes(6),
                               .backward_traffic = bytes(200)});
  const auto add = b.add_layer({.name = "p", .kind = "Add", .forward_flops = flops(2), .kv_bytes_per_token = bytes(9)});
  const auto left = b.add_layer({.name = "l", .kind = "Softmax", .forward_flops = flops(0)});
  const auto right = b.add_layer({.name = "r", .kind = "TopK", .forward_flops = flops(0)});
  b.add_edge(conv, bn, bytes(30), bytes(31));
  b.add_edge(bn, add, bytes(50));
  b.add_edge(skip, add, bytes(7), bytes(0));
  b.add_edge(add, left, bytes(60));
  b.add_edge(add, right, bytes(70));
  const planning_graph model = std::move(b).build();
  const fusion_rules rules = rules_of({{"conv", "bn", "add"}});
  const blocks fused_blocks = fuse_operators(model, rules);
  REQUIRE(text_of(fused_blocks) == "1 0+2+3 4 5");
  const planning_graph g = fused_graph(model, fused_blocks, rules);
  const layer& l = g[layer_id(1)];
  CHECK(g.name() == "toy");
  CHECK(g.bytes_per_parameter() == 2);
  CHECK(g.tokens_per_sample() == 7);
  CHECK(l.name == "c+n+p");
  CHECK(l.kind == "conv+bn+add");
  CHECK(l.forward_flops == flops(112));
  CHECK(l.backward_input_flops == flops(102));
  CHECK(l.backward_weight_flops == flops(90));
  CHECK(l.weight == bytes(44));
  CHECK(l.weight_traffic == bytes(24));
  CHECK(l.activation == bytes(14));
  CHECK(l.activation_for_weights == bytes(9));
  CHECK(l.kv_bytes_per_token == bytes(9));
  CHECK(l.traffic == bytes(7 + 70));  // 30 written; 30 read, 50 written; 57 read, 70 written; 30 + 30 + 50 + 50 stay inside
  CHECK(l.backward_traffic == bytes(7 + 70 + (200 - 80)));
  REQUIRE(g.edges().size() == 3);
  CHECK(g.edges()[0] == layer_edge{layer_id(0), layer_id(1), bytes(7), bytes(0)});
  CHECK(g.edges()[1] == layer_edge{layer_id(1), layer_id(2), bytes(60), bytes(60)});
  CHECK(g[layer_id(0)] == [&] {
    layer same = model[layer_id(1)];
    same.id = layer_id(0);
    return same;
  }());
}

TEST_CASE("a fused layer launches one kernel for the first calls of its members, and has the degrees that all of them allow") {
  const auto fused_of = [](std::vector<layer_spec> layers) {
    planning_graph_builder b("toy", 2, 4);
    blocks one{{{}}, {}};
    for (layer_spec& l : layers) {
      l.name = std::to_string(one.block_of.size());
      l.kind = "conv";
      if (!l.forward_flops) l.forward_flops = flops{};
      one.layers[0].push_back(b.add_layer(std::move(l)));
      one.block_of.push_back(0);
      if (one.block_of.size() > 1) b.add_edge(layer_id(one.block_of.size() - 2), layer_id(one.block_of.size() - 1), bytes(1));
    }
    const planning_graph model = std::move(b).build();
    return fused_graph(model, one, coarsen::no_fusion())[layer_id(0U)];
  };
  CHECK(fused_of({{.name = "", .calls = 1}, {.name = "", .calls = 1}, {.name = "", .calls = 1}}).calls == 1);
  CHECK(fused_of({{.name = "", .calls = 0}, {.name = "", .calls = 3}, {.name = "", .calls = 2}}).calls == 4);
  CHECK(fused_of({{.name = "", .calls = 0}, {.name = "", .calls = 0}}).calls == 0);
  CHECK(fused_of({{}, {}}).degrees.empty());
  CHECK(fused_of({{}, {.name = "", .degrees = {1, 2, 4}}, {}}).degrees == std::vector{1, 2, 4});
  CHECK(fused_of({{.name = "", .degrees = {2, 3}}, {.name = "", .degrees = {2, 4}}}).degrees == std::vector{2});
  CHECK(fused_of({{.name = "", .degrees = {3}}, {.name = "", .degrees = {2}}}).degrees == std::vector{1});
  // Rows: 6 FLOP at 3 and 4 at 1 take the (h) time of 10 at 10 / (6/3 + 4/1).
  CHECK(fused_of({{.name = "", .forward_flops = flops(6), .rows = 3}, {.name = "", .forward_flops = flops(4), .rows = 1}}).rows ==
        Approx(10.0 / 6));
  CHECK(fused_of({{.name = "", .forward_flops = flops(6)}, {.name = "", .forward_flops = flops(4)}}).rows == 4);
  CHECK(fused_of({{.name = "", .rows = 3}, {}}).rows == 3);
}

TEST_CASE("a tensor that also leaves its block is still written, and crosses once for each block") {
  const auto model = [] {
    planning_graph_builder b("toy");
    for (const char* name : {"0", "1", "2", "3", "4"}) b.add_layer({.name = name, .kind = "mul", .forward_flops = flops(1)});
    b.add_edge("0", "1", bytes(10));
    b.add_edge("0", "2", bytes(8));
    b.add_edge("0", "3", bytes(6));
    b.add_edge("1", "3", bytes(5));
    b.add_edge("1", "4", bytes(3));
    b.add_edge("2", "4", bytes(20));
    return std::move(b).build();
  }();
  const blocks given{{{layer_id(0), layer_id(1)}, {layer_id(2)}, {layer_id(3), layer_id(4)}}, {0, 0, 1, 2, 2}};
  const planning_graph g = fused_graph(model, given, coarsen::no_fusion());
  REQUIRE(g.edges().size() == 3);
  CHECK(g.edges()[0].forward == bytes(8));
  CHECK(g.edges()[1].forward == bytes(6 + 5));  // two tensors; of the second the larger part
  CHECK(g.edges()[2].forward == bytes(20));
  CHECK(g[layer_id(0)].traffic == bytes(10 + 5));          // 10 + (10 + 5), 10 not read
  CHECK(g[layer_id(2)].traffic == bytes(6 + 5 + 3 + 20));  // nothing stays inside
}

TEST_CASE("a model without a fusion stays the same model") {
  for (const auto& name : {"resnet50", "gpt2", "bert-small"}) {
    const planning_graph model = zoo::model(name, {});
    CHECK(fused_graph(model, fuse_operators(model, coarsen::no_fusion()), coarsen::no_fusion()) == model);
  }
}

TEST_CASE("fusing the models of the zoo keeps their sizes and never costs time") {
  for (const auto& name : zoo::model_names()) {
    const planning_graph model = zoo::model(name, {});
    for (const fusion_rules& rules : {coarsen::tensorrt_like(), coarsen::onednn_like()}) {
      CAPTURE(name, rules.name);
      const blocks b = fuse_operators(model, rules);
      const planning_graph g = fused_graph(model, b, rules);
      if (!name.starts_with("gemma3")) CHECK(g.size() < model.size());  // its norms stand between products and sums
      CHECK(g.parameters() == Approx(model.parameters()).epsilon(1e-12));
      CHECK(g.forward_flops().value() == Approx(model.forward_flops().value()).epsilon(1e-12));
      CHECK(fused_graph(g, fuse_operators(g, rules), rules).size() <= g.size());
      const device d = zoo::find_device("jetson-tx2").device;
      for (std::size_t i = 0; i < b.size(); ++i) {
        double apart_s = 0;
        for (const layer_id l : b.layers[i]) apart_s += roofline{}.time({model[l]}, d).value();
        CHECK(roofline{}.time({g[layer_id(i)]}, d).value() <= apart_s * (1 + 1e-12));
      }
    }
  }
  const planning_graph resnet = zoo::model("resnet50", {});
  CHECK(resnet.size() == 73);
  CHECK(fuse_operators(resnet, coarsen::tensorrt_like()).size() == 57);  // 16 residual sums join a convolution each
}

TEST_CASE("a fused profile is the sum of the members less the saved traffic, and no shorter than the longest member") {
  planning_graph_builder b("toy");
  b.add_layer({.name = "c",
               .kind = "conv",
               .profiles = {{.device_kind = "fast", .batch = {1, 4}, .forward_s = {1, 4}, .backward_s = {2, 8}},
                            {.device_kind = "slow", .batch = {1}, .forward_s = {9}, .backward_s = {}}}});
  b.add_layer({.name = "n",
               .kind = "bn",
               .profiles = {{.device_kind = "slow", .batch = {2}, .forward_s = {3}, .backward_s = {1}},
                            {.device_kind = "fast", .batch = {2, 8}, .forward_s = {1, 2}, .backward_s = {3, 3}}}});
  b.add_edge("c", "n", bytes(10));
  const planning_graph model = std::move(b).build();
  const blocks both = fuse_operators(model, table_1());
  REQUIRE(both.size() == 1);
  const auto profile = [&](const char* kind, std::span<const device> devices) {
    return *fused_graph(model, both, table_1(), devices)[layer_id(0)].profile_for(kind);
  };
  using numbers = std::vector<double>;
  const layer_profile sum = profile("fast", {});
  CHECK(sum.batch == numbers{1, 2, 4, 8});
  CHECK(sum.forward_s == numbers{1 + 1, 2 + 1, 4 + 1 + 1.0 / 3, 8 + 2});
  CHECK(sum.backward_s == numbers{2 + 3, 4 + 3, 8 + 3, 16 + 3});
  CHECK(profile("slow", {}).forward_s == numbers{12, 12});
  CHECK(profile("slow", {}).backward_s.empty());
  // 20 bytes a sample are saved, 0.2 s by the faster memory of two devices.
  const std::vector<device> two{{.name = "x", .kind = "fast", .memory = 1_GB, .memory_bandwidth = bytes_per_second(50)},
                                {.name = "y", .kind = "fast", .memory = 1_GB, .memory_bandwidth = bytes_per_second(100)}};
  const numbers less = profile("fast", two).forward_s;
  REQUIRE(less.size() == 4);
  CHECK(less[0] == Approx(2 - 0.2));
  CHECK(less[1] == Approx(3 - 0.4));
  CHECK(less[2] == Approx(5 + 1.0 / 3 - 0.8));
  CHECK(less[3] == Approx(less[2] + 4));  // 10 - 1.6 would rise more slowly than the convolution alone
  const std::vector<device> starved{{.name = "fast", .memory = 1_GB, .memory_bandwidth = bytes_per_second(1)}};
  CHECK(profile("fast", starved).forward_s == numbers{1, 2, 4, 8});
}

TEST_CASE("a fused time lies between its longest member and their sum at any batch size") {
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 200; ++seed) {
    CAPTURE(seed);
    test::random_source random(seed);
    planning_graph_builder b("toy");
    const int members = random.integer(2, 4);
    fusion_rules rules = rules_of({{}});
    for (int m = 0; m < members; ++m) {
      layer_profile p{.device_kind = "k", .batch = {}, .forward_s = {}, .backward_s = {}};
      double batch = random.integer(1, 3), s = random.between(0, 2);
      for (int i = random.integer(1, 4); i > 0; --i) {
        p.batch.push_back(batch);
        p.forward_s.push_back(s);
        batch += random.integer(1, 5);
        s += random.between(0, 2);
      }
      b.add_layer({.name = std::to_string(m), .kind = "op", .profiles = {p}});
      if (m > 0) b.add_edge(layer_id(m - 1), layer_id(m), bytes(1));
      rules.rules[0].emplace_back("op");
    }
    const planning_graph model = std::move(b).build();
    const device d{.name = "d", .kind = "k", .memory = 1_GB, .memory_bandwidth = bytes_per_second(random.between(0.5, 50))};
    const planning_graph g = fused_graph(model, fuse_operators(model, rules), rules, std::span(&d, 1));
    REQUIRE(g.size() == 1);
    for (const double batch : {1.0, 1.5, 2.0, 3.0, 5.0, 9.0, 20.0, 1000.0}) {
      double sum = 0, most = 0;
      for (const layer& l : model.layers()) {
        const double s = profiled{}.time({l, phase::forward, batch}, d).value();
        sum += s;
        most = std::max(most, s);
      }
      const double s = profiled{}.time({g[layer_id(0)], phase::forward, batch}, d).value();
      CHECK(s >= most * (1 - 1e-12));
      CHECK(s <= sum * (1 + 1e-12));
    }
  }
}

TEST_CASE("names of fused layers stay short and their own") {
  planning_graph_builder b("toy");
  const std::string long_name(150, 'x');
  for (const std::string& name : {std::string("a"), std::string("b"), std::string("a+b"), long_name, long_name + "y"}) {
    b.add_layer({.name = name, .kind = "mul", .forward_flops = flops(1)});
  }
  const planning_graph model = std::move(b).build();
  const blocks given{{{layer_id(0), layer_id(1)}, {layer_id(2)}, {layer_id(3), layer_id(4)}}, {0, 0, 1, 2, 2}};
  const planning_graph g = fused_graph(model, given, coarsen::no_fusion());
  CHECK(g[layer_id(0)].name == "a+b#2");
  CHECK(g[layer_id(1)].name == "a+b");
  CHECK(g[layer_id(2)].name == long_name + "+1 more");
}

TEST_CASE("blocks of another model, or against its edges, are refused") {
  const planning_graph model = build({"a", "a", "a"}, {{0, 1}, {1, 2}});
  const auto refused = [&](const blocks& b) { CHECK_THROWS_AS(fused_graph(model, b, coarsen::no_fusion()), invalid_input); };
  refused({});
  refused({{{layer_id(0)}, {layer_id(1)}}, {0, 1}});
  refused({{{layer_id(0)}, {layer_id(1)}, {layer_id(2)}, {}}, {0, 1, 2}});
  refused({{{layer_id(0)}, {layer_id(1)}, {layer_id(2), layer_id(2)}}, {0, 1, 2}});
  refused({{{layer_id(1)}, {layer_id(0)}, {layer_id(2)}}, {0, 1, 2}});
  refused({{{layer_id(1)}, {layer_id(0)}, {layer_id(2)}}, {1, 0, 2}});  // 0 has no inputs but comes second
  refused({{{layer_id(0), layer_id(2)}, {layer_id(1)}}, {0, 1, 0}});    // a cycle
}

}  // namespace test_fuse
