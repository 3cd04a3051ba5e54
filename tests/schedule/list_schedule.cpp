// SPDX-License-Identifier: BSL-1.0
#include <hetplan/schedule/event_order.hpp>
#include <hetplan/simulate/simulator.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "support/by_hand.hpp"
#include "support/random_cep.hpp"

using namespace hetplan;
using namespace hetplan::test;
using schedule::cep_graph;
using schedule::message_chunk;

namespace {

/// Device d0 works until `ready[i]`, sends `volume[i]` over one medium, and the receiver works `tail[i]`.
struct senders {
  cluster joined;
  tasks::task_graph graph;

  senders(const std::vector<double>& ready, const std::vector<double>& volume, const std::vector<double>& tail)
      : joined(wireless(static_cast<int>(2 * ready.size()))) {
    tasks::task_graph_builder b(2 * ready.size());
    for (int i = 0; i < static_cast<int>(ready.size()); ++i) {
      const auto at = static_cast<std::size_t>(i);
      const device_id from(2 * i), to(2 * i + 1);
      const auto before = b.add(tasks::compute_task{.stage = stage_id(2 * i), .device = from, .duration_s = ready[at]});
      const auto after = b.add(tasks::compute_task{.stage = stage_id(2 * i + 1), .device = to, .duration_s = tail[at]});
      b.append_to_order(before);
      b.append_to_order(after);
      const auto t = b.add(tasks::transfer{.from = from,
                                           .to = to,
                                           .from_stage = stage_id(2 * i),
                                           .to_stage = stage_id(2 * i + 1),
                                           .route = b.add_route(*joined.network().find(from, to)),
                                           .volume_bytes = volume[at]});
      b.depend(before, t);
      b.depend(t, after);
    }
    graph = std::move(b).build();
  }
  [[nodiscard]] cep_graph cep() const { return {graph, joined.network()}; }
};

struct last_stage_first {
  [[nodiscard]] double urgency(const tasks::transfer& t, const schedule::transfer_times&) const { return t.from_stage.value; }
};
struct unsure {
  [[nodiscard]] double urgency(const tasks::transfer& t, const schedule::transfer_times&) const {
    return t.from_stage.value == 2 ? std::numeric_limits<double>::quiet_NaN() : 1;
  }
};
struct certain {
  [[nodiscard]] double urgency(const tasks::transfer& t, const schedule::transfer_times&) const {
    return (t.from_stage.value == 2 ? 1 : -1) * std::numeric_limits<double>::infinity();
  }
};
/// Records the times that it receives.
struct listener {
  std::map<std::pair<int, int>, schedule::transfer_times>* heard;
  [[nodiscard]] double urgency(const tasks::transfer& t, const schedule::transfer_times& when) const {
    (*heard)[{t.from_stage.value, t.chunk}] = when;
    return 0;
  }
};
static_assert(schedule::check_transfer_priority<last_stage_first>() && schedule::check_transfer_priority<listener>());

template <class Priority>
double latency(const senders& s, const Priority& p, const schedule::list_options& o = {}) {
  return schedule::list_schedule(s.cep(), p, o).latency.value();
}

}  // namespace

TEST_CASE("two transfers on one medium: what each priority rule makes of them, by hand") {
  // A: from 0, 4 bytes, then 1 s. B: from 1, 3 bytes, then 3 s. Longest paths from their starts: 5 and 6.
  const senders s({0, 1}, {4, 3}, {1, 3});
  // B first: A 0-1, B 1-4 (7), A 4-7 (8). A first: A 0-4 (5), B 4-7 (10).
  CHECK(latency(s, schedule::critical_path_first{}) == near(8));
  CHECK(latency(s, schedule::longest_tail_first{}) == near(8));
  CHECK(latency(s, schedule::smallest_first{}) == near(8));
  CHECK(latency(s, schedule::earliest_first{}) == near(10));
  CHECK(latency(s, last_stage_first{}) == near(8));
  // Uncontrolled, they share the medium: at 1, A has 1 byte left; at half rate each, both end by 7: 8 and 10.
  CHECK(schedule::uncontrolled(s.cep()).latency.value() == near(10));

  // A: 1 byte, then 4 s. B: 5 bytes, then 2 s; both from 0. Longest paths 5 and 7, tails 4 and 2.
  const senders t({0, 0}, {1, 5}, {4, 2});
  CHECK(latency(t, schedule::critical_path_first{}) == near(10));  // B 0-5 (7), A 5-6 (10)
  CHECK(latency(t, schedule::longest_tail_first{}) == near(8));    // A 0-1 (5), B 1-6 (8)
  CHECK(latency(t, schedule::smallest_first{}) == near(8));
  CHECK(latency(t, schedule::earliest_first{}) == near(8));  // a tie: by flow
  CHECK(latency(t, last_stage_first{}) == near(10));
}

TEST_CASE("a list schedule says its bound, its gap and its one run, and is followed by priority") {
  const senders s({0, 0}, {1, 5}, {4, 2});
  const schedule::network_schedule found = schedule::list_schedule(s.cep(), schedule::critical_path_first{});
  CHECK(found.status.ok());
  CHECK(found.sharing_policy == sharing::priority);
  CHECK(found.bound.value() == near(8));  // 6 bytes of both, then the shorter tail
  CHECK(found.gap == near(0.25));
  CHECK(found.steps == 1);
  CHECK_FALSE(found.is_prescribed());
  REQUIRE(found.rules.size() == 2);
  CHECK(found.rules[0].front().priority > found.rules[1].front().priority);
}

TEST_CASE("chunks let a longest path grow more urgent the more of it lies ahead, and others pass between them") {
  // A: 4 bytes, then 3 s. B: 3 bytes, then 3.5 s. In one piece A (7) goes before B (6.5).
  const senders s({0, 0}, {4, 3}, {3, 3.5});
  CHECK(latency(s, schedule::critical_path_first{}) == near(4 + 3 + 3.5));
  // Halves: A1 7, A2 5, B1 6.5, B2 5: A1 0-2, B1 2-3.5, A2 (the smaller flow of a tie) 3.5-5.5 (8.5), B2 5.5-7 (10.5).
  const auto sequence = schedule::urgency_sequence(s.cep(), schedule::critical_path_first{}, {.chunks = 2});
  CHECK(sequence == std::vector<message_chunk>{{0, 0}, {1, 0}, {0, 1}, {1, 1}});
  CHECK(latency(s, schedule::critical_path_first{}, {.chunks = 2}) == near(10.5));
}

TEST_CASE("a priority rule hears of every chunk when it may start, how long it takes alone and what follows") {
  std::map<std::pair<int, int>, schedule::transfer_times> heard;
  const senders s({1, 0}, {4, 3}, {3, 5});
  static_cast<void>(schedule::urgency_sequence(s.cep(), listener{&heard}, {.chunks = 2}));
  REQUIRE(heard.size() == 4);
  const auto is = [&](int stage, int chunk, double start, double alone, double tail) {
    const schedule::transfer_times t = heard.at({stage, chunk});
    CHECK(t.earliest_start_s == near(start));
    CHECK(t.alone_s == near(alone));
    CHECK(t.tail_s == near(tail));
  };
  is(0, 0, 1, 2, 5);
  is(0, 1, 3, 2, 3);
  is(2, 0, 0, 1.5, 6.5);
  is(2, 1, 1.5, 1.5, 5);
}

TEST_CASE("an urgency that is no number is the model's fault, and told; infinite ones are numbers") {
  const senders s({0, 0}, {1, 5}, {4, 2});
  CHECK_THROWS_AS(schedule::list_schedule(s.cep(), unsure{}), invalid_model);
  CHECK_THROWS_WITH(schedule::list_schedule(s.cep(), unsure{}), Catch::Contains("urgency(transfer 1) = nan; expected a number"));
  CHECK(latency(s, certain{}) == near(10));
}

TEST_CASE("fewer than one chunk is refused") {
  const senders s({0, 0}, {1, 5}, {4, 2});
  for (const int chunks : {0, -3}) {
    CHECK_THROWS_AS(schedule::list_schedule(s.cep(), schedule::critical_path_first{}, {.chunks = chunks}), invalid_input);
    CHECK_THROWS_WITH(schedule::urgency_sequence(s.cep(), schedule::critical_path_first{}, {.chunks = chunks}),
                      Catch::Contains("list_schedule: chunks = " + std::to_string(chunks) + "; expected >= 1"));
  }
}

TEST_CASE("a flow of several transfers is as urgent as its most urgent one, wherever that stands") {
  for (const auto& tails : {std::vector<double>{1, 5, 9}, std::vector<double>{9, 5, 1}}) {  // flow 0, flow 1, flow 0
    senders s({0, 0, 0}, {1, 1, 1}, tails);
    const tasks::transfer first = s.graph.transfers[0];
    s.graph.transfers[2] = first;
    s.graph.transfers[2].pass = 1;
    const cep_graph cep = s.cep();
    REQUIRE(cep.messages() == 2);
    CHECK(schedule::urgency_sequence(cep, schedule::longest_tail_first{}) == std::vector<message_chunk>{{0, 0}, {1, 0}});
  }
}

TEST_CASE("chunks keep all bytes, name each chunk once, and no list schedule beats the bound") {
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 150; ++seed) {
    INFO("seed " << seed);
    const random_cep r = random_small_cep(seed, 2, 8);
    const cep_graph cep(r.graph, r.cluster.network());
    for (const int chunks : {1, 2, 5}) {
      auto sequence = schedule::urgency_sequence(cep, schedule::critical_path_first{}, {.chunks = chunks});
      const auto rules = schedule::rules_of_sequence(cep.messages(), sequence);
      for (std::size_t i = 0; i < sequence.size(); ++i)
        REQUIRE(rules[sequence[i].message][sequence[i].chunk].priority == static_cast<int>(i));
      std::sort(sequence.begin(), sequence.end());
      REQUIRE(std::adjacent_find(sequence.begin(), sequence.end()) == sequence.end());
      REQUIRE(sequence.size() == cep.messages() * static_cast<std::size_t>(chunks));
      const schedule::network_schedule s = schedule::list_schedule(cep, schedule::critical_path_first{}, {.chunks = chunks});
      REQUIRE(s.latency.value() >= cep.bound().value() * (1 - 1e-9));
      REQUIRE(s.rules == rules);
      const trace whole = simulate(r.graph, r.cluster.network(), fair_share{}), cut = schedule::run(cep, s);
      REQUIRE(cut.latency == s.latency);
      for (std::size_t d = 0; d < r.cluster.size(); ++d) REQUIRE(cut.received_bytes[d] == Approx(whole.received_bytes[d]).epsilon(1e-12));
    }
  }
}
