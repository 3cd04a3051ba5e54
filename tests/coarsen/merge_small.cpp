// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <hetplan/coarsen/merge_small.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/zoo/models.hpp>

#include "support/random_source.hpp"

using namespace hetplan;
using coarsen::merge_small;

namespace {

using groups_of_layers = std::vector<std::vector<int>>;

struct spec {
  double work = 1, weight = 0;
  std::string group = "";
};
struct tensor {
  int from, to;
  double forward;
};

planning_graph build(const std::vector<spec>& layers, const std::vector<tensor>& edges) {
  planning_graph_builder b("toy");
  for (const spec& s : layers) {
    b.add_layer({.name = "layer" + std::to_string(&s - layers.data()),
                 .forward_flops = flops(s.work),
                 .weight = bytes(s.weight),
                 .weight_group = s.group});
  }
  for (const tensor& e : edges) b.add_edge(layer_id(e.from), layer_id(e.to), bytes(e.forward));
  return std::move(b).build();
}

groups_of_layers layers_of(const coarsen::blocks& b) {
  groups_of_layers all;
  for (const auto& block : b.layers) {
    all.emplace_back();
    for (const layer_id l : block) all.back().push_back(l.value);
  }
  return all;
}

groups_of_layers merged(const planning_graph& model, double share) { return layers_of(merge_small(model, {.share = share})); }

/// Returns a random model: sparse or dense, with or without ties, weights, work and weight groups.
planning_graph random_model(test::random_source& random, int size) {
  const double density = random.chance(0.5) ? 2.0 / size : random.between(0.1, 0.6);
  const bool tied = random.chance(0.4), weights = random.chance(0.9), work = random.chance(0.9);
  const int largest = random.chance(0.5) ? 4 : 1000, most_bytes = random.chance(0.5) ? 3 : 1000;
  std::vector<spec> layers;
  for (int i = 0; i < size; ++i) {
    layers.push_back({work ? 1.0 * random.integer(0, largest) : 0, weights ? 4.0 * random.integer(0, largest) : 0});
    if (tied && weights && random.chance(0.4)) {
      const int group = random.integer(1, 3);
      layers.back().group = std::to_string(group);
      layers.back().weight = 8 * group;
    }
  }
  std::vector<tensor> edges;
  for (int u = 0; u < size; ++u) {
    for (int v = u + 1; v < size; ++v) {
      if (random.chance(v == u + 1 ? 0.7 : density)) edges.push_back({u, v, 1.0 * random.integer(0, most_bytes)});
    }
  }
  return build(layers, edges);
}

double random_share(test::random_source& random) { return random.chance(0.1) ? random.integer(0, 1) : random.between(0.05, 0.9); }

using labels = std::vector<std::size_t>;  // by layer: the smallest layer of its block

bool has_cycle(const planning_graph& model, const labels& of) {
  std::set<std::pair<std::size_t, std::size_t>> edges;
  for (const layer_edge& e : model.edges()) {
    if (of[e.from.index()] != of[e.to.index()]) edges.emplace(of[e.from.index()], of[e.to.index()]);
  }
  std::set<std::size_t> left(of.begin(), of.end());
  for (bool gone = true; gone;) {
    gone = false;
    for (auto b = left.begin(); b != left.end();) {
      const auto enters = [&](const auto& e) { return e.second == *b && left.contains(e.first); };
      const bool waits = std::any_of(edges.begin(), edges.end(), enters);
      gone = gone || !waits;
      b = waits ? std::next(b) : left.erase(b);
    }
  }
  return !left.empty();
}

/// Returns the parameter bytes and FLOP of a block, summed from scratch.
std::pair<double, double> size_of(const planning_graph& model, const labels& of, std::size_t block) {
  double weight = 0, work = 0;
  std::set<int> groups;
  for (const layer& l : model.layers()) {
    if (of[l.id.index()] != block) continue;
    work += l.forward_flops.value();
    if (l.weight_group < 0 || groups.insert(l.weight_group).second) weight += l.weight.value();
  }
  return {weight, work};
}

bool below(const planning_graph& model, const labels& of, std::size_t block, double share) {
  const auto [all_weight, all_work] = size_of(model, labels(model.size(), 0), 0);
  if (all_weight == 0 && all_work == 0) return false;  // without sizes, nothing is known to be small
  const auto [weight, work] = size_of(model, of, block);
  return (all_weight == 0 || weight < share * all_weight) && (all_work == 0 || work < share * all_work) && share > 0;
}

/// Returns the labels after the best allowed contraction, found by trying each; empty if there is none.
labels best_contraction(const planning_graph& model, const labels& of, double share) {
  std::map<std::pair<std::size_t, std::size_t>, std::map<std::size_t, double>> crossing;  // by pair: producer -> bytes
  std::map<std::size_t, std::set<std::size_t>> readers;                                   // producer -> other blocks
  for (const layer_edge& e : model.edges()) {
    const std::size_t u = of[e.from.index()], v = of[e.to.index()];
    if (u == v) continue;
    double& most = crossing[{std::min(u, v), std::max(u, v)}][e.from.index()];
    most = std::max(most, e.forward.value());
    readers[e.from.index()].insert(v);
  }
  labels best;
  std::pair<double, double> most(-1, -1);         // freed, total
  for (const auto& [pair, tensors] : crossing) {  // ascending: the first of equals stays
    std::pair<double, double> sum;
    for (const auto& [producer, crosses] : tensors) {
      if (readers[producer].size() == 1) sum.first += crosses;
      sum.second += crosses;
    }
    if (sum <= most) continue;
    labels after = of;
    std::replace(after.begin(), after.end(), pair.second, pair.first);
    if (!below(model, after, pair.first, share) || has_cycle(model, after)) continue;
    most = sum;
    best = after;
  }
  return best;
}

labels labels_of(const coarsen::blocks& b) {
  labels of;
  for (const std::size_t block : b.block_of) of.push_back(b.layers[block].front().index());
  return of;
}

void require_partition(const planning_graph& model, const coarsen::blocks& b) {
  REQUIRE(b.block_of.size() == model.size());
  std::vector<int> times(model.size(), 0);
  for (std::size_t k = 0; k < b.size(); ++k) {
    REQUIRE_FALSE(b.layers[k].empty());
    REQUIRE(std::is_sorted(b.layers[k].begin(), b.layers[k].end()));
    for (const layer_id l : b.layers[k]) {
      ++times[l.index()];
      REQUIRE(b.block_of[l.index()] == k);
    }
  }
  REQUIRE(times == std::vector<int>(model.size(), 1));
  for (const layer_edge& e : model.edges()) REQUIRE(b.block_of[e.from.index()] <= b.block_of[e.to.index()]);
}

bool has_layer_of(const planning_graph& model, const std::vector<layer_id>& block, const std::string& tower) {
  return std::any_of(block.begin(), block.end(), [&](layer_id l) { return model[l].name.rfind(tower, 0) == 0; });
}

}  // namespace

TEST_CASE("a tensor that another block reads too frees nothing: of a diamond the edges into the sink are contracted first") {
  const std::vector<spec> work{{1}, {4}, {4}, {1}};
  const std::vector<tensor> diamond{{0, 1, 10}, {0, 2, 20}, {1, 3, 5}, {2, 3, 5}};
  // 1-3 frees 5 and comes first. Then {1, 2, 3} would have 9, 0 -> {1, 3} has a path around it, and 0 -> 2 is left.
  CHECK(merged(build(work, diamond), 0.6) == groups_of_layers{{0, 2}, {1, 3}});
  CHECK(merged(build(work, diamond), 0.5) == groups_of_layers{{0}, {1}, {2}, {3}});  // 5 is not less than 5
  CHECK(merged(build(work, diamond), 0.95) == groups_of_layers{{0}, {1, 2, 3}});     // 9 is less than 9.5
  CHECK(merged(build(work, diamond), 1) == groups_of_layers{{0}, {1, 2, 3}});
  const std::vector<tensor> uneven{{0, 1, 20}, {0, 2, 10}, {1, 3, 5}, {2, 3, 6}};
  CHECK(merged(build(work, uneven), 0.6) == groups_of_layers{{0, 1}, {2, 3}});  // 2-3 frees more than 1-3

  const std::vector<spec> large_last{{1}, {1}, {1}, {97}};
  CHECK(merged(build(large_last, {{0, 1, 100}, {1, 2, 1}, {2, 3, 0}}), 0.03) == groups_of_layers{{0, 1}, {2}, {3}});
  CHECK(merged(build(large_last, {{0, 1, 100}, {1, 2, 1}, {2, 3, 0}, {0, 3, 9}}), 0.03) == groups_of_layers{{0}, {1, 2}, {3}});
}

TEST_CASE("an edge with a path around it waits until the path is inside a block") {
  const std::vector<tensor> edges{{0, 1, 1}, {1, 2, 1}, {0, 2, 100}, {2, 3, 1}};
  CHECK(merged(build({{1}, {8}, {1}, {90}}, edges), 0.05) == groups_of_layers{{0}, {1}, {2}, {3}});  // 1 never joins
  CHECK(merged(build({{1}, {2}, {1}, {96}}, edges), 0.05) == groups_of_layers{{0, 1, 2}, {3}});
}

TEST_CASE("residual blocks close before the next one opens") {
  // Two blocks x -> a -> b -> add, x -> add, with tensors of 8 bytes. The outputs of x and of the first add have two readers and free
  // their 8 bytes once both are in one block.
  const std::vector<tensor> edges{{0, 1, 8}, {1, 2, 8}, {2, 3, 8}, {0, 3, 8}, {3, 4, 8}, {4, 5, 8}, {5, 6, 8}, {3, 6, 8}};
  CHECK(merged(build(std::vector<spec>(7), edges), 0.6) == groups_of_layers{{0, 1, 2, 3}, {4, 5, 6}});
  const auto with_behind = [](double behind) {
    return merged(build(std::vector<spec>(5), {{0, 1, 8}, {1, 2, 3}, {0, 2, 4}, {2, 3, behind}, {3, 4, 1}}), 0.7);
  };
  CHECK(with_behind(2) == groups_of_layers{{0, 1, 2}, {3, 4}});    // 1-2 frees 3, then {1, 2} with 0 frees 8
  CHECK(with_behind(6) == groups_of_layers{{0}, {1, 2, 3}, {4}});  // 2-3 frees 6, then {2, 3} with 1 frees 3, with 0 nothing
}

TEST_CASE("a tensor that several layers of a block read crosses once, tensors of several layers add up") {
  // 1 and 2 merge first (100 bytes); then 3 fits in front or behind.
  const auto one_producer = [](double behind) {
    return merged(build({{1}, {1}, {1}, {1}, {1}}, {{0, 1, 5}, {0, 2, 6}, {1, 2, 100}, {2, 3, behind}, {3, 4, 0}}), 0.7);
  };
  CHECK(one_producer(5) == groups_of_layers{{0, 1, 2}, {3, 4}});
  CHECK(one_producer(7) == groups_of_layers{{0}, {1, 2, 3}, {4}});  // 6 bytes cross from 0, not 11
  // A layer too large to merge reads 0, 1 and 2: their tensors free nothing, and the crossing bytes decide.
  const auto two_producers = [](double behind) {
    return merged(build({{1}, {1}, {1}, {1}, {1}, {20}},
                        {{0, 1, 100}, {0, 2, 5}, {1, 2, 6}, {2, 3, behind}, {3, 4, 0}, {0, 5, 1}, {1, 5, 1}, {2, 5, 1}}),
                  0.14);
  };
  CHECK(two_producers(10) == groups_of_layers{{0, 1, 2}, {3, 4}, {5}});  // 11 bytes cross
  CHECK(two_producers(12) == groups_of_layers{{0, 1}, {2, 3, 4}, {5}});
}

TEST_CASE("a weight group counts once in a block and once in the whole") {
  const std::vector<tensor> chain{{0, 1, 1}, {1, 2, 1}};
  // Tied, 4 of 10 bytes. Separate, 8 of 14 bytes.
  CHECK(merged(build({{0, 4, "tied"}, {0, 4, "tied"}, {0, 6}}, chain), 0.5) == groups_of_layers{{0, 1}, {2}});
  CHECK(merged(build({{0, 4}, {0, 4}, {0, 6}}, chain), 0.5) == groups_of_layers{{0}, {1}, {2}});
  // A second layer of a group adds nothing to its block: 2 + 4 of 11 bytes, across the layer between.
  CHECK(merged(build({{0, 4, "tied"}, {0, 2}, {0, 4, "tied"}, {0, 5}}, {{0, 1, 1}, {1, 2, 1}, {2, 3, 1}}), 0.6) ==
        groups_of_layers{{0, 1, 2}, {3}});
}

TEST_CASE("both parameters and FLOP limit a block, and what a model has none of does not") {
  const std::vector<tensor> chain{{0, 1, 1}, {1, 2, 1}};
  CHECK(merged(build({{1, 9}, {1, 9}, {8, 82}}, chain), 0.2) == groups_of_layers{{0}, {1}, {2}});  // 2 of 10 FLOP
  CHECK(merged(build({{1, 9}, {1, 9}, {9, 82}}, chain), 0.2) == groups_of_layers{{0, 1}, {2}});
  CHECK(merged(build({{1, 9}, {1, 11}, {9, 80}}, chain), 0.2) == groups_of_layers{{0}, {1}, {2}});  // 20 of 100 bytes
  CHECK(merged(build({{1}, {1}, {9}}, chain), 0.2) == groups_of_layers{{0, 1}, {2}});               // no parameters
  CHECK(merged(build({{0, 9}, {0, 9}, {0, 82}}, chain), 0.2) == groups_of_layers{{0, 1}, {2}});     // no FLOP
  CHECK(merged(build({{0}, {0}, {0}}, chain), 0.2) == groups_of_layers{{0}, {1}, {2}});             // neither
}

TEST_CASE("blocks are numbered with every edge going forward, even where their smallest layers are not in order") {
  // 1 and 4 merge. 3 feeds them although its number exceeds 1, and follows 2 only because 2 is ready first.
  const auto b = merge_small(build({{5}, {1}, {5}, {5}, {1}}, {{1, 4, 9}, {3, 4, 1}, {0, 3, 1}}), {.share = 0.2});
  CHECK(layers_of(b) == groups_of_layers{{0}, {2}, {3}, {1, 4}});
  CHECK(b.block_of == std::vector<std::size_t>{0, 3, 1, 2, 3});
}

TEST_CASE("share 0 merges nothing, and what is no share is refused") {
  const planning_graph g = build({{0}, {0}, {1}}, {{0, 1, 1}, {1, 2, 1}});
  CHECK(merge_small(g, {.share = 0}) == coarsen::each_layer(g));
  CHECK(merged(g, 0) == groups_of_layers{{0}, {1}, {2}});
  CHECK(merged(g, 0.001) == groups_of_layers{{0, 1}, {2}});
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& [share, text] : {std::pair(-0.1, "-0.1"), {1.5, "1.5"}, {inf, "inf"}, {nan, "nan"}}) {
    const std::string message = "merge_small: share = " + std::string(text) + "; expected a number in [0, 1]";
    CHECK_THROWS_MATCHES(merge_small(g, {.share = share}), invalid_input, Catch::Message(message));
  }
}

TEST_CASE("every contraction of a random DAG is the one that trying all of them finds") {
  const std::uint64_t seed = test::first_seed();
  INFO("seed " << seed);
  test::random_source random(seed);
  int merges = 0;
  for (int round = 0; round < 500; ++round) {
    const planning_graph g = random_model(random, random.integer(1, 12));
    const double share = random_share(random);
    INFO("round " << round << ", share " << share);
    labels of(g.size());
    std::iota(of.begin(), of.end(), 0U);
    for (labels next = best_contraction(g, of, share); !next.empty(); next = best_contraction(g, of, share)) {
      of = next;
      ++merges;
    }
    REQUIRE(labels_of(merge_small(g, {.share = share})) == of);
  }
  CHECK(merges > 500);
}

TEST_CASE("blocks of a random DAG are a partition, acyclic, small unless single, and nothing more can merge") {
  const std::uint64_t seed = test::first_seed() + 1;
  INFO("seed " << seed);
  test::random_source random(seed);
  for (int round = 0; round < 300; ++round) {
    const planning_graph g = random_model(random, random.integer(1, 32));
    const double share = random_share(random);
    INFO("round " << round << ", share " << share);
    const coarsen::blocks b = merge_small(g, {.share = share});
    require_partition(g, b);
    const labels of = labels_of(b);
    REQUIRE_FALSE(has_cycle(g, of));
    for (const auto& block : b.layers) {
      if (block.size() > 1) REQUIRE(below(g, of, block.front().index(), share));
    }
    REQUIRE(best_contraction(g, of, share).empty());
    require_partition(g, coarsen::each_layer(g));
  }
}

TEST_CASE("units do not matter: powers of two on weights, FLOP or bytes leave the blocks alone") {
  const std::uint64_t seed = test::first_seed() + 2;
  INFO("seed " << seed);
  test::random_source random(seed);
  for (int round = 0; round < 300; ++round) {
    INFO("round " << round);
    const planning_graph g = random_model(random, random.integer(2, 30));
    planning_graph_builder b("scaled");
    for (const layer& l : g.layers()) {
      b.add_layer({.name = l.name,
                   .forward_flops = 8 * l.forward_flops,
                   .weight = 0.25 * l.weight,
                   .weight_group = l.weight_group < 0 ? "" : std::to_string(l.weight_group)});
    }
    for (const layer_edge& e : g.edges()) b.add_edge(e.from, e.to, 1024 * e.forward);
    const double share = random_share(random);
    REQUIRE(merge_small(std::move(b).build(), {.share = share}) == merge_small(g, {.share = share}));
  }
}

TEST_CASE("a twentieth of a built-in model makes some dozens of blocks, each of them small or single") {
  const std::string name = GENERATE("qwen3-1.7b", "bert-base", "resnet50", "qwen-omni");
  INFO(name);
  const planning_graph g = zoo::model(name);
  const coarsen::blocks b = merge_small(g);
  require_partition(g, b);
  CHECK(b.size() >= 20);
  CHECK(b.size() <= 120);
  CHECK(b.size() < g.size());
  const labels of = labels_of(b);
  for (const auto& block : b.layers) {
    if (block.size() > 1) CHECK(below(g, of, block.front().index(), 0.05));
  }
  CHECK(merge_small(g, {.share = 0.02}).size() > b.size());
}

TEST_CASE("the towers of a multimodal model stay apart: no block has layers of both") {
  const planning_graph g = zoo::model("qwen-omni");
  for (const auto& block : merge_small(g).layers) {
    CHECK_FALSE((has_layer_of(g, block, "audio.") && has_layer_of(g, block, "vision.")));
  }
}
