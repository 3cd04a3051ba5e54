// SPDX-License-Identifier: BSL-1.0
// Earliest ends and tails of random task graphs against Boost.Graph's shortest paths on negated weights.

#include <hetplan/tasks/task_graph.hpp>

#include <algorithm>
#include <vector>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dag_shortest_paths.hpp>
#include <catch2/catch.hpp>

#include "support/by_hand.hpp"
#include "support/random_instance.hpp"

using namespace hetplan;
using namespace hetplan::test;

namespace {

double alone_s(const tasks::task_graph& g, const network& net, tasks::node_id n) {
  if (g.is_compute(n)) return g.computes[n].duration_s;
  if (!g.is_transfer(n)) return 0;
  const tasks::transfer& t = g.transfer_at(n);
  double slowest = 0;
  for (const resource_use& u : g.routes[t.route].via)
    slowest = std::max(slowest, t.volume_bytes / (net[u.resource].capacity.value() / u.weight));
  return t.latency_s + slowest;
}

std::vector<double> longest_ends(const tasks::task_graph& g, const network& net) {
  using graph =
      boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, boost::property<boost::edge_weight_t, double>>;
  graph b(g.size() + 1);
  const auto source = static_cast<tasks::node_id>(g.size());
  const auto join = [&](tasks::node_id from, tasks::node_id to) { boost::add_edge(from, to, -alone_s(g, net, to), b); };
  for (tasks::node_id n = 0; n < g.size(); ++n) {
    const double release = g.is_transfer(n) ? g.transfer_at(n).release_s : 0;
    boost::add_edge(source, n, -(release + alone_s(g, net, n)), b);
    for (const tasks::node_id m : g.successors_of(n)) join(n, m);
  }
  for (const auto& order : g.device_order) {
    for (std::size_t i = 1; i < order.size(); ++i) join(order[i - 1], order[i]);
  }
  std::vector<double> distance(g.size() + 1);
  boost::dag_shortest_paths(b, source, boost::distance_map(distance.data()));
  distance.pop_back();
  for (double& d : distance) d = -d;
  return distance;
}

/// Returns each node's time from its end to the end of all: shortest paths from a sink behind all nodes, on the reversed graph.
std::vector<double> longest_tails(const tasks::task_graph& g, const network& net) {
  using graph =
      boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, boost::property<boost::edge_weight_t, double>>;
  graph b(g.size() + 1);
  const auto sink = static_cast<tasks::node_id>(g.size());
  const auto join = [&](tasks::node_id from, tasks::node_id to) { boost::add_edge(to, from, -alone_s(g, net, to), b); };
  for (tasks::node_id n = 0; n < g.size(); ++n) {
    boost::add_edge(sink, n, 0, b);
    for (const tasks::node_id m : g.successors_of(n)) join(n, m);
  }
  for (const auto& order : g.device_order) {
    for (std::size_t i = 1; i < order.size(); ++i) join(order[i - 1], order[i]);
  }
  std::vector<double> distance(g.size() + 1);
  boost::dag_shortest_paths(b, sink, boost::distance_map(distance.data()));
  distance.pop_back();
  for (double& d : distance) d = -d;
  return distance;
}

/// Checks that no node's start + time + tail exceeds the critical path, and that critical nodes include a first and a last one.
void check_tails(const tasks::task_graph& g, const network& net) {
  const tasks::path_times t = tasks::longest_paths(g, net);
  const std::vector<double> theirs = longest_tails(g, net);
  double off = 0, last = 0;
  for (const double end : t.earliest_end_s) last = std::max(last, end);
  std::size_t critical = 0, starts = 0, ends = 0;
  for (tasks::node_id n = 0; n < g.size(); ++n) {
    off = std::max(off, std::abs(t.tail_s[n] - theirs[n]) / std::max(1e-9, theirs[n]));
    REQUIRE(t.alone_s[n] == Approx(alone_s(g, net, n)).epsilon(1e-12));
    const double through = t.earliest_start_s[n] + t.alone_s[n] + t.tail_s[n];
    REQUIRE(through <= last * (1 + 1e-12));
    if (through < last * (1 - 1e-12)) continue;
    ++critical;
    const double release = g.is_transfer(n) ? g.transfer_at(n).release_s : 0;
    starts += t.earliest_start_s[n] <= release;
    ends += t.earliest_end_s[n] >= last * (1 - 1e-12);
  }
  CHECK(off < 1e-12);
  CHECK(critical >= 1);
  CHECK(starts >= 1);
  CHECK(ends >= 1);
  std::vector<std::size_t> position(g.size(), g.size());
  for (std::size_t i = 0; i < t.order.size(); ++i) position[t.order[i]] = i;
  bool in_order = t.order.size() == g.size();
  for (tasks::node_id n = 0; n < g.size(); ++n) {
    for (const tasks::node_id m : g.successors_of(n)) in_order = in_order && position[n] < position[m];
  }
  for (const auto& order : g.device_order) {
    for (std::size_t i = 1; i < order.size(); ++i) in_order = in_order && position[order[i - 1]] < position[order[i]];
  }
  CHECK(in_order);
}

void check_against_boost(const tasks::task_graph& g, const network& net) {
  const std::vector<double> ours = tasks::longest_paths(g, net).earliest_end_s, theirs = longest_ends(g, net);
  REQUIRE(ours.size() == theirs.size());
  double off = 0, last = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    off = std::max(off, std::abs(ours[i] - theirs[i]) / std::max(1e-9, theirs[i]));
    last = std::max(last, theirs[i]);
  }
  CHECK(off < 1e-12);
  CHECK(tasks::schedule_bound(g, net).value() >= last * (1 - 1e-12));
  check_tails(g, net);
}

}  // namespace

TEST_CASE("earliest ends and tails are Boost.Graph's longest paths on random task graphs") {
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 1000; ++seed) {
    INFO("seed " << seed);
    random_source random(seed);
    const int devices = random.integer(2, 5);
    const cluster c = wireless(devices, 0, random.between(0.5, 2));
    tasks::task_graph_builder b(static_cast<std::size_t>(devices));
    const auto air = b.add_route({{}, {{resource_id(0), random.between(0.5, 2)}}});
    const auto beam = b.add_route({});
    std::vector<tasks::task_graph_builder::handle> nodes;
    for (int n = random.integer(1, 40); n > 0; --n) {
      const double what = random.unit();
      if (what < 0.5) {
        nodes.push_back(b.add(tasks::compute_task{.stage = stage_id(0),
                                                  .device = device_id(random.integer(0, devices - 1)),
                                                  .duration_s = random.chance(0.2) ? 0 : random.unit()}));
        b.append_to_order(nodes.back());
      } else if (what < 0.9) {
        nodes.push_back(b.add(tasks::transfer{.from = device_id(0),
                                              .to = device_id(1),
                                              .route = random.chance(0.8) ? air : beam,
                                              .volume_bytes = random.unit(),
                                              .latency_s = random.chance(0.5) ? 0 : random.unit(),
                                              .release_s = random.chance(0.7) ? 0 : random.between(0, 5)}));
      } else {
        nodes.push_back(b.add_barrier());
      }
      for (int k = random.integer(0, 3); k > 0 && nodes.size() > 1; --k) b.depend(nodes[random.index(nodes.size() - 1)], nodes.back());
    }
    check_against_boost(std::move(b).build(), c.network());
  }
}

TEST_CASE("earliest ends and tails are Boost.Graph's longest paths on the task graphs of plans") {
  for_random_instances(20, [](const instance& i) {
    const cluster c = i.cluster();
    check_against_boost(tasks::expand(i.plan, i.model(), c, roofline{}), c.network());
  });
}

TEST_CASE("the schedule bound is the largest of critical path, busiest device and busiest resource") {
  // Path: F 1, 2 bytes at peak 1, F 1: 4. Device: two tasks of 1.
  const planning_graph m = model_of({work_of("a", 1), work_of("b", 1)}, {{0, 1, 2}});
  plan p = plan_of(mode::inference, 1, 1, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})});
  const auto bound = [&](const cluster& c) { return tasks::schedule_bound(tasks::expand(p, m, c, roofline{}), c.network()).value(); };
  CHECK(bound(wired(2, 0.5)) == near(4.5));
  p.microbatches = 5;
  CHECK(bound(wired(2, 0, 0.5)) == near(20));  // 10 bytes at 1/2; the path is 1 + 4 + 1 after the fifth task: 10
  // 20 tasks of 1 s and almost no bytes: the path of the last one, 20 + 1.
  p.microbatches = 20;
  CHECK(bound(wired(2, 0, 1e6)) == near(21 + 2e-6));
}

TEST_CASE("a tail is what follows a node's end: tasks behind it on its device too, releases not") {
  // d0: a 1, b 2. d1: c 4. a -> 3 bytes, latency 1/2 -> c; a transfer without consumer, released at 20.
  tasks::task_graph_builder b(2);
  const cluster c = wired(2);
  const auto task = [&](int d, double s) {
    const auto t = b.add(tasks::compute_task{.stage = stage_id(0), .device = device_id(d), .duration_s = s});
    b.append_to_order(t);
    return t;
  };
  const auto first = task(0, 1), second = task(0, 2), third = task(1, 4);
  const auto way = b.add_route(*c.network().find(device_id(0), device_id(1)));
  const auto t = b.add(tasks::transfer{.from = device_id(0), .to = device_id(1), .route = way, .volume_bytes = 3, .latency_s = 0.5});
  b.depend(first, t);
  b.depend(t, third);
  static_cast<void>(b.add(tasks::transfer{.from = device_id(0), .to = device_id(1), .route = way, .volume_bytes = 1, .release_s = 20}));
  static_cast<void>(second);
  const tasks::task_graph g = std::move(b).build();
  const tasks::path_times p = tasks::longest_paths(g, c.network());
  const std::vector<double> tails{7.5, 0, 0, 4, 0}, starts{0, 1, 4.5, 1, 20}, alone{1, 2, 4, 3.5, 1};
  for (std::size_t n = 0; n < tails.size(); ++n) {
    CHECK(p.tail_s[n] == near(tails[n]));
    CHECK(p.earliest_start_s[n] == near(starts[n]));
    CHECK(p.alone_s[n] == near(alone[n]));
  }
  const tasks::path_times any_time = tasks::longest_paths(g, c.network(), false);
  CHECK(any_time.earliest_start_s[4] == 0);
  CHECK(any_time.tail_s == p.tail_s);
}
