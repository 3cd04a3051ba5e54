// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/topological_sort.hpp>
#include <catch2/catch.hpp>

#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/plan/validate.hpp>
#include "support.hpp"

namespace test_warmup {

using namespace plan_tests;

namespace {

int pick(std::mt19937_64& random, int low, int high) { return std::uniform_int_distribution(low, high)(random); }

int divisor(std::mt19937_64& random, int n) {
  std::vector<int> all;
  for (int d = 1; d <= n; ++d) {
    if (n % d == 0) all.push_back(d);
  }
  return all[static_cast<std::size_t>(pick(random, 0, static_cast<int>(all.size()) - 1))];
}

/// Returns a random plan of one layer per stage: stage s on device s, sizes that divide the batch, warm-ups from 1 to slightly above M.
plan random_chain_plan(std::mt19937_64& random, std::size_t stages, int batch, bool equal_sizes) {
  std::vector<std::vector<int>> layers;
  std::vector<int> sizes;
  const int shared = divisor(random, batch);
  for (std::size_t s = 0; s < stages; ++s) {
    layers.push_back({static_cast<int>(s)});
    sizes.push_back(equal_sizes ? shared : divisor(random, batch));
  }
  plan p = stage_per_device(layers, 1, batch, sizes);
  for (const int size : sizes) p.schedule.warmup.push_back(pick(random, 1, batch / size + 1));
  return p;
}

/// Returns a random DAG of at least one edge; some edges have no gradient.
planning_graph random_dag(std::mt19937_64& random, std::size_t layers) {
  planning_graph_builder b("dag");
  for (std::size_t i = 0; i < layers; ++i) b.add_layer({.name = std::to_string(i), .forward_flops = 1_FLOP});
  for (std::size_t v = 1; v < layers; ++v) {
    const auto must = static_cast<std::size_t>(pick(random, 0, static_cast<int>(v) - 1));
    for (std::size_t u = 0; u < v; ++u) {
      if (u == must || pick(random, 0, 3) == 0) b.add_edge(layer_id(u), layer_id(v), 1_B, pick(random, 0, 2) == 0 ? 0_B : 1_B);
    }
  }
  return std::move(b).build();
}

bool rule_holds(const plan& p, const stage_graph& g) {
  const std::vector<int> k = resolve_warmup(p, g);
  return std::all_of(g.edges.begin(), g.edges.end(), [&](const stage_edge& e) {
    return e.backward_cut.value() == 0 || warmup_suffices(g[e.from], k[e.from.index()], g[e.to], k[e.to.index()]);
  });
}

/// Returns true if the graph of all tasks, with device orders and passed samples, is acyclic according to Boost.Graph.
bool finishes(const plan& p, const stage_graph& g, std::size_t devices) {
  using piece = std::tuple<std::size_t, phase, std::size_t, int>;  // stage, phase, position of the device, microbatch
  std::map<piece, std::size_t> number;
  boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS> work;
  const auto vertex = [&](const piece& x) {
    const auto [it, fresh] = number.emplace(x, number.size());
    if (fresh) boost::add_vertex(work);
    return it->second;
  };
  const auto samples = [&](std::size_t s, std::size_t position, int m) {
    int begin = m * g.nodes[s].microbatch_size;
    for (std::size_t i = 0; i < position; ++i) begin += p.stages[s].devices[i].samples;
    return std::pair(begin, begin + p.stages[s].devices[position].samples);
  };
  const auto orders = device_orders(p, g, devices);
  for (std::size_t d = 0; d < devices; ++d) {
    std::size_t before = 0;
    for (std::size_t i = 0; i < orders[d].size(); ++i) {
      const order_entry& e = orders[d][i];
      std::size_t position = 0;
      while (p[e.stage].devices[position].device != device_id(d)) ++position;
      const std::size_t now = vertex({e.stage.index(), e.what, position, e.microbatch});
      if (i > 0) boost::add_edge(before, now, work);
      before = now;
    }
  }
  for (const stage_edge& e : g.edges) {
    const std::size_t s = e.from.index(), t = e.to.index();
    for (std::size_t a = 0; a < p.stages[s].devices.size(); ++a) {
      for (int m = 0; m < g.nodes[s].microbatches; ++m) {
        for (std::size_t b = 0; b < p.stages[t].devices.size(); ++b) {
          for (int n = 0; n < g.nodes[t].microbatches; ++n) {
            const auto x = samples(s, a, m), y = samples(t, b, n);
            if (x.first >= y.second || y.first >= x.second) continue;
            boost::add_edge(vertex({s, phase::forward, a, m}), vertex({t, phase::forward, b, n}), work);
            if (e.backward_cut.value() > 0) {
              boost::add_edge(vertex({t, phase::backward_input, b, n}), vertex({s, phase::backward_input, a, m}), work);
            }
          }
        }
      }
    }
  }
  std::vector<std::size_t> order;
  try {
    boost::topological_sort(work, std::back_inserter(order));
  } catch (const boost::not_a_dag&) {
    return false;
  }
  return true;
}

}  // namespace

TEST_CASE("on chains with one device per stage the 1F1B rule holds exactly where the orders can be worked off") {
  const unsigned seed = 41;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  const std::array batches{1, 4, 6, 8, 12, 16, 24};
  int finish = 0, block = 0;
  for (int trial = 0; trial < 8000; ++trial) {
    INFO("trial " << trial);
    const auto stages = static_cast<std::size_t>(pick(random, 2, 5));
    const int batch = batches[static_cast<std::size_t>(pick(random, 0, 6))];
    const plan p = random_chain_plan(random, stages, batch, trial % 4 == 0);
    const planning_graph model = chain(stages);
    const stage_graph g = make_stage_graph(p, model);
    const auto stuck = first_blocked_device(p, g, stages);
    REQUIRE(rule_holds(p, g) == !stuck);
    REQUIRE(validate(p, model, devices(stages)).has_value() == stuck.has_value());
    (stuck ? block : finish)++;
  }
  CHECK(finish > 1000);
  CHECK(block > 1000);
}

TEST_CASE("first_blocked_device and a topological sort of all work agree on any plan") {
  const unsigned seed = 42;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  int finish = 0, block = 0, several = 0, single = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    INFO("trial " << trial);
    const auto stages = static_cast<std::size_t>(pick(random, 2, 5));
    plan p = random_chain_plan(random, stages, trial % 2 == 0 ? 8 : 12, false);
    if (trial % 3 == 0) p.schedule.warmup.clear();
    for (stage& s : p.stages) {  // some stages on two devices with unequal shares
      if (s.microbatch_size == 1 || trial % 2 == 0 || pick(random, 0, 1) == 0) continue;
      const int mine = pick(random, 1, s.microbatch_size - 1);
      s.devices[0].samples = mine;
      s.devices.push_back({device_id(s.devices[0].device.index() + stages), s.microbatch_size - mine});
    }
    const planning_graph model = random_dag(random, stages);
    const stage_graph g = make_stage_graph(p, model);
    const bool ends = finishes(p, g, 2 * stages);
    REQUIRE(first_blocked_device(p, g, 2 * stages).has_value() == !ends);
    // No blocked plan is accepted. With shared stages, the rule may refuse a plan that would finish: a device needs only its own samples.
    const bool shared = std::any_of(p.stages.begin(), p.stages.end(), [](const stage& s) { return s.devices.size() > 1; });
    const bool refused = validate(p, model, devices(2 * stages)).has_value();
    REQUIRE((shared ? refused || ends : refused == !ends));
    (shared ? several : single)++;
    (ends ? finish : block)++;
  }
  CHECK(finish > 400);
  CHECK(block > 400);
  CHECK(several > 400);
  CHECK(single > 400);
}

TEST_CASE("explicit orders in any shuffle are refused exactly where a topological sort finds a cycle") {
  const unsigned seed = 43;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  int finish = 0, block = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    plan p = stage_per_device({{0}, {1}, {2}}, 1, 2);
    const planning_graph model = random_dag(random, 3);
    for (stage& s : p.stages) s.devices[0].device = device_id(pick(random, 0, 1));
    p.schedule.kind = schedule_kind::explicit_orders;
    p.schedule.orders.resize(2);
    for (std::size_t s = 0; s < 3; ++s) {
      for (int m = 0; m < 2; ++m) {
        auto& mine = p.schedule.orders[p.stages[s].devices[0].device.index()];
        for (const phase what : {phase::forward, phase::backward_input}) mine.push_back({what, stage_id(s), m});
      }
    }
    for (auto& mine : p.schedule.orders) {
      std::shuffle(mine.begin(), mine.end(), random);
      for (std::size_t i = 0; i < mine.size(); ++i) {  // F before B, to keep the other rules
        for (std::size_t j = i + 1; j < mine.size(); ++j) {
          if (mine[i].stage == mine[j].stage && mine[i].microbatch == mine[j].microbatch && mine[j].what < mine[i].what)
            std::swap(mine[i], mine[j]);
        }
      }
    }
    const bool ends = finishes(p, make_stage_graph(p, model), 2);
    const auto v = validate(p, model, devices(2));
    REQUIRE(v.has_value() == !ends);
    if (v) CHECK(v->what.find("cyclic order at device \"d") == 0);
    (ends ? finish : block)++;
  }
  CHECK(finish > 50);
  CHECK(block > 50);
}

TEST_CASE("the default warm-up is 2 depth - 1 or the smallest more that lets the orders finish") {
  const unsigned seed = 44;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  int raised = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    INFO("trial " << trial);
    const auto stages = static_cast<std::size_t>(pick(random, 2, 5));
    const bool equal = trial % 5 == 0;
    plan p = random_chain_plan(random, stages, trial % 2 == 0 ? 12 : 16, equal);
    p.schedule.warmup.clear();
    const planning_graph model = chain(stages);
    const stage_graph g = make_stage_graph(p, model);
    const std::vector<int> k = resolve_warmup(p, g);
    REQUIRE_FALSE(first_blocked_device(p, g, stages));
    REQUIRE_FALSE(validate(p, model, devices(stages)));
    for (std::size_t s = 0; s < stages; ++s) {
      const int plain = 2 * g.nodes[s].depth - 1;
      REQUIRE(k[s] >= plain);
      if (equal) REQUIRE(k[s] == plain);
      if (k[s] == plain) continue;
      ++raised;
      // With any smaller warm-up and all later stages unchanged, the pair can no longer finish.
      for (int less = plain; less < k[s]; ++less) {
        REQUIRE_FALSE(warmup_suffices(g.nodes[s], less, g.nodes[s + 1], k[s + 1]));
      }
      plan tight = p;
      tight.schedule.warmup = k;
      for (std::size_t before = 0; before < s; ++before) tight.schedule.warmup[before] = 1000;  // large enough never to block
      REQUIRE_FALSE(first_blocked_device(tight, g, stages));
      tight.schedule.warmup[s] = k[s] - 1;
      REQUIRE(first_blocked_device(tight, g, stages));
    }
  }
  CHECK(raised > 300);
}

TEST_CASE("the three warm-up rules by hand, and the default is what a plan without warm-up gets") {
  CHECK(warmup_rules.size() == 3);
  for (const int depth : {1, 2, 3, 7}) {
    CHECK(warmup_of(warmup_rule::hide_communication, depth) == 2 * depth - 1);
    CHECK(warmup_of(warmup_rule::depth, depth) == depth);
    CHECK(warmup_of(warmup_rule::one, depth) == 1);
  }
  const plan p = stage_per_device({{0}, {1}, {2}, {3}}, 1, 16);
  const stage_graph g = make_stage_graph(p, chain(4));
  CHECK(resolve_warmup(p, g) == std::vector<int>{7, 5, 3, 1});
  for (std::size_t s = 0; s < 4; ++s) CHECK(resolve_warmup(p, g)[s] == warmup_of(warmup_rule::hide_communication, g.nodes[s].depth));
}

TEST_CASE("the two further warm-ups by hand: one more than transfers hide behind, and everything, which is GPipe's order") {
  for (const int depth : {1, 2, 3, 7}) CHECK(warmup_of(warmup_rule::one_more, depth) == 2 * depth + 1);
  plan p = stage_per_device({{0}, {1}, {2}}, 1, 6);
  const planning_graph model = chain(3);
  const auto listed = [&](warmup_rule rule) {
    set_warmup(p, model, rule);
    return p.schedule.warmup;
  };
  CHECK(listed(warmup_rule::one_more) == std::vector<int>{7, 5, 3});
  CHECK(listed(warmup_rule::everything) == std::vector<int>{6, 6, 6});
  const auto in_flight = [&](warmup_rule rule, int depth) { return microbatches_in_flight(p, warmup_of(rule, depth)); };
  CHECK(in_flight(warmup_rule::one_more, 2) == 5);
  CHECK(in_flight(warmup_rule::one_more, 3) == 6);  // no more than all microbatches
  CHECK(in_flight(warmup_rule::everything, 1) == 6);
  CHECK(in_flight(warmup_rule::everything, 1000) == 6);

  const stage_graph g = make_stage_graph(p, model);
  plan gpipe = p;
  gpipe.schedule.warmup.clear();
  gpipe.schedule.kind = schedule_kind::gpipe;
  CHECK(device_orders(p, g, 3) == device_orders(gpipe, g, 3));
  listed(warmup_rule::one_more);
  CHECK(text(device_orders(p, g, 3)[2]) == "F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 B4 B5");
  // "Everything" counts each stage's own microbatches; plans without warm-up have an empty list.
  p = stage_per_device({{0}, {1}}, 1, 12, {1, 4});
  set_warmup(p, chain(2), warmup_rule::everything);
  CHECK(p.schedule.warmup == std::vector<int>{12, 3});
  p = stage_per_device({{0}, {1}, {2}}, 1, 6);
  p.workload.mode = mode::inference;
  CHECK(listed(warmup_rule::everything).empty());
  CHECK(listed(warmup_rule::one_more).empty());
  CHECK(in_flight(warmup_rule::everything, 2) == 1);
}

TEST_CASE("with equal microbatches every warm-up rule keeps the 1F1B rule on every stage graph") {
  const unsigned seed = 45;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 300; ++trial) {
    INFO("trial " << trial);
    const auto stages = static_cast<std::size_t>(pick(random, 2, 5));
    plan p = random_chain_plan(random, stages, 12, true);
    const planning_graph model = random_dag(random, stages);
    const stage_graph g = make_stage_graph(p, model);
    using enum warmup_rule;
    for (const warmup_rule rule : {hide_communication, depth, one, one_more, everything}) {
      set_warmup(p, model, rule);
      REQUIRE(rule_holds(p, g));
      REQUIRE_FALSE(first_blocked_device(p, g, stages));
    }
  }
}

}  // namespace test_warmup
