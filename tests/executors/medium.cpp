// SPDX-License-Identifier: BSL-1.0
// The medium in virtual time: arrival times of pieces, whichever flow requests them and however late.
#include <catch2/catch.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cluster/topology.hpp>
#include <hetplan/simulate/simulator.hpp>

#include "executors/common/medium.hpp"
#include "support/random_source.hpp"

using executors::flow_rule, executors::flow_state;
using hetplan::resource_id;

namespace {

/// Flows in virtual time that request each piece a fixed delay after the last one has arrived.
class bench {
 public:
  struct job {
    double begin_s = 0;
    double bytes = 0;
    double late_s = 0;  ///< delay of each request
    double latency_s = 0;
  };

  bench(std::vector<double> capacities, std::vector<flow_rule> rules, std::size_t slots = 0)
      : free_at_s_(capacities.size() + slots, 0), states_(rules.size()) {
    std::vector<hetplan::resource> all;
    for (const double c : capacities) all.push_back({"r" + std::to_string(all.size()), hetplan::bytes_per_second(c)});
    medium_ = std::make_unique<executors::medium<std::mutex>>(all, std::move(rules), free_at_s_, states_, lock_);
  }
  executors::medium<std::mutex>& medium() { return *medium_; }

  /// Returns the arrival time of each flow's last piece.
  std::vector<double> run(std::vector<job> jobs) {
    constexpr double patience_s = 1e-4, never = 1e300;
    std::vector<double> end_s(jobs.size(), 0), next_s;
    std::vector<char> entered(jobs.size(), 0), begun(jobs.size(), 0);
    for (const job& j : jobs) next_s.push_back(j.begin_s);
    for (;;) {
      const auto next = std::min_element(next_s.begin(), next_s.end());
      if (*next == never) return end_s;
      const auto f = static_cast<std::size_t>(next - next_s.begin());
      job& j = jobs[f];
      if (entered[f] == 0) {
        if (const auto from_s = medium_->enter(f, j.begin_s)) {
          entered[f] = 1;
          j.begin_s = *from_s + j.latency_s;
          *next = std::max(*next, j.begin_s);
        } else {
          *next += patience_s;
        }
        continue;
      }
      if (std::exchange(begun[f], 1) == 0) medium_->begin(f, j.begin_s);
      if (j.bytes <= 0) {
        medium_->end(f, end_s[f]);
        *next = never;
        continue;
      }
      if (const auto t = medium_->reserve(f, std::min(j.bytes, medium_->piece_bytes(f)))) {
        j.bytes -= t->bytes;
        end_s[f] = t->end_s;
        *next = std::max(*next, j.bytes > 0 ? t->asks_again_s + j.late_s : t->end_s);
      } else {
        *next += patience_s;
      }
    }
  }

 private:
  std::mutex lock_;
  std::vector<double> free_at_s_;
  std::vector<flow_state> states_;
  std::unique_ptr<executors::medium<std::mutex>> medium_;
};

flow_rule over(std::vector<int> resources, int priority = 0) {
  flow_rule r{{}, priority};
  for (const int i : resources) r.via.push_back({resource_id(i), 1});
  return r;
}

constexpr double piece_s = 0.75e-3;

}  // namespace

TEST_CASE("A flow alone takes its bytes over the narrowest resource of its route, however late it wakes up") {
  for (const double late_s : {0.0, 0.003}) {
    bench b({100, 40}, {over({0, 1})});
    CHECK(b.run({{1, 80, late_s}})[0] == Approx(1 + 80.0 / 40));
  }
}

TEST_CASE("Weights multiply what a flow takes") {
  flow_rule repeated = over({0});
  repeated.via[0].weight = 2;
  bench b({100}, {repeated});
  CHECK(b.run({{0, 100}})[0] == Approx(2));
}

TEST_CASE("Flows that begin together share a resource fairly, to a piece each") {
  for (const std::size_t k : {2U, 3U, 5U}) {
    bench b({1000}, std::vector<flow_rule>(k, over({0})));
    const auto n = static_cast<double>(k);
    for (const double end_s : b.run(std::vector<bench::job>(k, {0, 200}))) CHECK(end_s == Approx(0.2 * n).margin(2 * n * piece_s));
  }
}

TEST_CASE("A short flow beside a long one leaves after twice its time alone, and the resource is never idle") {
  bench b({1000}, {over({0}), over({0})});
  const auto end_s = b.run({{0, 900}, {0.1, 100}});
  CHECK(end_s[1] == Approx(0.3).margin(3 * piece_s));
  CHECK(end_s[0] == Approx(1));
}

TEST_CASE("Flows that wake up late share as fairly and lose nothing together") {
  bench b({1000}, {over({0}), over({0})});
  const auto end_s = b.run({{0, 500, 0.001}, {0, 500, 0.001}});
  CHECK(std::max(end_s[0], end_s[1]) == Approx(1));
  CHECK(std::min(end_s[0], end_s[1]) == Approx(1).margin(4 * piece_s));
}

TEST_CASE("A flow with another bottleneck leaves the rest of a resource to others") {
  bench b({1000, 300}, {over({0, 1}), over({0})});  // max-min: 300 and 700
  const auto end_s = b.run({{0, 300}, {0, 700}});
  CHECK(end_s[0] == Approx(1).epsilon(0.03));
  CHECK(end_s[1] == Approx(1).epsilon(0.03));
}

TEST_CASE("The smaller priority number goes first, the other one takes what is left") {
  SECTION("of one resource") {
    bench b({1000}, {over({0}, 0), over({0}, 1)});
    const auto end_s = b.run({{0.1, 400}, {0, 500}});
    CHECK(end_s[0] == Approx(0.5).margin(2 * piece_s));
    CHECK(end_s[1] == Approx(0.9).margin(2 * piece_s));
  }
  SECTION("of a resource that the first one cannot fill") {
    bench b({1000, 500}, {over({0, 1}, 0), over({0}, 1)});
    const auto end_s = b.run({{0, 500}, {0, 500}});
    CHECK(end_s[0] == Approx(1).epsilon(0.03));
    CHECK(end_s[1] == Approx(1).epsilon(0.03));
  }
  SECTION("but elsewhere nobody waits") {
    bench b({1000, 1000}, {over({0}, 0), over({1}, 1)});
    CHECK(b.run({{0, 400}, {0, 400}})[1] == Approx(0.4));
  }
}

namespace {

/// A flow of 1000 a second that holds slots.
flow_rule holding(std::vector<std::size_t> slots, std::size_t place) {
  flow_rule r = over({0});
  r.slots = std::move(slots);
  r.place = place;
  return r;
}

}  // namespace

TEST_CASE("A flow waits for whoever holds its slot, latency included, and loses nothing to a late look") {
  bench b({1000}, {holding({1}, 0), holding({1}, 1)}, 2);
  const auto end_s = b.run({{0, 200, 0, 0.1}, {0.05, 200, 0, 0.1}});
  CHECK(end_s[0] == Approx(0.3));
  CHECK(end_s[1] == Approx(0.6));
}

TEST_CASE("Of the flows that wait for a slot, the first in line is granted it, and one that needs others may pass") {
  bench b({1000}, {holding({0, 2}, 3), holding({0, 3}, 2), holding({0, 2}, 1), holding({1, 3}, 4)}, 4);
  const auto end_s = b.run({{0, 100}, {0.01, 100}, {0.02, 100}, {0.5, 100}});
  CHECK(end_s[0] == Approx(0.1));
  CHECK(end_s[2] == Approx(0.2));
  CHECK(end_s[1] == Approx(0.3));
  CHECK(end_s[3] == Approx(0.6));
  bench passing({1000}, {holding({0, 2}, 0), holding({0, 3}, 1), holding({1, 3}, 2)}, 4);
  const auto passed_s = passing.run({{0, 100}, {0, 100}, {0.15, 100}});
  CHECK(passed_s[1] == Approx(0.2));
  CHECK(passed_s[2] == Approx(0.3));
}

TEST_CASE("Nothing crosses a blocked resource") {
  bench b({1000}, {over({0})});
  b.medium().block(resource_id(0), 5);
  CHECK(b.run({{0, 100}})[0] == Approx(5.1));
}

TEST_CASE("A flow that begins again starts where it says, as soon as the resource is free") {
  bench b({1000}, {over({0})});
  CHECK(b.run({{0, 100}})[0] == Approx(0.1));
  CHECK(b.run({{0.05, 100}})[0] == Approx(0.2));
  CHECK(b.run({{1, 100}})[0] == Approx(1.1));
}

TEST_CASE("A random crowd that waits for ports takes as long as in the simulator") {
  const std::uint64_t seed = GENERATE(range<std::uint64_t>(0, 8)) + hetplan::test::first_seed();
  INFO("seed " << seed);
  hetplan::test::random_source random(seed);
  constexpr int devices = 4;
  std::vector<hetplan::device> all;
  for (int d = 0; d < devices; ++d) all.push_back({.name = "d" + std::to_string(d), .memory = hetplan::bytes(1)});
  const hetplan::cluster c("crowd", all, hetplan::shared_medium{hetplan::bytes_per_second(1000), hetplan::seconds(0.01)});
  hetplan::tasks::task_graph_builder graph(devices);
  std::vector<bench::job> jobs;
  std::vector<flow_rule> rules;
  for (int i = 0; i < 8; ++i) {
    const int from = random.integer(0, devices - 1), to = (from + random.integer(1, devices - 1)) % devices;
    jobs.push_back({random.between(0, 0.5), random.between(50, 400), 0, 0.01});
    rules.push_back(holding({static_cast<std::size_t>(from), static_cast<std::size_t>(devices + to)}, static_cast<std::size_t>(i)));
    graph.add(hetplan::tasks::transfer{.from = hetplan::device_id(from),
                                       .to = hetplan::device_id(to),
                                       .priority = i,
                                       .route = graph.add_route(*c.network().find(hetplan::device_id(from), hetplan::device_id(to))),
                                       .volume_bytes = jobs.back().bytes,
                                       .latency_s = jobs.back().latency_s,
                                       .release_s = jobs.back().begin_s});
  }
  bench b({1000}, rules, 2 * devices);
  const auto end_s = b.run(jobs);
  const hetplan::trace expected = hetplan::simulate(std::move(graph).build(), c.network(), hetplan::exclusive_ports{});
  for (std::size_t i = 0; i < jobs.size(); ++i) CHECK(end_s[i] == Approx(expected.transfers[i].end_s).margin(2 * piece_s * 8));
}

TEST_CASE("A random crowd on one medium takes as long as in the simulator") {
  const std::uint64_t seed = GENERATE(range<std::uint64_t>(0, 8)) + hetplan::test::first_seed();
  INFO("seed " << seed);
  hetplan::test::random_source random(seed);
  const int flows = random.integer(2, 6);
  const bool ranked = random.chance(0.5);
  std::vector<bench::job> jobs;
  std::vector<flow_rule> rules;
  const hetplan::device a{.name = "a", .memory = hetplan::bytes(1)}, other{.name = "b", .memory = hetplan::bytes(1)};
  const hetplan::cluster two("two", {a, other}, hetplan::shared_medium{hetplan::bytes_per_second(1000), {}});
  hetplan::tasks::task_graph_builder graph(2);
  const std::uint32_t way = graph.add_route(*two.network().find(hetplan::device_id(0), hetplan::device_id(1)));
  for (int i = 0; i < flows; ++i) {
    const double begin_s = random.between(0, 0.5);
    jobs.push_back({begin_s, random.between(50, 400), random.between(0, 0.001)});
    rules.push_back(over({0}, ranked ? i : 0));
    graph.add(hetplan::tasks::transfer{.from = hetplan::device_id(0),
                                       .to = hetplan::device_id(1),
                                       .priority = rules.back().priority,
                                       .route = way,
                                       .volume_bytes = jobs.back().bytes,
                                       .release_s = begin_s});
  }
  bench b({1000}, rules);
  const auto end_s = b.run(jobs);
  const hetplan::trace expected = hetplan::simulate(std::move(graph).build(), two.network(), hetplan::by_priority{});
  for (std::size_t i = 0; i < jobs.size(); ++i) CHECK(end_s[i] == Approx(expected.transfers[i].end_s).margin(2 * piece_s * flows));
}
