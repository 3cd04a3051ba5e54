// SPDX-License-Identifier: BSL-1.0
// Network sharings of a user's: a medium worked by hand, the shipped rule written by a user, and sharings that say what cannot be.

#include <hetplan/cluster/network_sharing.hpp>

#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/recipes/pipeline.hpp>
#include <hetplan/simulate/prescribed.hpp>
#include <hetplan/simulate/simulator.hpp>

#include "support/by_hand.hpp"
#include "support/random_cep.hpp"
#include "support/random_instance.hpp"
#include "support/three_devices.hpp"

using namespace hetplan;
using namespace hetplan::test;

namespace test_network_sharing {

using Catch::Contains;

/// n transfers get 1 / (1 + loss (n - 1)) of the medium together, equal parts each.
struct air {
  double capacity, loss = 0;
  transfers_under_way flows = {};

  void start(double now_s, std::uint32_t number, const tasks::transfer& t, std::span<const resource_use> route) {
    flows.start(now_s, number, t, route);
  }
  void update(double now_s, const rate_changed& changed) {
    double parts = 0;
    for (const auto& f : flows) parts += f.route.front().weight;
    const double usable = capacity / (1 + loss * (static_cast<double>(flows.size()) - 1));
    for (const auto& f : flows) flows.set_rate(now_s, f.number, usable / parts, changed);
  }
  double next_end() const { return flows.next_end(); }
  void finish_until(double time_s, const transfer_finished& finished) { flows.finish_until(time_s, finished); }
};
struct air_that_is_told : air {
  void set_capacity(std::size_t, double told) { capacity = told; }
};
struct air_of_one_sender : air {
  [[nodiscard]] route_access access() const { return route_access::exclusive_links; }
};
/// Fades by itself: half of it from a time on.
struct fading_air : air {
  double fades_s;
  [[nodiscard]] double next_end() const { return std::min(air::next_end(), fades_s); }
  void finish_until(double time_s, const transfer_finished& finished) {
    air::finish_until(time_s, finished);
    if (fades_s > time_s) return;
    capacity /= 2;
    fades_s = std::numeric_limits<double>::infinity();
  }
};
static_assert(check_network_sharing<air>() && check_network_sharing<air_that_is_told>() && check_network_sharing<fading_air>());

/// Transfers of 4 and 6 bytes on one resource of 2; the second is released after 1 s.
transfers_alone pair() {
  transfers_alone x(4, {2});
  x.add(0, 1, 4, 0, {{0, 1}});
  x.add(2, 3, 6, 1, {{0, 1}});
  return x;
}

/// Says one thing that cannot be.
struct liar {
  enum lie { gives_nan, names_nobody, never_ends, nan_ahead, ends_early, ends_nobody, stands_still, in_the_past, idles } says;
  transfers_under_way flows = {};

  void start(double now_s, std::uint32_t number, const tasks::transfer& t, std::span<const resource_use> route) {
    flows.start(now_s, number, t, route);
  }
  void update(double now_s, const rate_changed& changed) {
    if (says == gives_nan) changed(0, std::nan(""));
    if (says == names_nobody) changed(1, 1);
    if (says == never_ends && flows.size() == 1) flows.set_rate(now_s, 0, 0.5, changed);
  }
  double next_end() const {
    if (says == nan_ahead) return std::nan("");
    if (says == in_the_past) return -1;
    if (says == idles) return idle_s + 1e-9;
    return says >= ends_early ? 0.5 : std::numeric_limits<double>::infinity();
  }
  void finish_until(double time_s, const transfer_finished& finished) {
    if (says == ends_early) finished(0);
    if (says == ends_nobody) finished(1);
    idle_s = time_s;
  }
  double idle_s = 0;
};

TEST_CASE("a medium whose capacity falls with the number of senders, by hand") {
  // Alone 2 B/s: 2 bytes are left after 1 s. Both: 2 / (1 + 0.25) = 1.6, 0.8 each: the first ends 2.5 s later, the second has 4 left.
  const trace t = pair().run(air{2, 0.25}, {.record = true});
  check_interval(t.transfers[0], 0, 3.5);
  check_interval(t.transfers[1], 1, 5.5);
  CHECK(t.resource_bytes[0] == near(10));
  const std::vector<rate_change> expected{{0, 0, 2}, {1, 0, 0.8}, {1, 1, 0.8}, {3.5, 0, 0}, {3.5, 1, 2}, {5.5, 1, 0}};
  REQUIRE(t.rates.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(t.rates[i].at_s == near(expected[i].at_s));
    CHECK(t.rates[i].transfer == expected[i].transfer);
    CHECK(t.rates[i].rate == near(expected[i].rate));
  }
}

TEST_CASE("a sharing of one's own hears of capacities, changes by itself, and may ask for exclusive routes") {
  // 1 B/s from 1 s on: the first has 2 left, 0.5 B/s; 5 s: the second has 4 left, 1 B/s.
  const simulator_options slower{.capacities = {{1_s, resource_id(0), bytes_per_second(1)}}};
  for (const trace& t : {pair().run(air_that_is_told{{2}}, slower), pair().run(fading_air{{2}, 1})}) {
    check_interval(t.transfers[0], 0, 5);
    check_interval(t.transfers[1], 1, 9);
  }
  CHECK_THROWS_WITH(pair().run(air{2}, slower), Contains("1 capacity changes under a network sharing that has no set_capacity"));
  const trace alone = pair().run(air_of_one_sender{{2}});
  check_interval(alone.transfers[0], 0, 2);
  check_interval(alone.transfers[1], 2, 5);
}

TEST_CASE("access to a route that has no name is refused, of a policy and of a sharing") {
  struct policy {
    [[nodiscard]] int tier(const tasks::transfer&) const { return 0; }
    [[nodiscard]] route_access access() const { return static_cast<route_access>(99); }
  };
  struct odd_air : air {
    [[nodiscard]] route_access access() const { return static_cast<route_access>(-1); }
  };
  CHECK_THROWS_WITH(pair().run(any_network_policy(policy{})), "network policy: access() = 99; expected a route_access with a name");
  CHECK_THROWS_WITH(pair().run(odd_air{{2}}), "network sharing: access() = -1; expected a route_access with a name");
  CHECK_THROWS_WITH(pair().run(policy{}), "network policy: access() = 99; expected a route_access with a name");
}

TEST_CASE("a run under a sharing of one's own that is cut off counts what has moved") {
  const trace t = pair().run(air{2}, {.until = 2_s});
  CHECK(t.resource_bytes[0] == near(4));  // 2 + 1 of the first, 1 of the second
  CHECK(t.sent_bytes[2] == near(1));
}

TEST_CASE("fair sharing of one medium, written by a user, gives what the fluid network gives") {
  std::size_t compared = 0;
  for_random_instances(12, [&](const instance& i) {
    const cluster given = i.cluster();
    const cluster c("one medium", {given.devices().begin(), given.devices().end()}, shared_medium{bytes_per_second(1e6), 1_ms});
    const tasks::task_graph g = tasks::expand(i.plan, i.model(), c, roofline{});
    const trace shipped = simulate(g, c.network()), own = simulate(g, c.network(), air{1e6});
    compared += g.transfers.size();
    REQUIRE(own.latency.value() == Approx(shipped.latency.value()).epsilon(1e-9));
  });
  CHECK(compared > 1000);
}

TEST_CASE("plans are judged and made under a sharing of one's own, each run with its own copy") {
  const auto medium_of = [](const cluster& given) {
    return cluster("one medium", {given.devices().begin(), given.devices().end()}, shared_medium{bytes_per_second(1e6), 1_ms});
  };
  for_random_instances(6, [&](const instance& i) {
    const cluster c = medium_of(i.cluster());
    const planning_graph model = i.model();
    const judge_models lossy{.sharing = air{1e6, 0.3}};
    const judgement j = judge(i.plan, model, c, roofline{}, lossy), again = judge(i.plan, model, c, roofline{}, lossy);
    CHECK(j.trace.transfers == again.trace.transfers);
    CHECK(j.trace.transfers == simulate(j.graph, c.network(), air{1e6, 0.3}).transfers);
    const judgement fair = judge(i.plan, model, c, roofline{}, {.sharing = air{1e6}});
    CHECK(fair.evaluation.latency.value() ==
          Approx(judge(i.plan, model, c, roofline{}, {.network = fair_share{}}).evaluation.latency.value()));
    CHECK(j.evaluation.latency.value() >= fair.evaluation.contention_bound.value() * (1 - 1e-9));
  });
  const planning_graph model = chain(6);
  const cluster c = medium_of(three());
  const judge_models lossy{.sharing = air{1e6, 0.3}};
  const planning_problem problem{model, c, roofline{}, job{.batch = 8}, lossy};
  const plan_result r = recipes::pipeline(problem, minimize_latency{}, 3);
  REQUIRE(r.plans.size() == 3);
  for (const auto& [p, e] : r.plans) {
    CHECK(e.latency == judge(p, model, c, roofline{}, lossy).evaluation.latency);
  }
}

TEST_CASE("a sharing that is held says what it lacks as one that is not") {
  any_network_sharing held = air{2};
  const any_network_sharing nobody, told = air_that_is_told{{2}};
  const simulator_options slower{.capacities = {{1_s, resource_id(0), bytes_per_second(1)}}};
  CHECK(pair().run(held).transfers == pair().run(air{2}).transfers);
  CHECK(pair().run(told, slower).transfers == pair().run(air_that_is_told{{2}}, slower).transfers);
  CHECK_THROWS_WITH(pair().run(held, slower), Contains("1 capacity changes under a network sharing that has no set_capacity"));
  CHECK(pair().run(any_network_sharing(air_of_one_sender{{2}})).transfers == pair().run(air_of_one_sender{{2}}).transfers);
  CHECK_THROWS_WITH(pair().run(nobody), "simulate: an any_network_sharing of nothing; expected one that holds a sharing");
  const any_network_sharing copy = held;
  const tasks::transfer t{.volume_bytes = 4};
  const resource_use use[]{{resource_id(0), 1}};
  held.start(0, 0, t, use);  // the copy does not know
  CHECK(pair().run(copy).transfers == pair().run(air{2}).transfers);
  const planning_graph model = chain(2);
  const cluster c = three();
  const planning_problem both{model, c, roofline{}, {}, {.network = fair_share{}, .sharing = air{2}}};
  CHECK_THROWS_WITH(recipes::on_device(both, minimize_latency{}),
                    "judge_models: a network policy and a network sharing; expected one of them at most");
}

TEST_CASE("a sharing that hands out more than there is is told so at the first step, by resource") {
  try {
    (void)pair().run(air{3});
    FAIL("nobody objected");
  } catch (const invalid_model& e) {
    CHECK(std::string(e.what()) == "network sharing: update(0 s) gives 3 B/s of resource \"r0\", which has 2 B/s");
  }
  transfers_alone weighted(2, {9, 2});
  weighted.add(0, 1, 4, 0, {{0, 1}, {1, 2}});
  CHECK_THROWS_WITH(std::move(weighted).run(air{1.5}), Contains("gives 3 B/s of resource \"r1\", which has 2 B/s"));
  CHECK_NOTHROW(pair().run(air{2 * (1 + 1e-7)}));  // rounding is forgiven
  CHECK_THROWS_AS(pair().run(air{2 * (1 + 1e-5)}), invalid_model);
}

TEST_CASE("rates that are none and ends that are none are told") {
  CHECK_THROWS_WITH(pair().run(liar{liar::gives_nan}), Contains("update(0 s) gives transfer 0 nan B/s"));
  CHECK_THROWS_WITH(pair().run(liar{liar::names_nobody}), Contains("gives transfer 1 1 B/s; expected a transfer under way"));
  CHECK_THROWS_WITH(pair().run(liar{liar::ends_early}), Contains("ends transfer 0 with 4 B left of 4 B"));
  CHECK_THROWS_WITH(pair().run(liar{liar::ends_nobody}), Contains("ends transfer 1, which is not under way"));
  CHECK_THROWS_WITH(pair().run(liar{liar::stands_still}), Contains("next_end() = 0.5 s after finish_until(0.5"));
  CHECK_THROWS_WITH(pair().run(liar{liar::nan_ahead}),
                    "network sharing: next_end() = nan s; expected a time >= 0, or infinity where none is to come");
  CHECK_THROWS_WITH(pair().run(liar{liar::in_the_past}), Contains("next_end() = -1 s; expected a time >= 0"));
  CHECK_THROWS_WITH(pair().run(liar{liar::idles}), Contains("next_end() came to nothing 100000 times up to 0.0001"));
}

TEST_CASE("a sharing that leaves transfers under way for ever is told so by name, and not the order of the tasks") {
  const std::string at_rest =
      "network sharing: next_end() = inf s at 1 s, with transfer 0 under way at 0 B/s and 4 B left of 4 B; expected "
      "the time at which it ends or rates change";
  CHECK_THROWS_MATCHES(pair().run(air{0}), invalid_model, Catch::Message(at_rest));
  CHECK_THROWS_MATCHES(pair().run(any_network_sharing(air{0})), invalid_model, Catch::Message(at_rest));
  CHECK_THROWS_WITH(pair().run(liar{liar::never_ends}), Contains("transfer 0 under way at 0.5 B/s and 3.5 B left of 4 B"));
  // Tasks that wait for the transfer are nobody's fault either.
  const planning_graph model = chain(6);
  const cluster c = three();
  plan p = plan_of(mode::training, 1, 2, {stage_of({0, 1, 2}, {{0, 1}}), stage_of({3, 4, 5}, {{1, 1}})});
  CHECK_THROWS_WITH(judge(p, model, c, roofline{}, {.sharing = air{0}}), Contains("network sharing: next_end() = inf s at "));
  // An outage that stays is no fault of the sharing.
  const simulator_options outage{.capacities = {{1_s, resource_id(0), bytes_per_second(0)}}};
  CHECK_THROWS_MATCHES(pair().run(air_that_is_told{{2}}, outage), invalid_input,
                       Catch::Message("simulate: a transfer waits forever; the dependencies are cyclic, a capacity stays 0, or its "
                                      "prescribed rates do not move all of it"));
}

TEST_CASE("a policy that holds nothing is told so") {
  CHECK_THROWS_MATCHES(pair().run(any_network_policy{}), invalid_input,
                       Catch::Message("any_network_policy: holds no policy; expected one, such as fair_share{}"));
}

}  // namespace test_network_sharing
