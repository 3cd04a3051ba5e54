// SPDX-License-Identifier: BSL-1.0
// Background traffic, and runs that end before their work does.

#include <hetplan/simulate/simulator.hpp>

#include <catch2/catch.hpp>

#include "support/by_hand.hpp"
#include "support/random_source.hpp"

namespace test_background {

using namespace hetplan;
using namespace hetplan::test;

namespace {

/// Two stages on two devices of one medium: F 1 s, 2 bytes, F 1 s; forward only.
struct two_stages {
  planning_graph model = model_of({work_of("a", 1), work_of("b", 1)}, {{0, 1, 2}});
  cluster devices = wireless(3);
  plan given = plan_of(mode::inference, 1, 1, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})});

  [[nodiscard]] judgement run(const simulator_options& o) const { return judged(given, model, devices, o); }
};

double moved_by(const trace& t, std::uint32_t transfer, double until) {
  double moved = 0, rate = 0, since = 0;
  for (const rate_change& r : t.rates) {
    if (r.transfer != transfer) continue;
    moved += rate * (std::min(r.at_s, until) - std::min(since, until));
    rate = r.rate;
    since = r.at_s;
  }
  return moved;
}

}  // namespace

TEST_CASE("a background transfer takes its share and the run does not wait for it") {
  // Alone, the bytes would take 1-3 at 1 B/s. With 10 background bytes from 0.5 on, they take 1-5 at half the rate, and F ends at 6. The
  // background has moved 0.5 bytes alone, 2 beside, and 1 alone again by 6.
  const two_stages x;
  const judgement j = x.run({.background = {{device_id(2), device_id(0), 10_B, 500_ms}}});
  CHECK(j.trace.latency.value() == near(6));
  check_interval(sent(j, transfer_kind::forward, 0, 1), 1, 5);
  REQUIRE(j.trace.background_left.size() == 1);
  CHECK(j.trace.background_left[0] == near(6.5));
  CHECK(j.trace.sent_bytes[2] == 0);  // only bytes of the plan count
  CHECK(j.trace.resource_bytes[0] == near(2));
}

TEST_CASE("under priority a background transfer waits for more urgent ones") {
  two_stages x;
  x.given.sharing_policy = sharing::priority;
  const judgement j = x.run({.background = {{device_id(2), device_id(0), 10_B, {}, 7}}});
  CHECK(j.trace.latency.value() == near(4));
  CHECK(j.trace.background_left[0] == near(8));  // it moves 0-1 and 3-4
}

TEST_CASE("a background transfer that is over leaves nothing, and one that is empty neither") {
  const two_stages x;
  const judgement j = x.run(
      {.background = {
           {device_id(0), device_id(2), 500_B / 1000.0}, {device_id(1), device_id(2), 0_B}, {device_id(1), device_id(2), 3_B, 100_s}}});
  CHECK(j.trace.latency.value() == near(4));
  CHECK(j.trace.background_left == std::vector<double>{0, 0, 3});
}

TEST_CASE("a run until a time counts what was under way as far as it came") {
  // F 0..1, bytes 1..3, F 3..4.
  const two_stages x;
  const judgement j = x.run({.until = 2_s});
  CHECK(j.trace.status.result == outcome::stopped);
  CHECK(j.trace.latency.value() == near(2));
  CHECK(j.trace.busy_s == std::vector<double>{1, 0, 0});
  CHECK(j.trace.sent_bytes[0] == near(1));
  const judgement later = x.run({.until = 3500_ms});
  CHECK(later.trace.busy_s[1] == near(0.5));
  CHECK(later.trace.received_bytes[1] == near(2));
  const judgement whole = x.run({.until = 4_s});
  CHECK(whole.trace.status.ok());
  CHECK(whole.trace == x.run({}).trace);
}

TEST_CASE("a run that would wait forever ends at its limit") {
  const two_stages x;
  const judgement j = x.run({.until = 9_s, .capacities = {{0_s, resource_id(0), {}}}});
  CHECK(j.trace.latency.value() == near(9));
  CHECK(j.trace.sent_bytes[0] == 0);
  CHECK_THROWS_AS(x.run({.capacities = {{0_s, resource_id(0), {}}}}), invalid_input);
}

TEST_CASE("traffic in the background acts on the rest as transfers of the graph do") {
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 300; ++seed) {
    INFO("seed " << seed);
    random_source random(seed);
    const bool by_rank = random.chance(0.5);
    const int own = random.integer(1, 5), foreign = random.integer(1, 5);
    const cluster c("random", workers(4), ring{1_MB_per_s * random.between(0.5, 2)});
    tasks::task_graph_builder all(4), mine(4);
    simulator_options o;
    for (int i = 0; i < own + foreign; ++i) {
      const int from = random.integer(0, 3), to = (from + random.integer(1, 3)) % 4;
      tasks::transfer t{.from = device_id(from),
                        .to = device_id(to),
                        .microbatch = i,
                        .priority = random.integer(0, 2),
                        .volume_bytes = random.between(1e5, 1e7),
                        .release_s = random.between(0, 10)};
      t.route = all.add_route(*c.network().find(t.from, t.to));
      all.add(t);
      if (i < own) {
        t.route = mine.add_route(*c.network().find(t.from, t.to));
        mine.add(t);
      } else {
        o.background.push_back({t.from, t.to, bytes(t.volume_bytes), seconds(t.release_s), t.priority});
      }
    }
    const policy_of_plan policy{by_rank ? sharing::priority : sharing::fair_share};
    const trace together = simulate(std::move(all).build(), c.network(), policy, {.record = true});
    const trace apart = simulate(std::move(mine).build(), c.network(), policy, o);
    for (std::size_t i = 0; i < static_cast<std::size_t>(own); ++i)
      CHECK(apart.transfers[i].end_s == Approx(together.transfers[i].end_s).epsilon(1e-9));
    for (std::size_t i = 0; i < o.background.size(); ++i) {
      const auto t = static_cast<std::uint32_t>(own) + static_cast<std::uint32_t>(i);
      const double left = o.background[i].volume.value() - moved_by(together, t, apart.latency.value());
      CHECK(apart.background_left[i] == Approx(left).margin(1e-3).epsilon(1e-9));
    }
  }
}

TEST_CASE("background traffic that makes no sense is refused") {
  const two_stages x;
  const auto with = [&](const background_transfer& b) { return [&x, b] { return x.run({.background = {b}}); }; };
  CHECK_THROWS_WITH(with({device_id(0), device_id(9), 1_B})(), Catch::Contains("background transfer 0"));
  CHECK_THROWS_WITH(with({device_id(0), device_id(1), bytes(-1)})(), Catch::Contains("background transfer 0"));
  CHECK_THROWS_WITH(with({device_id(0), device_id(0), 1_B})(), Catch::Contains("no route"));
  CHECK_THROWS_WITH(x.run({.until = seconds(-1)}), Catch::Contains("until"));
}

}  // namespace test_background
