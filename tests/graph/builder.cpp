// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/graph/planning_graph.hpp>

#include "support/message_of.hpp"

using namespace hetplan;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

layer_spec plain(std::string name) { return {.name = std::move(name), .forward_flops = 1_GFLOP}; }

/// Returns the message of the invalid_input that the steps cause.
std::string refusal(const std::function<void(planning_graph_builder&)>& steps) {
  return test::message_of([&] {
    planning_graph_builder b("toy");
    steps(b);
    static_cast<void>(std::move(b).build());
  });
}
std::string layer_refusal(const layer_spec& spec) {
  return refusal([&](planning_graph_builder& b) { b.add_layer(spec); });
}

planning_graph one_layer(layer_spec spec) {
  planning_graph_builder b("toy");
  b.add_layer(std::move(spec));
  return std::move(b).build();
}

}  // namespace

TEST_CASE("a model has at least one layer, and every layer a name of its own") {
  using builder = planning_graph_builder;
  CHECK(refusal([](builder&) {}) == R"(model "toy": a model has at least one layer)");
  CHECK(layer_refusal(plain("")) == R"(model "toy": a layer has an empty name)");
  CHECK(refusal([](builder& b) {
          b.add_layer(plain("a"));
          b.add_layer(plain("a"));
        }) == R"(model "toy": layer "a" appears twice)");
}

TEST_CASE("a model's own numbers are checked before any layer") {
  CHECK_THROWS_MATCHES(planning_graph_builder("m", 0), invalid_input,
                       Catch::Message("model \"m\": bytes_per_parameter = 0; expected a finite number > 0"));
  CHECK_THROWS_MATCHES(planning_graph_builder("m", inf), invalid_input,
                       Catch::Message("model \"m\": bytes_per_parameter = inf; expected a finite number > 0"));
  CHECK_THROWS_MATCHES(planning_graph_builder("m", not_a_number), invalid_input,
                       Catch::Message("model \"m\": bytes_per_parameter = nan; expected a finite number > 0"));
  CHECK_THROWS_MATCHES(planning_graph_builder("m", 4, 0), invalid_input,
                       Catch::Message("model \"m\": tokens_per_sample = 0; expected an integer >= 1"));
}

TEST_CASE("every amount of a layer is finite and not negative, and the message names layer, field and value") {
  const std::vector<std::pair<std::string, std::function<void(layer_spec&, double)>>> fields{
      {"forward_flops", [](layer_spec& s, double v) { s.forward_flops = flops(v); }},
      {"backward_input_flops", [](layer_spec& s, double v) { s.backward_input_flops = flops(v); }},
      {"backward_weight_flops", [](layer_spec& s, double v) { s.backward_weight_flops = flops(v); }},
      {"weight", [](layer_spec& s, double v) { s.weight = bytes(v); }},
      {"weight_traffic", [](layer_spec& s, double v) { s.weight_traffic = bytes(v); }},
      {"activation", [](layer_spec& s, double v) { s.activation = bytes(v); }},
      {"activation_for_weights", [](layer_spec& s, double v) { s.activation_for_weights = bytes(v); }},
      {"traffic", [](layer_spec& s, double v) { s.traffic = bytes(v); }},
      {"backward_traffic", [](layer_spec& s, double v) { s.backward_traffic = bytes(v); }},
      {"kv_bytes_per_token", [](layer_spec& s, double v) { s.kv_bytes_per_token = bytes(v); }}};
  for (const auto& [field, set] : fields) {
    for (const double bad : {-1.0, inf, not_a_number}) {
      layer_spec s = plain("a");
      set(s, bad);
      CHECK(layer_refusal(s) == R"(model "toy": layer "a" )" + field + " = " + to_text(bad) + "; expected a finite number >= 0");
    }
    layer_spec s = plain("a");
    set(s, 0);
    CHECK(layer_refusal(s) == "no error");
  }
}

TEST_CASE("layers of a block follow each other, and temporary memory is not negative") {
  const auto blocks = [](std::vector<std::optional<int>> of) {
    return refusal([&](planning_graph_builder& b) {
      for (std::size_t i = 0; i < of.size(); ++i) {
        layer_spec l = plain(std::string(1, "abcd"[i]));
        l.block = of[i];
        b.add_layer(l);
      }
    });
  };
  CHECK(blocks({0, 0, {}, 1}) == "no error");
  CHECK(blocks({1, 0, 0, {}}) == "no error");
  CHECK(blocks({0, {}, 0}) ==
        R"(model "toy": layer "b" is between layers "a" and "c" of block 0; expected layers of a block that follow each other)");
  CHECK(blocks({-1}) == R"(model "toy": layer "a" block = -1; expected an integer >= 0)");
  layer_spec l = plain("a");
  l.scratch = bytes(-1);
  CHECK(layer_refusal(l) == R"(model "toy": layer "a" scratch = -1; expected a finite number >= 0)");
  l = plain("a");
  l.forward_activation = bytes(inf);
  CHECK(layer_refusal(l) == R"(model "toy": layer "a" forward_activation = inf; expected a finite number >= 0)");
}

TEST_CASE("a product has as many rows as a sample has tokens unless more or fewer are told") {
  const auto rows_of = [](layer_spec s) {
    planning_graph_builder b("toy", 4, 8);
    b.add_layer(std::move(s));
    return std::move(b).build().layers().front().rows;
  };
  layer_spec tower = plain("a");
  tower.sequence.per = layer_scope::request;
  CHECK(rows_of(plain("a")) == 8);
  CHECK(rows_of(tower) == 1);
  tower.rows = 1500;
  CHECK(rows_of(tower) == 1500);
  for (const double bad : {0.0, -1.0, inf, not_a_number}) {
    tower.rows = bad;
    CHECK(layer_refusal(tower) == R"(model "toy": layer "a" rows = )" + to_text(bad) + "; expected a finite number > 0");
  }
}

TEST_CASE("the weight part of a backward needs all activations unless less is said, and never more") {
  CHECK(one_layer({.name = "a", .forward_flops = 1_FLOP, .activation = 5_B}).layers().front().activation_for_weights == 5_B);
  CHECK(one_layer({.name = "a", .forward_flops = 1_FLOP, .activation = 5_B, .activation_for_weights = 2_B})
            .layers()
            .front()
            .activation_for_weights == 2_B);
  CHECK(layer_refusal({.name = "a", .forward_flops = 1_FLOP, .activation = 5_B, .activation_for_weights = 6_B}) ==
        R"(model "toy": layer "a" activation_for_weights = 6; expected at most the layer's activation)");
}

TEST_CASE("a layer's time is known from FLOP or from a profile") {
  CHECK(layer_refusal({.name = "a"}) == R"(model "toy": layer "a" needs forward_flops or a profile)");
  CHECK(layer_refusal({.name = "a", .profiles = {{"phone", {1}, {0.5}, {}}}}) == "no error");
}

TEST_CASE("a profile has ascending batches from 1 and as many finite times") {
  const auto with = [](layer_profile p) { return layer_refusal({.name = "a", .forward_flops = 1_GFLOP, .profiles = {std::move(p)}}); };
  const std::string at = R"(model "toy": layer "a" profile "phone" )";
  CHECK(with({"phone", {1, 2.5, 8}, {0, 1, 1}, {1, 0, 2}}) == "no error");
  CHECK(with({"phone", {1}, {1}, {}}) == "no error");
  CHECK(with({"phone", {}, {}, {}}) == at + "has no entry");
  CHECK(with({"phone", {1, 2}, {1}, {}}) == at + "forward has another length than batch");
  CHECK(with({"phone", {1, 2}, {1, 2}, {1}}) == at + "backward has another length than batch");
  CHECK(with({"phone", {0.5}, {1}, {}}) == at + "batch = 0.5; expected a number >= 1");
  CHECK(with({"phone", {not_a_number}, {1}, {}}) == at + "batch = nan; expected a number >= 1");
  CHECK(with({"phone", {1, inf}, {1, 2}, {}}) == at + "batch = inf; expected a number >= 1");
  CHECK(with({"phone", {2, 2}, {1, 2}, {}}) == at + "batch = 2; expected ascending sizes");
  CHECK(with({"phone", {4, 2}, {1, 2}, {}}) == at + "batch = 2; expected ascending sizes");
  CHECK(with({"phone", {1}, {-1}, {}}) == at + "forward = -1; expected finite seconds >= 0");
  CHECK(with({"phone", {1}, {inf}, {}}) == at + "forward = inf; expected finite seconds >= 0");
  CHECK(with({"phone", {1}, {1}, {not_a_number}}) == at + "backward = nan; expected finite seconds >= 0");
}

TEST_CASE("a layer has at most one profile for a kind") {
  const layer_profile phone{"phone", {1}, {1}, {}}, laptop{"laptop", {1}, {1}, {}};
  CHECK(layer_refusal({.name = "a", .profiles = {phone, laptop}}) == "no error");
  CHECK(layer_refusal({.name = "a", .profiles = {phone, laptop, phone}}) == R"(model "toy": layer "a" profile "phone" appears twice)");
}

TEST_CASE("an edge joins two different added layers once, with amounts that are finite and not negative") {
  const auto with = [](const std::function<void(planning_graph_builder&)>& edges) {
    return refusal([&](planning_graph_builder& b) {
      b.add_layer(plain("a"));
      b.add_layer(plain("b"));
      edges(b);
    });
  };
  using builder = planning_graph_builder;
  const layer_id a(0), b(1);
  const std::string ab = R"(model "toy": edge "a" -> "b" )";
  CHECK(with([&](builder& g) { g.add_edge(a, b, 0_B, 0_B); }) == "no error");
  CHECK(with([&](builder& g) { g.add_edge(a, layer_id(2), 1_B); }) == R"(model "toy": an edge names a layer that was not added)");
  CHECK(with([&](builder& g) { g.add_edge(layer_id{}, b, 1_B); }) == R"(model "toy": an edge names a layer that was not added)");
  CHECK(with([&](builder& g) { g.add_edge("a", "x", 1_B); }) == R"(model "toy" has no layer "x")");
  CHECK(with([&](builder& g) { g.add_edge(a, a, 1_B); }) == R"(model "toy": edge "a" -> "a" joins a layer to itself)");
  CHECK(with([&](builder& g) {
          g.add_edge(a, b, 1_B);
          g.add_edge("a", "b", 2_B);
        }) == ab + "appears twice");
  CHECK(with([&](builder& g) { g.add_edge(a, b, bytes(-2)); }) == ab + "bytes = -2; expected a finite number >= 0");
  CHECK(with([&](builder& g) { g.add_edge(a, b, bytes(inf)); }) == ab + "bytes = inf; expected a finite number >= 0");
  CHECK(with([&](builder& g) { g.add_edge(a, b, 1_B, bytes(not_a_number)); }) == ab + "gradient = nan; expected a finite number >= 0");
}

TEST_CASE("a cycle is refused with one of its own edges") {
  // in -> a -> b -> c -> a, and c -> out: only three edges are on the cycle.
  const std::string message = refusal([](planning_graph_builder& b) {
    for (const char* name : {"in", "a", "b", "c", "out"}) b.add_layer(plain(name));
    b.add_edge("in", "a", 1_B);
    b.add_edge("a", "b", 1_B);
    b.add_edge("b", "c", 1_B);
    b.add_edge("c", "a", 1_B);
    b.add_edge("c", "out", 1_B);
  });
  const std::vector<std::string> on_it{R"("a" -> "b")", R"("b" -> "c")", R"("c" -> "a")"};
  CHECK(std::any_of(on_it.begin(), on_it.end(),
                    [&](const std::string& edge) { return message == R"(model "toy": edge )" + edge + " is on a cycle"; }));
  CHECK(refusal([](planning_graph_builder& b) {
          b.add_layer(plain("a"));
          b.add_layer(plain("b"));
          b.add_edge("a", "b", 1_B);
          b.add_edge("b", "a", 1_B);
        }).find("is on a cycle") != std::string::npos);
}

TEST_CASE("layers that share a weight group agree in weight and trainable") {
  const auto two = [](layer_spec second) {
    return refusal([&](planning_graph_builder& b) {
      b.add_layer({.name = "a", .forward_flops = 1_GFLOP, .weight = 4_MB, .weight_group = "tied"});
      b.add_layer(std::move(second));
    });
  };
  const std::string message = R"(model "toy": layers "a" and "b" share weight_group "tied" but differ in weight or trainable)";
  CHECK(two({.name = "b", .forward_flops = 2_GFLOP, .weight = 4_MB, .weight_group = "tied"}) == "no error");
  CHECK(two({.name = "b", .forward_flops = 1_GFLOP, .weight = 5_MB, .weight_group = "other"}) == "no error");
  CHECK(two({.name = "b", .forward_flops = 1_GFLOP, .weight = 5_MB, .weight_group = "tied"}) == message);
  CHECK(two({.name = "b", .forward_flops = 1_GFLOP, .weight = 4_MB, .trainable = false, .weight_group = "tied"}) == message);
}

TEST_CASE("a layer's defaults follow from its forward, its weight and its edges") {
  planning_graph_builder b("toy");
  b.add_layer({.name = "in", .forward_flops = 1_GFLOP});
  b.add_layer({.name = "wide", .forward_flops = 3_GFLOP});
  b.add_layer({.name = "mid", .forward_flops = 2_GFLOP, .weight = 8_MB});
  b.add_layer({.name = "frozen", .forward_flops = 2_GFLOP, .weight = 8_MB, .trainable = false});
  b.add_layer({.name = "out", .forward_flops = 1_GFLOP});
  b.add_edge("in", "mid", 10_B);
  b.add_edge("wide", "mid", 20_B);
  b.add_edge("mid", "frozen", 5_B);
  b.add_edge("mid", "out", 7_B, 3_B);
  b.add_edge("frozen", "out", 1_B, 0_B);
  const planning_graph g = std::move(b).build();

  const layer& mid = g[g.find("mid")];
  CHECK(mid.backward_input_flops == 2_GFLOP);
  CHECK(mid.backward_weight_flops == 2_GFLOP);
  CHECK(mid.weight_traffic == 8_MB);
  CHECK(mid.traffic == 37_B);  // 10 + 20 in, the largest out 7
  CHECK(mid.backward_traffic == 37_B);
  CHECK(mid.largest_output == 7_B);
  CHECK(mid.trainable_weight() == 8_MB);
  CHECK(mid.weight_group == -1);
  CHECK(mid.activation == 0_B);
  CHECK(mid.kv_bytes_per_token == 0_B);
  CHECK(mid.has_flops);
  const layer& frozen = g[g.find("frozen")];
  CHECK(frozen.backward_input_flops == 2_GFLOP);
  CHECK(frozen.backward_weight_flops == flops{});
  CHECK(frozen.trainable_weight() == 0_B);
  CHECK(frozen.traffic == 6_B);
  CHECK(g[g.find("in")].backward_weight_flops == flops{});  // no weights
  CHECK(g[g.find("in")].traffic == 10_B);

  const auto out = g.out_edges(mid.id);
  REQUIRE(out.size() == 2);
  CHECK(out[0] == layer_edge{mid.id, frozen.id, 5_B, 5_B});
  CHECK(out[1] == layer_edge{mid.id, g.find("out"), 7_B, 3_B});
  CHECK(g.out_edges(frozen.id)[0].gradient == 0_B);
}

TEST_CASE("what a layer states itself is kept") {
  const planning_graph g = one_layer({.name = "a",
                                      .kind = "attention",
                                      .forward_flops = 1_FLOP,
                                      .backward_input_flops = 2_FLOP,
                                      .backward_weight_flops = 0_FLOP,
                                      .weight = 4_B,
                                      .weight_traffic = 1_B,
                                      .weight_group = "g",
                                      .activation = 5_B,
                                      .activation_for_weights = 3_B,
                                      .traffic = 0_B,
                                      .backward_traffic = 7_B,
                                      .kv_bytes_per_token = 6_B,
                                      .profiles = {{"phone", {1, 2}, {3, 4}, {5, 6}}}});
  const layer& a = g.layers().front();
  CHECK(a.kind == "attention");
  CHECK(a.forward_flops == 1_FLOP);
  CHECK(a.backward_input_flops == 2_FLOP);
  CHECK(a.backward_weight_flops == 0_FLOP);
  CHECK(a.weight_traffic == 1_B);
  CHECK(a.weight_group == 0);
  CHECK(g.weight_groups().front() == "g");
  CHECK(a.activation == 5_B);
  CHECK(a.activation_for_weights == 3_B);
  CHECK(a.traffic == 0_B);
  CHECK(a.backward_traffic == 7_B);
  CHECK(a.kv_bytes_per_token == 6_B);
  REQUIRE(a.profile_for("phone") != nullptr);
  CHECK(a.profile_for("phone")->forward_s == std::vector<double>{3, 4});
  CHECK(a.profile_for("laptop") == nullptr);
}

TEST_CASE("a layer that only its profile knows counts as 0 FLOP") {
  const planning_graph g = one_layer({.name = "a", .weight = 4_B, .profiles = {{"phone", {1}, {1}, {}}}});
  const layer& a = g.layers().front();
  CHECK_FALSE(a.has_flops);
  CHECK(a.forward_flops == 0_FLOP);
  CHECK(a.backward_input_flops == 0_FLOP);
  CHECK(a.backward_weight_flops == 0_FLOP);
}

TEST_CASE("layers keep the order of the calls where it is topological already, else they are renumbered") {
  planning_graph_builder forward("toy");
  for (const char* name : {"c", "a", "b"}) forward.add_layer(plain(name));
  forward.add_edge("c", "b", 1_B);
  const planning_graph kept = std::move(forward).build();
  CHECK(kept.find("c") == layer_id(0));
  CHECK(kept.find("a") == layer_id(1));
  CHECK(kept.find("b") == layer_id(2));

  planning_graph_builder backward("toy");
  for (const char* name : {"c", "b", "a"}) backward.add_layer(plain(name));
  backward.add_edge("a", "b", 1_B);
  backward.add_edge("b", "c", 2_B);
  const planning_graph g = std::move(backward).build();
  for (std::size_t i = 0; i < 3; ++i) CHECK(g.layers()[i].id == layer_id(i));
  CHECK(g.layers()[0].name == "a");
  CHECK(g.layers()[2].name == "c");
  CHECK(g.edges()[0] == layer_edge{layer_id(0), layer_id(1), 1_B, 1_B});
  CHECK(g.edges()[1] == layer_edge{layer_id(1), layer_id(2), 2_B, 2_B});
}

TEST_CASE("parameters count a shared tensor once") {
  planning_graph_builder b("toy", 2);
  b.add_layer({.name = "embed", .forward_flops = 0_FLOP, .weight = 40_B, .weight_group = "tied"});
  b.add_layer({.name = "body", .forward_flops = 3_FLOP, .weight = 10_B});
  b.add_layer({.name = "head", .forward_flops = 4_FLOP, .weight = 40_B, .weight_group = "tied"});
  const planning_graph g = std::move(b).build();
  CHECK(g.parameters() == 25);  // (40 + 10) bytes, two per parameter
  CHECK(g.forward_flops() == 7_FLOP);
  CHECK(g[g.find("embed")].weight_group == g[g.find("head")].weight_group);
}

TEST_CASE("a built graph finds layers by name and says which model has none of that name") {
  const planning_graph g = one_layer(plain("a"));
  CHECK(g.name() == "toy");
  CHECK(g.contains("a"));
  CHECK_FALSE(g.contains("b"));
  CHECK(g.find("a") == layer_id(0));
  CHECK_THROWS_MATCHES(g.find("b"), invalid_input, Catch::Message(R"(model "toy" has no layer "b")"));
  CHECK(g.bytes_per_parameter() == 4);
  CHECK(g.tokens_per_sample() == 1);
}

TEST_CASE("graphs are equal where their contents are") {
  CHECK(one_layer(plain("a")) == one_layer(plain("a")));
  CHECK_FALSE(one_layer(plain("a")) == one_layer(plain("b")));
  CHECK_FALSE(one_layer(plain("a")) == one_layer({.name = "a", .forward_flops = 1_GFLOP, .weight = 1_B}));
}
