// SPDX-License-Identifier: BSL-1.0
#include <hetplan/schedule/local_search.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/schedule/event_order.hpp>
#include <hetplan/schedule/exact_schedule.hpp>
#include <hetplan/schedule/transfer_priority.hpp>
#include <hetplan/solve/glpk.hpp>

#include "support/by_hand.hpp"
#include "support/random_cep.hpp"
#include "support/random_instance.hpp"

namespace test_local_search {

using namespace hetplan;
using namespace hetplan::test;
using schedule::cep_graph;
using schedule::network_schedule;

namespace {

plan without_rules(plan p) {
  p.sharing_policy = sharing::fair_share;
  p.schedule.transfers.clear();
  return p;
}

bool same(const network_schedule& a, const network_schedule& b) {
  return a.latency == b.latency && a.rules == b.rules && a.sharing_policy == b.sharing_policy && a.steps == b.steps && a.bound == b.bound &&
         a.gap == b.gap && a.status == b.status;
}

/// A schedule that says of itself what the simulator says of it, within its bound.
void require_true(const cep_graph& cep, const network_schedule& s) {
  REQUIRE_FALSE(s.is_prescribed());
  REQUIRE((s.sharing_policy == sharing::fair_share) == s.rules.empty());
  REQUIRE(schedule::run(cep, s).latency == s.latency);
  REQUIRE(s.bound == cep.bound());
  REQUIRE(s.latency.value() >= s.bound.value() * (1 - 1e-9));
  REQUIRE(s.gap == std::max(0.0, gap_to(s.latency, s.bound)));
}

std::size_t most_chunks(const network_schedule& s) {
  std::size_t most = 0;
  for (const auto& chunks : s.rules) most = std::max(most, chunks.size());
  return most;
}

}  // namespace

TEST_CASE("local search finds the best order of three transfers, which no priority rule starts from") {
  // One medium. From 0: A 4 bytes, then 1 s; B 2 bytes, then 5 s. C: from 1, 1 byte, then 6 s.
  transfers_alone x(6, {1});
  const auto add = [&](int from, double ready, double volume, double tail) {
    const auto before = x.builder.add(tasks::compute_task{.stage = stage_id(from), .device = device_id(from), .duration_s = ready});
    const auto after = x.builder.add(tasks::compute_task{.stage = stage_id(from + 1), .device = device_id(from + 1), .duration_s = tail});
    x.builder.append_to_order(before);
    x.builder.append_to_order(after);
    const auto t = x.add(from, from + 1, volume, 0, {{0, 1}});
    x.builder.depend(before, t);
    x.builder.depend(t, after);
  };
  add(0, 0, 4, 1);
  add(2, 0, 2, 5);
  add(4, 1, 1, 6);
  const cep_graph cep(std::move(x.builder).build(), x.joined.network());
  // B 0-1, C 1-2 (8), B 2-3 (8), A 3-7 (8): all that 7 bytes and a tail of 1 allow.
  const network_schedule s = schedule::local_search(cep);
  CHECK(s.latency.value() == near(8));
  CHECK(s.gap == near(0));
  CHECK(s.status.ok());
  CHECK(s.steps < 300);  // a proven optimum ends the search
  CHECK(schedule::uncontrolled(cep).latency.value() > 8.5);
}

TEST_CASE("local search is never slower than transfers left alone nor faster than the bound, on random plans") {
  int faster = 0;
  for_random_instances(25, [&](const instance& i) {  // 350 plans
    const cluster c = i.cluster();
    const cep_graph cep(tasks::expand(without_rules(i.plan), i.model(), c, roofline{}), c.network());
    const network_schedule s = schedule::local_search(cep, {.steps = 25, .seed = cep.tasks().size()});
    require_true(cep, s);
    REQUIRE(s.status.ok());
    REQUIRE(s.steps <= 25);
    const seconds alone = schedule::uncontrolled(cep).latency;
    REQUIRE(s.latency <= alone);
    REQUIRE((s.sharing_policy == sharing::priority) == (s.latency < alone));
    faster += s.latency < alone;
  });
  CHECK(faster >= 20);
}

TEST_CASE("local search is never slower than transfers left alone nor than any priority rule, on small random graphs") {
  int faster = 0, beyond_rules = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 400; ++seed) {
    INFO("seed " << seed);
    const random_cep r = random_small_cep(seed, 3, 10);
    const cep_graph cep(r.graph, r.cluster.network());
    const network_schedule s = schedule::local_search(cep, {.steps = 100, .seed = seed});
    require_true(cep, s);
    const seconds alone = schedule::uncontrolled(cep).latency;
    const seconds ruled = std::min({schedule::list_schedule(cep, schedule::critical_path_first{}).latency,
                                    schedule::list_schedule(cep, schedule::longest_tail_first{}).latency,
                                    schedule::list_schedule(cep, schedule::earliest_first{}).latency,
                                    schedule::list_schedule(cep, schedule::smallest_first{}).latency});
    REQUIRE(s.latency <= alone);
    REQUIRE(s.latency <= ruled * (1 + 1e-12));
    faster += s.latency < alone * (1 - 1e-9);
    beyond_rules += s.latency < std::min(alone, ruled) * (1 - 1e-9);
  }
  CHECK(faster >= 80);
  CHECK(beyond_rules >= 4);
}

TEST_CASE("local search is the same for the same seed, and seeds differ") {
  int differ = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 60; ++seed) {
    INFO("seed " << seed);
    const random_cep r = random_small_cep(seed, 6, 12);
    const cep_graph cep(r.graph, r.cluster.network());
    const network_schedule one = schedule::local_search(cep, {.steps = 60, .seed = 1}),
                           other = schedule::local_search(cep, {.steps = 60, .seed = 2});
    REQUIRE(same(one, schedule::local_search(cep, {.steps = 60, .seed = 1})));
    differ += !same(one, other);
  }
  CHECK(differ >= 3);
}

TEST_CASE("more steps of local search with all else equal start alike, and the first run is transfers left alone") {
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 40; ++seed) {
    INFO("seed " << seed);
    const random_cep r = random_small_cep(seed, 3, 10);
    const cep_graph cep(r.graph, r.cluster.network());
    const network_schedule one = schedule::local_search(cep, {.steps = 1});
    REQUIRE(one.steps == 1);
    REQUIRE(one.status.ok());
    REQUIRE(same(one, schedule::uncontrolled(cep)));
    REQUIRE(schedule::local_search(cep, {.steps = 7}).latency <= one.latency);
  }
}

TEST_CASE("an observer hears of every step of local search, best so far never rising, and stops it with a valid schedule") {
  int stopped = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 60; ++seed) {
    INFO("seed " << seed);
    const random_cep r = random_small_cep(seed, 5, 12);
    const cep_graph cep(r.graph, r.cluster.network());
    std::vector<schedule::schedule_tried> heard;
    const network_schedule all = schedule::local_search(cep, {.steps = 40}, [&](const schedule::schedule_tried& e) {
      heard.push_back(e);
      return control::go;
    });
    REQUIRE(static_cast<long long>(heard.size()) == all.steps);
    for (std::size_t i = 0; i < heard.size(); ++i) {
      REQUIRE(heard[i].steps == static_cast<long long>(i) + 1);
      if (i > 0) REQUIRE(heard[i].latency <= heard[i - 1].latency);
    }
    REQUIRE(heard.back().latency == all.latency);
    for (const long long at : {1, 4, 15}) {
      const network_schedule s = schedule::local_search(
          cep, {.steps = 40}, [&](const schedule::schedule_tried& e) { return e.steps < at ? control::go : control::stop; });
      if (all.steps < at) continue;
      require_true(cep, s);
      REQUIRE(s.status.result == outcome::stopped);
      REQUIRE_THAT(s.status.reason, Catch::Contains("stopped by an observer after " + std::to_string(at) + " runs"));
      REQUIRE(s.steps == at);
      REQUIRE(s.latency == heard[static_cast<std::size_t>(at) - 1].latency);
      ++stopped;
    }
  }
  CHECK(stopped >= 30);
}

TEST_CASE("a time limit of nothing leaves local search with transfers left alone, and says so") {
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 20; ++seed) {
    INFO("seed " << seed);
    const random_cep r = random_small_cep(seed, 4, 10);
    const cep_graph cep(r.graph, r.cluster.network());
    const network_schedule s = schedule::local_search(cep, {.time_limit = 0_s});
    require_true(cep, s);
    REQUIRE(s.latency == schedule::uncontrolled(cep).latency);
    if (s.latency <= cep.bound() * (1 + 1e-12)) {  // proven optimal: there was nothing to stop
      REQUIRE(s.status.ok());
    } else {
      REQUIRE(s.status.result == outcome::stopped);
      REQUIRE_THAT(s.status.reason, Catch::Contains("stopped by its time limit after 1 runs"));
    }
    REQUIRE(schedule::local_search(cep, {.steps = 5, .time_limit = 1000_s}).status.ok());
  }
}

/// The two change places.
struct swap_places {
  schedule::message_rules operator()(const cep_graph&, schedule::message_rules rules, const schedule::contention& at) const {
    std::swap(rules[at.urgent.message][at.urgent.chunk].priority, rules[at.rival.message][at.rival.chunk].priority);
    return rules;
  }
};
/// Messages by their number, last first.
struct last_first {
  schedule::message_rules operator()(const cep_graph& cep, const trace&) const {
    schedule::message_rules rules(cep.messages());
    for (std::size_t f = 0; f < rules.size(); ++f) rules[f] = {{.priority = static_cast<int>(rules.size() - f)}};
    return rules;
  }
};
static_assert(schedule::check_search_start<last_first>() && schedule::check_search_move<swap_places>());

TEST_CASE("from a start of one's own, by a move of one's own, local search never leaves the orders and finds the best of most") {
  int searched = 0, best_found = 0, moved = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 150; ++seed) {
    INFO("seed " << seed);
    const random_cep r = random_small_cep(seed, 3, 5);
    const cep_graph cep(r.graph, r.cluster.network());
    if (cep.messages() > 5) continue;
    seconds least = schedule::uncontrolled(cep).latency;  // or one after the other, in the best of all orders
    std::vector<std::uint32_t> order(cep.messages());
    for (std::uint32_t f = 0; f < order.size(); ++f) order[f] = f;
    do {
      std::vector<schedule::message_chunk> sequence;
      for (const std::uint32_t f : order) sequence.push_back({f, 0});
      least = std::min(least, schedule::follow(cep, schedule::rules_of_sequence(cep.messages(), sequence)).latency);
    } while (std::ranges::next_permutation(order).found);
    const auto search = [&](std::vector<schedule::any_search_move> moves) {
      return schedule::local_search(cep,
                                    {.steps = 150, .seed = seed, .most_chunks = 1, .starts = {last_first{}}, .moves = std::move(moves)});
    };
    const network_schedule begun = search({}), s = search({swap_places{}});
    require_true(cep, begun);
    require_true(cep, s);
    REQUIRE(begun.steps <= 2);  // left alone, and the start
    REQUIRE(s.latency >= least);
    REQUIRE(s.latency <= begun.latency);
    ++searched;
    moved += s.latency < begun.latency * (1 - 1e-9);
    best_found += s.latency <= least * (1 + 1e-9);
  }
  CHECK(moved >= 10);
  CHECK(best_found >= searched * 9 / 10);
}

TEST_CASE("the usual starts and moves by their names are the default, and a priority is a start") {
  int differ = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 30; ++seed) {
    INFO("seed " << seed);
    const random_cep r = random_small_cep(seed, 5, 12);
    const cep_graph cep(r.graph, r.cluster.network());
    using namespace schedule;
    const network_schedule usual = local_search(cep, {.steps = 60});
    local_search_options named{.steps = 60,
                               .starts = {critical_path_first{}, listed_start<longest_tail_first>{}, order_of_ends{}, earliest_first{},
                                          smallest_first{}, all_equal{}},
                               .moves = {overtake_rival{}, hold_back_rival{}, join_rival{}, let_rival_join{}}};
    REQUIRE(same(usual, local_search(cep, named)));
    std::swap(named.moves.front(), named.moves.back());
    differ += !same(usual, local_search(cep, named));
    if (usual.rules.empty()) continue;  // best left alone
    REQUIRE(local_search(cep, {.steps = 2, .starts = {given_rules{usual.rules}}}).latency == usual.latency);
  }
  CHECK(differ >= 3);
}

/// Two transfers on one medium from 0: 4 bytes; and 1 byte, then 5 s.
transfers_alone two_that_meet() {
  transfers_alone x(4, {1});
  x.add(0, 1, 4, 0, {{0, 1}});
  const auto urgent = x.add(2, 3, 1, 0, {{0, 1}});
  const auto after = x.builder.add(tasks::compute_task{.stage = stage_id(9), .device = device_id(3), .duration_s = 5});
  x.builder.append_to_order(after);
  x.builder.depend(urgent, after);
  return x;
}

TEST_CASE("a move may hold a chunk back until a time, which is another schedule though the order is the same") {
  transfers_alone x = two_that_meet();
  const cep_graph cep(std::move(x.builder).build(), x.joined.network());
  const auto wait = [](const cep_graph&, schedule::message_rules rules, const schedule::contention& at) {
    rules[at.rival.message][at.rival.chunk].release = 1_s;
    return rules;
  };
  const network_schedule s = schedule::local_search(cep, {.most_chunks = 1, .starts = {schedule::all_equal{}}, .moves = {wait}});
  CHECK(schedule::uncontrolled(cep).latency.value() == near(7));  // shared until 2, then 5
  CHECK(s.latency.value() == near(6));                            // the other one from 1 on
  CHECK(s.gap == near(0));
}

TEST_CASE("starts and moves whose rules do not fit the graph are named") {
  transfers_alone x = two_that_meet();
  const cep_graph cep(std::move(x.builder).build(), x.joined.network());
  const auto refuse = [&](schedule::local_search_options options, const std::string& words) {
    CHECK_THROWS_WITH(schedule::local_search(cep, options), Catch::Contains(words));
  };
  const auto none = [](const cep_graph&, const trace&) { return schedule::message_rules(); };
  const auto no_chunk = [](const cep_graph&, schedule::message_rules rules, const schedule::contention& at) {
    rules[at.rival.message].clear();
    return rules;
  };
  const auto never = [](const cep_graph& g, const trace&) {
    return schedule::message_rules(g.messages(), {{.release = seconds(std::numeric_limits<double>::infinity())}});
  };
  refuse({.starts = {}}, "local_search: no starts; expected at least one");
  refuse({.starts = {none}}, "search start: rules for 0 messages; expected all 2");
  refuse({.starts = {never}}, "search start: a release of message 0 is not finite; expected a time");
  refuse({.starts = {schedule::all_equal{}}, .moves = {no_chunk}}, "search move: no chunk of message 0; expected at least one");
}

TEST_CASE("without transfers, and with one, local search runs once") {
  const cluster c = wired(2);
  tasks::task_graph_builder none(2);
  none.append_to_order(none.add(tasks::compute_task{.stage = stage_id(0), .device = device_id(0), .duration_s = 3}));
  const network_schedule alone = schedule::local_search(cep_graph(std::move(none).build(), c.network()));
  CHECK(alone.latency.value() == near(3));
  CHECK(alone.status.ok());
  CHECK(alone.steps == 1);
  transfers_alone x(2, {2});
  x.add(0, 1, 4, 1, {{0, 1}});
  const network_schedule one = schedule::local_search(cep_graph(std::move(x.builder).build(), x.joined.network()));
  CHECK(one.latency.value() == near(3));
  CHECK(one.gap == near(0));
  CHECK(one.steps == 1);
  const network_schedule empty = schedule::local_search(cep_graph(tasks::task_graph_builder(2).build(), c.network()));
  CHECK(empty.latency == 0_s);
  CHECK(empty.gap == 0);
}

TEST_CASE("local search cuts no transfer into more chunks than it may, and does cut") {
  std::size_t whole = 1, two = 0, four = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 120; ++seed) {
    INFO("seed " << seed);
    const random_cep r = random_small_cep(seed, 5, 12);
    const cep_graph cep(r.graph, r.cluster.network());
    const auto chunks = [&](int most) {
      return most_chunks(schedule::local_search(cep, {.steps = 80, .seed = seed, .most_chunks = most}));
    };
    REQUIRE(chunks(1) <= 1);
    REQUIRE(chunks(0) <= 1);
    whole = std::max(whole, chunks(1));
    two = std::max(two, chunks(2));
    four = std::max(four, chunks(4));
  }
  CHECK(whole == 1);
  CHECK(two == 2);
  CHECK((four == 3 || four == 4));
}

TEST_CASE("where local search leaves no gap no exact schedule is better") {
  int proven = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 60; ++seed) {
    INFO("seed " << seed);
    const random_cep r = random_small_cep(seed, 2, 4);
    const cep_graph cep(r.graph, r.cluster.network());
    const network_schedule s = schedule::local_search(cep, {.steps = 100});
    if (s.gap > 1e-9) continue;
    ++proven;
    const network_schedule best = schedule::exact_schedule(cep, schedule::uncontrolled(cep), glpk_milp{});
    REQUIRE(best.status.ok());
    REQUIRE(best.latency.value() >= s.latency.value() * (1 - 1e-6));
  }
  CHECK(proven >= 10);
}

}  // namespace test_local_search
