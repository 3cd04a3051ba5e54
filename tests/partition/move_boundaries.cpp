// SPDX-License-Identifier: BSL-1.0
#include <functional>
#include <utility>

#include <catch2/catch.hpp>

#include <hetplan/estimate/estimate.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/search/mend_limits.hpp>
#include <hetplan/search/ranking.hpp>
#include <hetplan/simulate/evaluate.hpp>

#include "support/search_instance.hpp"

using namespace hetplan;

namespace {

/// A plan of the instance cut at drawn boundaries, one device per stage.
plan drawn_plan(const test::search_instance& i, const layer_sequence& row, test::random_source& random) {
  plan p = i.blank;
  const int most = static_cast<int>(std::min(row.size(), i.cluster.size()));
  const int stages = random.integer(1, most);
  std::vector<std::size_t> cuts;
  while (static_cast<int>(cuts.size()) < stages - 1) {
    const std::size_t at = 1 + random.index(row.size() - 1);
    if (std::find(cuts.begin(), cuts.end(), at) == cuts.end()) cuts.push_back(at);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.push_back(row.size());
  std::size_t first = 0;
  for (const std::size_t last : cuts) {
    stage s{.name = "s" + std::to_string(p.stages.size()),
            .layers = row.layers_of(first, last),
            .devices = {{device_id(p.stages.size()), p.microbatch_size}}};
    std::sort(s.layers.begin(), s.layers.end());
    p.stages.push_back(std::move(s));
    first = last;
  }
  return p;
}

/// Neighbours of a chain in twos.
layer_sequence in_pairs(const layer_sequence& row) {
  layer_sequence pairs{{}, {}};
  for (std::size_t c = 0; c < row.chains(); ++c) {
    pairs.chain_first.push_back(pairs.size());
    for (std::size_t b = row.chain_first[c]; b < row.chain_end(c); b += 2) {
      pairs.blocks.push_back(row.layers_of(b, std::min(b + 2, row.chain_end(c))));
      std::sort(pairs.blocks.back().begin(), pairs.blocks.back().end());
    }
  }
  return pairs;
}

/// Blocks of the row that are wholly among the layers.
int block_count(const std::vector<layer_id>& layers, const layer_sequence& row) {
  const auto inside = [&](const std::vector<layer_id>& block) {
    return std::all_of(block.begin(), block.end(), [&](layer_id l) { return std::find(layers.begin(), layers.end(), l) != layers.end(); });
  };
  return static_cast<int>(std::count_if(row.blocks.begin(), row.blocks.end(), inside));
}

/// Is every stage whole blocks, one after the other, and a stage of the row?
bool is_cut(const plan& p, const layer_sequence& row) {
  std::size_t at = 0;
  for (const stage& s : p.stages) {
    const auto blocks = static_cast<std::size_t>(block_count(s.layers, row));
    if (!row.is_stage(at, at + blocks) || row.layers_of(at, at + blocks).size() != s.layers.size()) return false;
    at += blocks;
  }
  return at == row.size();
}

bool same_stages(const plan& a, const plan& b) {
  return std::equal(a.stages.begin(), a.stages.end(), b.stages.begin(), b.stages.end(),
                    [](const stage& x, const stage& y) { return x.layers == y.layers; });
}

planning_problem problem_of(const test::search_instance& i) {
  const job wanted{.workload = i.blank.workload, .batch = static_cast<int>(i.blank.batch()), .microbatch_sizes = {i.blank.microbatch_size}};
  return {i.model, i.cluster, roofline{}, wanted};
}

}  // namespace

TEST_CASE("moved boundaries end where no single move helps, and never worse than they began") {
  int moved = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 200; ++seed) {
    const test::search_instance i = test::random_search_instance(seed, {.most_layers = 8, .most_devices = 4, .tight = false});
    INFO(i.what);
    test::random_source random(seed);
    const layer_sequence row = each_layer_of(i.sequence);
    const plan start = drawn_plan(i, row, random);
    std::vector<std::size_t> everywhere;
    for (std::size_t b = 1; b < row.size(); ++b) everywhere.push_back(b);
    int calls = 0;
    const auto seconds_of = [&](const plan& p) {
      ++calls;
      return estimate(p, i.model, i.cluster, roofline{}).latency.value();
    };
    const plan end = partition::move_boundaries(start, row, everywhere, seconds_of, 100000);
    const double best = seconds_of(end);
    REQUIRE(best <= seconds_of(start));
    moved += end == start ? 0 : 1;
    // Every neighbour, made without the search's own moves: cuts that differ in one place, and two stages' devices swapped.
    std::vector<std::size_t> first{0};
    for (const stage& s : end.stages) first.push_back(first.back() + s.layers.size());
    for (std::size_t b = 1; b + 1 < first.size(); ++b) {
      for (std::size_t to = first[b - 1] + 1; to < first[b + 1]; ++to) {
        if (to + 1 != first[b] && to != first[b] + 1) continue;
        plan p = end;
        p.stages[b - 1].layers = row.layers_of(first[b - 1], to);
        p.stages[b].layers = row.layers_of(to, first[b + 1]);
        REQUIRE(seconds_of(p) >= best);
      }
    }
    for (std::size_t x = 0; x < end.stages.size(); ++x) {
      for (std::size_t y = x + 1; y < end.stages.size(); ++y) {
        plan p = end;
        std::swap(p.stages[x].devices, p.stages[y].devices);
        REQUIRE(seconds_of(p) >= best);
      }
    }
    calls = 0;
    static_cast<void>(partition::move_boundaries(start, row, everywhere, seconds_of, 7));
    REQUIRE(calls <= 7);
  }
  REQUIRE(moved > 50);
}

TEST_CASE("a plan that is no cut of the sequence comes back as it is") {
  const test::search_instance i = test::random_search_instance(3, {.most_layers = 6, .most_devices = 3});
  plan p = i.blank;
  p.stages = {{.name = "s0", .layers = {layer_id(0)}, .devices = {{device_id(0), p.microbatch_size}}}};
  const auto never = [](const plan&) -> double {
    FAIL("nobody asks");
    return 0;
  };
  REQUIRE(i.model.size() > 1);
  CHECK(partition::move_boundaries(p, each_layer_of(i.sequence), {1}, never) == p);
}

TEST_CASE("light boundaries carry no more than their neighbours, and light blocks end there") {
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 100; ++seed) {
    const test::search_instance i = test::random_search_instance(seed, {.most_layers = 12});
    INFO(i.what);
    const layer_sequence all = sequence_of(i.model);
    const auto carried = [&](std::size_t b) {  // by definition: every tensor once, the most that any reader behind takes
      double total = 0;
      for (const layer& l : i.model.layers()) {
        double there = 0, back = 0;
        for (const layer_edge& e : i.model.out_edges(l.id)) {
          if (e.from.index() >= b || e.to.index() < b) continue;
          there = std::max(there, e.forward.value());
          back = std::max(back, e.gradient.value());
        }
        total += there + back;
      }
      return total;
    };
    const auto light = light_boundaries(i.model, all);
    for (std::size_t b = 1; b < all.size(); ++b) {
      const double slack = 1e-6;
      const bool least = (b == 1 || carried(b) <= carried(b - 1) + slack) && (b + 1 == all.size() || carried(b) <= carried(b + 1) + slack);
      const bool listed = std::find(light.begin(), light.end(), b) != light.end();
      REQUIRE(listed == least);
    }
    for (const std::size_t most : {1U, 3U, 100U}) {
      const layer_sequence row = light_blocks(i.model, most);
      REQUIRE(row.size() <= most);
      std::size_t at = 0;
      for (const auto& block : row.blocks) {
        for (const layer_id l : block) REQUIRE(l == layer_id(at++));
        REQUIRE((at == all.size() || std::find(light.begin(), light.end(), at) != light.end()));
      }
      REQUIRE(at == all.size());
    }
  }
}

TEST_CASE("polished plans are no worse under the judge") {
  int compared = 0, better_ones = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 60; ++seed) {
    const test::search_instance i = test::random_search_instance(seed, {.most_layers = 8, .most_devices = 4, .tight = false});
    INFO(i.what);
    test::random_source random(seed);
    const planning_problem problem = problem_of(i);
    const minimize_latency objective;
    ranking ranked(problem, objective, 10);
    const layer_sequence row = each_layer_of(i.sequence);
    for (int n = 0; n < 4; ++n) static_cast<void>(ranked.consider(drawn_plan(i, row, random), 4));
    const auto better = polish(problem, objective, plans_of(ranked.kept()), {row});
    REQUIRE(better.size() <= 3);
    if (!ranked.any_fitted()) continue;
    const double before = ranked.kept().front().evaluation.response().value();
    const double after = judge(better.front(), i.model, i.cluster, roofline{}).evaluation.response().value();
    REQUIRE(after <= before * (1 + 1e-12));
    ++compared;
    better_ones += after < before ? 1 : 0;
  }
  REQUIRE(compared > 40);
  REQUIRE(better_ones > 2);
}

TEST_CASE("polishing keeps every stage a stage of the row that was given, unless it may put boundaries between any layers") {
  int kept = 0, moved = 0, broken = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 120; ++seed) {
    const test::search_instance i = test::random_search_instance(seed, {.most_layers = 10, .most_devices = 4, .tight = false});
    INFO(i.what);
    test::random_source random(seed);
    const planning_problem problem = problem_of(i);
    const layer_sequence row = in_pairs(i.sequence);
    const plan start = drawn_plan(i, row, random);
    const bool begins_there = is_cut(start, row);
    for (const auto boundaries : {polish_boundaries::of_blocks, polish_boundaries::of_layers}) {
      const plan end = polish(problem, minimize_latency{}, {start}, {row}, {.boundaries = boundaries}).front();
      if (boundaries == polish_boundaries::of_blocks) {
        REQUIRE(is_cut(end, row) == begins_there);
        if (!begins_there) REQUIRE(same_stages(end, start));
        kept += begins_there ? 1 : 0;
        moved += same_stages(end, start) ? 0 : 1;
      } else {
        broken += begins_there && !is_cut(end, row) ? 1 : 0;
      }
    }
  }
  CHECK(kept > 30);
  CHECK(moved > 5);
  CHECK(broken > 5);
}

TEST_CASE("moved boundaries of blocks end where no stage of the row, a block larger or smaller, helps") {
  int moved = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 150; ++seed) {
    const test::search_instance i = test::random_search_instance(seed, {.most_layers = 10, .most_devices = 3, .tight = false});
    INFO(i.what);
    test::random_source random(seed);
    const layer_sequence row = in_pairs(i.sequence);
    const plan start = drawn_plan(i, row, random);
    if (!is_cut(start, row)) continue;
    std::vector<std::size_t> everywhere;
    for (std::size_t b = 1; b < row.size(); ++b) everywhere.push_back(b);
    const auto seconds_of = [&](const plan& p) { return estimate(p, i.model, i.cluster, roofline{}).latency.value(); };
    const plan end = partition::move_boundaries(start, row, everywhere, seconds_of, 100000);
    moved += same_stages(end, start) ? 0 : 1;
    for (std::size_t s = 1; s < end.stages.size(); ++s) {
      for (std::size_t cut = 1; cut < row.size(); ++cut) {  // every boundary of the row, not by the search's own moves
        std::vector<layer_id> both = end.stages[s - 1].layers;
        both.insert(both.end(), end.stages[s].layers.begin(), end.stages[s].layers.end());
        plan p = end;
        p.stages[s - 1].layers.clear();
        p.stages[s].layers.clear();
        for (const layer_id l : row.layers_of(0, cut)) {
          if (std::find(both.begin(), both.end(), l) != both.end()) p.stages[s - 1].layers.push_back(l);
        }
        for (const layer_id l : row.layers_of(cut, row.size())) {
          if (std::find(both.begin(), both.end(), l) != both.end()) p.stages[s].layers.push_back(l);
        }
        const bool next = std::abs(block_count(p.stages[s].layers, row) - block_count(end.stages[s].layers, row)) == 1;
        if (next && is_cut(p, row)) REQUIRE(seconds_of(p) >= seconds_of(end));
      }
    }
  }
  CHECK(moved > 10);
}

TEST_CASE("polishing simulates no plan twice: a row that is given again takes no step") {
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 10; ++seed) {
    const test::search_instance i = test::random_search_instance(seed, {.most_layers = 8, .most_devices = 4, .tight = false});
    INFO(i.what);
    test::random_source random(seed);
    const planning_problem problem = problem_of(i);
    const layer_sequence row = each_layer_of(i.sequence);
    const std::vector<plan> start{drawn_plan(i, row, random)};
    const auto steps = [&](const std::vector<layer_sequence>& rows) {
      step_budget budget(problem.steps);
      static_cast<void>(polish(problem, minimize_latency{}, start, rows, {}, budget));
      return budget.used();
    };
    const long long once = steps({row});
    CHECK(once > 0);
    CHECK(steps({row, row, row}) == once);
  }
}

TEST_CASE("light blocks are no more than asked for, whatever layers are weighed by") {
  const auto chain = [](const std::function<layer_spec(int)>& layer_of) {
    planning_graph_builder b("m");
    for (int i = 0; i < 1000; ++i) {
      layer_spec l = layer_of(i);
      l.name = "l" + std::to_string(i);
      b.add_layer(std::move(l));
      if (i > 0) b.add_edge("l" + std::to_string(i - 1), "l" + std::to_string(i), 1_MB);
    }
    return std::move(b).build();
  };
  const layer_sequence profiled_only = light_blocks(chain([](int) {
                                                      return layer_spec{.name = "", .profiles = {{"d", {1}, {1}, {1}}}};
                                                    }),
                                                    60);
  CHECK(profiled_only.size() <= 60);
  CHECK(profiled_only.size() >= 55);
  for (const auto& block : profiled_only.blocks) CHECK(block.size() <= 17);
  const auto idle_behind = [](int i) { return layer_spec{.name = "", .forward_flops = i < 100 ? 0.1_GFLOP : 0_FLOP}; };
  for (const std::size_t most : {1U, 7U, 60U}) CHECK(light_blocks(chain(idle_behind), most).size() <= most);
}
