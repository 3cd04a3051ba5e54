// SPDX-License-Identifier: BSL-1.0
#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/schedule/cep_graph.hpp>
#include <hetplan/schedule/transfer_priority.hpp>
#include <hetplan/simulate/simulator.hpp>
#include <hetplan/tasks/expand.hpp>
#include <hetplan/tasks/task_graph.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/dag_shortest_paths.hpp>
#include <boost/graph/topological_sort.hpp>
#include <boost/property_map/function_property_map.hpp>
#include <catch2/catch.hpp>

#include "support/by_hand.hpp"
#include "support/random_cep.hpp"
#include "support/random_instance.hpp"

namespace test_cep_graph {

using namespace hetplan;
using namespace hetplan::test;
using schedule::cep_graph;
using schedule::chunk_rule;
using schedule::message_rules;

namespace {

plan without_rules(plan p) {
  p.sharing_policy = sharing::fair_share;
  p.schedule.transfers.clear();
  return p;
}

message_rules random_rules(random_source& random, std::size_t flows, double span_s, bool chunks) {
  message_rules rules(flows);
  for (auto& mine : rules) {
    for (int n = chunks ? random.integer(1, 4) : 1; n > 0; --n) {
      mine.push_back({.priority = random.integer(-2, 5), .release = seconds(random.chance(0.3) ? random.between(0, span_s) : 0)});
    }
  }
  return rules;
}

struct one_transfer {
  cluster joined = wired(2, 0.5);
  tasks::task_graph graph;

  explicit one_transfer(tasks::transfer t) {
    tasks::task_graph_builder b(2);
    const auto before = b.add(tasks::compute_task{.stage = stage_id(0), .device = device_id(0), .duration_s = 1});
    const auto after = b.add(tasks::compute_task{.stage = stage_id(1), .device = device_id(1), .duration_s = 1});
    b.append_to_order(before);
    b.append_to_order(after);
    t.from = device_id(0);
    t.to = device_id(1);
    t.route = b.add_route(*joined.network().find(t.from, t.to));
    t.latency_s = 0.5;
    const auto sent = b.add(t);
    b.depend(before, sent);
    b.depend(sent, after);
    graph = std::move(b).build();
  }
};

}  // namespace

TEST_CASE("in generation all tokens of a pair of devices and a group are one flow") {
  const planning_graph m = model_of({work_of("a", 1), work_of("b", 1)}, {{0, 1, 2}});
  plan p = plan_of(mode::generation, 1, 2, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})});
  p.workload.tokens = 4;
  const cluster c = wired(2);
  const cep_graph cep(tasks::expand(p, m, c, roofline{}), c.network());
  REQUIRE(cep.messages() == 4);  // forward and token transfers of two groups
  std::multiset<std::pair<transfer_kind, std::size_t>> sizes;
  for (std::size_t f = 0; f < cep.messages(); ++f) {
    sizes.emplace(cep.tasks().transfers[cep.transfers_of(f).front()].kind, cep.transfers_of(f).size());
    for (const std::uint32_t t : cep.transfers_of(f)) CHECK(cep.message_of(t) == f);
  }
  CHECK(sizes == std::multiset<std::pair<transfer_kind, std::size_t>>{
                     {transfer_kind::forward, 4}, {transfer_kind::forward, 4}, {transfer_kind::token, 3}, {transfer_kind::token, 3}});
}

TEST_CASE("a reduction is one flow for each pair of neighbours") {
  planning_graph_builder b("m");
  b.add_layer({.name = "a", .forward_flops = 1_GFLOP, .weight = 12_B});
  const planning_graph m = std::move(b).build();
  const cluster c = wired(3);
  const cep_graph cep(tasks::expand(plan_of(mode::training, 3, 2, {stage_of({0}, {{0, 1}, {1, 1}, {2, 1}})}), m, c, roofline{}),
                      c.network());
  REQUIRE(cep.messages() == 3);
  std::set<std::pair<int, int>> pairs;
  for (const tasks::transfer& t : cep.tasks().transfers) {
    CHECK(t.kind == transfer_kind::sync);
    pairs.emplace(t.from.value, t.to.value);
  }
  CHECK(pairs == std::set<std::pair<int, int>>{{0, 1}, {1, 2}, {2, 0}});
}

TEST_CASE("a flow holds the transfers that one rule of a plan names, on random plans") {
  for_random_instances(8, [](const instance& i) {
    const cluster c = i.cluster();
    const cep_graph cep(tasks::expand(without_rules(i.plan), i.model(), c, roofline{}), c.network());
    using key = std::tuple<transfer_kind, device_id, device_id, stage_id, stage_id, int>;
    std::map<key, std::uint32_t> message_of;
    std::size_t members = 0;
    for (std::uint32_t t = 0; t < cep.tasks().transfers.size(); ++t) {
      const tasks::transfer& x = cep.tasks().transfers[t];
      const key k{x.kind, x.from, x.to, x.from_stage, x.to_stage, x.kind == transfer_kind::sync ? 0 : x.microbatch};
      REQUIRE(message_of.try_emplace(k, cep.message_of(t)).first->second == cep.message_of(t));
    }
    REQUIRE(message_of.size() == cep.messages());
    for (std::size_t f = 0; f < cep.messages(); ++f) {
      members += cep.transfers_of(f).size();
      REQUIRE(std::is_sorted(cep.transfers_of(f).begin(), cep.transfers_of(f).end()));
    }
    REQUIRE(members == cep.tasks().transfers.size());
    REQUIRE(cep.bound() == tasks::contention_bound(cep.tasks(), c.network()));
  });
}

TEST_CASE("a graph with rules runs like the plan that carries the same rules, bit for bit") {
  int with_chunks = 0;
  for_random_instances(25, [&](const instance& i) {
    const cluster c = i.cluster();
    const planning_graph model = i.model();
    plan p = without_rules(i.plan);
    const cep_graph cep(tasks::expand(p, model, c, roofline{}), c.network());
    random_source random(1 + cep.messages() * 31 + cep.tasks().size());
    for (const bool chunks : {false, true}) {
      const message_rules rules = random_rules(random, cep.messages(), 2 * cep.bound().value(), chunks);
      p.sharing_policy = sharing::priority;
      p.schedule.transfers = cep.transfer_rules(rules);
      const tasks::task_graph ours = cep.with(rules), expanded = tasks::expand(p, model, c, roofline{});
      REQUIRE(ours.size() == expanded.size());
      REQUIRE(ours.predecessors == expanded.predecessors);
      REQUIRE(simulate(ours, c.network(), by_priority{}) == simulate(expanded, c.network(), policy_of_plan{p.sharing_policy}));
      with_chunks += ours.transfers.size() > cep.tasks().transfers.size();
      // The same schedule through schedule::follow().
      const schedule::network_schedule s = schedule::follow(cep, rules);
      REQUIRE(judge(schedule::apply(i.plan, cep, s), model, c, roofline{}).evaluation.latency == s.latency);
    }
  });
  CHECK(with_chunks >= 100);
}

TEST_CASE("a plan that a schedule is applied to keeps nothing of its own rules") {
  const instance i = random_instance(first_seed(), plan_kind::chunks);
  const cluster c = i.cluster();
  const cep_graph cep(tasks::expand(without_rules(i.plan), i.model(), c, roofline{}), c.network());
  const plan left_alone = schedule::apply(i.plan, cep, schedule::uncontrolled(cep));
  CHECK(left_alone == without_rules(i.plan));
  const plan ruled = schedule::apply(i.plan, cep, schedule::follow(cep, message_rules(cep.messages(), {chunk_rule{.priority = 3}})));
  CHECK(ruled.sharing_policy == sharing::priority);
  CHECK(ruled.schedule.transfers.size() == cep.messages());
}

TEST_CASE("a CEP graph of chunks is refused") {
  const one_transfer cut(tasks::transfer{.chunk = 1, .volume_bytes = 2});
  CHECK_THROWS_WITH(cep_graph(cut.graph, cut.joined.network()),
                    Catch::Contains("cep_graph: transfer 0 is chunk 1 of another; expected whole transfers"));
  const one_transfer whole(tasks::transfer{.volume_bytes = 2});
  const cep_graph cep(whole.graph, whole.joined.network());
  CHECK_THROWS_AS(cep_graph(cep.with({{chunk_rule{}, chunk_rule{}}}), whole.joined.network()), invalid_input);
  CHECK_NOTHROW(cep_graph(cep.with({{chunk_rule{}}}), whole.joined.network()));
}

TEST_CASE("a transfer's own release stays a lower limit, for every chunk") {
  const one_transfer x(tasks::transfer{.volume_bytes = 2, .release_s = 5});
  const cep_graph cep(x.graph, x.joined.network());
  const auto releases = [&](const message_rules& rules) {
    std::vector<double> out;
    for (const tasks::transfer& t : cep.with(rules).transfers) out.push_back(t.release_s);
    return out;
  };
  CHECK(releases({{{.release = 3_s}}}) == std::vector<double>{5});
  CHECK(releases({{{.release = 7_s}}}) == std::vector<double>{7});
  CHECK(releases({{{.release = 7_s}, {.release = 1_s}, {.release = 9_s}}}) == std::vector<double>{7, 5, 9});
  CHECK(schedule::follow(cep, {{{.release = 3_s}}}).latency.value() == near(5 + 0.5 + 2 + 1));
}

TEST_CASE("chunks follow one another, share the volume, and only the first waits the latency") {
  const one_transfer x(tasks::transfer{.priority = 4, .volume_bytes = 3});
  const cep_graph cep(x.graph, x.joined.network());
  const message_rules rules{{{.priority = 2}, {.priority = 1, .release = 4_s}, {.priority = 7}}};
  const tasks::task_graph g = cep.with(rules);
  REQUIRE(g.transfers.size() == 3);
  for (std::size_t k = 0; k < 3; ++k) {
    CHECK(g.transfers[k].chunk == static_cast<int>(k));
    CHECK(g.transfers[k].volume_bytes == near(1));
    CHECK(g.transfers[k].priority == rules[0][k].priority);
    CHECK(g.transfers[k].latency_s == (k == 0 ? 0.5 : 0.0));
  }
  const trace t = simulate(g, x.joined.network(), by_priority{});
  check_interval(t.transfers[0], 1, 2.5);
  check_interval(t.transfers[1], 4, 5);
  check_interval(t.transfers[2], 5, 6);
  check_interval(t.computes[1], 6, 7);
  // Without chunks, the old priority is gone, too.
  CHECK(cep.with({{chunk_rule{}}}).transfers.front().priority == 0);
  CHECK(cep.with({{chunk_rule{}}}).transfers.front().volume_bytes == 3);
}

TEST_CASE("a transfer without volume may be cut all the same, and still waits its latency once") {
  const one_transfer x(tasks::transfer{.volume_bytes = 0});
  const cep_graph cep(x.graph, x.joined.network());
  CHECK(schedule::follow(cep, {{chunk_rule{}}}).latency.value() == near(2.5));
  CHECK(schedule::follow(cep, {{chunk_rule{}, chunk_rule{}, chunk_rule{}}}).latency.value() == near(2.5));
}

TEST_CASE("a graph of no transfers has no flows and no rules") {
  tasks::task_graph_builder b(2);
  b.append_to_order(b.add(tasks::compute_task{.stage = stage_id(0), .device = device_id(0), .duration_s = 3}));
  const cluster c = wired(2);
  const cep_graph cep(std::move(b).build(), c.network());
  CHECK(cep.messages() == 0);
  CHECK(cep.transfer_rules({}).empty());
  CHECK(schedule::follow(cep, {}).latency.value() == near(3));
  CHECK(cep.bound().value() == near(3));
}

TEST_CASE("chunks change no memory, no bytes and no order of a device") {
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 60; ++seed) {
    const instance i = random_instance(seed, plan_kind::mixed);
    INFO("seed " << seed);
    const cluster c = i.cluster();
    const cep_graph cep(tasks::expand(without_rules(i.plan), i.model(), c, roofline{}), c.network());
    const tasks::task_graph g = cep.with(message_rules(cep.messages(), std::vector<chunk_rule>(3)));
    REQUIRE(g.transfers.size() == 3 * cep.tasks().transfers.size());
    REQUIRE(g.static_bytes == cep.tasks().static_bytes);
    REQUIRE(g.used == cep.tasks().used);
    REQUIRE(g.device_order == cep.tasks().device_order);
    const trace whole = simulate(cep.tasks(), c.network(), by_priority{}), cut = simulate(g, c.network(), by_priority{});
    for (std::size_t r = 0; r < whole.resource_bytes.size(); ++r) REQUIRE(cut.resource_bytes[r] == Approx(whole.resource_bytes[r]));
    for (std::size_t d = 0; d < c.size(); ++d) REQUIRE(cut.sent_bytes[d] == Approx(whole.sent_bytes[d]));
    // Chunks of equal priority behave like the whole transfer.
    REQUIRE(cut.latency.value() == Approx(whole.latency.value()).epsilon(1e-9));
  }
}

/// The graph with a path for the order of each device.
static boost::compressed_sparse_row_graph<boost::directedS> boost_graph(const cep_graph& cep) {
  const tasks::task_graph& g = cep.tasks();
  std::vector<std::pair<tasks::node_id, tasks::node_id>> edges;
  for (tasks::node_id n = 0; n < g.size(); ++n) {
    for (const tasks::node_id m : g.successors_of(n)) edges.emplace_back(n, m);
  }
  for (const auto& order : g.device_order) {
    for (std::size_t i = 1; i < order.size(); ++i) edges.emplace_back(order[i - 1], order[i]);
  }
  return {boost::edges_are_unsorted_multi_pass, edges.begin(), edges.end(), g.size()};
}

TEST_CASE("Boost.Graph sorts a CEP graph and finds its longest paths") {
  const auto check = [](const tasks::task_graph& graph, const network& net) {
    const cep_graph cep(graph, net);
    const auto b = boost_graph(cep);
    REQUIRE(num_vertices(b) == cep.tasks().size());
    std::vector<tasks::node_id> reversed;
    boost::topological_sort(b, std::back_inserter(reversed));
    REQUIRE(reversed.size() == cep.tasks().size());
    std::vector<std::size_t> position(reversed.size());
    for (std::size_t i = 0; i < reversed.size(); ++i) position[reversed[i]] = reversed.size() - i;
    std::size_t in_order = 0;
    for (tasks::node_id n = 0; n < cep.tasks().size(); ++n) {
      for (const tasks::node_id m : cep.tasks().successors_of(n)) {
        REQUIRE(position[n] < position[m]);
        ++in_order;
      }
    }
    for (const auto& order : cep.tasks().device_order) {
      for (std::size_t i = 1; i < order.size(); ++i) {
        REQUIRE(position[order[i - 1]] < position[order[i]]);
        ++in_order;
      }
    }
    REQUIRE(num_edges(b) == in_order);  // and no other edges

    // Longest paths from every node: edges weigh what their target takes; no transfer here has a late release.
    const tasks::path_times paths = tasks::longest_paths(cep.tasks(), net);
    using edge = boost::graph_traits<std::remove_const_t<decltype(b)>>::edge_descriptor;
    const auto weight = boost::make_function_property_map<edge, double>([&](const edge& e) { return -paths.alone_s[target(e, b)]; });
    double longest = 0, last = 0;
    for (const double end : paths.earliest_end_s) last = std::max(last, end);
    for (tasks::node_id n = 0; n < cep.tasks().size(); ++n) {
      if (paths.earliest_start_s[n] > 0) continue;
      std::vector<double> distance(cep.tasks().size());
      boost::dag_shortest_paths(b, n, boost::weight_map(weight).distance_map(distance.data()));
      for (const double d : distance) {
        if (d <= 0) longest = std::max(longest, paths.alone_s[n] - d);
      }
    }
    REQUIRE(longest == Approx(last).epsilon(1e-12));
  };
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 200; ++seed) {
    INFO("seed " << seed);
    const random_cep r = random_small_cep(seed, 1, 8);
    check(r.graph, r.cluster.network());
  }
  for_random_instances(3, [&](const instance& i) {
    const cluster c = i.cluster();
    check(tasks::expand(without_rules(i.plan), i.model(), c, roofline{}), c.network());
  });
}

}  // namespace test_cep_graph
