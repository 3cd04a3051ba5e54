// SPDX-License-Identifier: BSL-1.0
// Answers of policies: when they stay, how far they climb the ladder, that they meet deadlines, and that they do not flap.

#include <hetplan/adapt/run.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/mix/mixing_controller.hpp>
#include <hetplan/recipes/dora_adapter.hpp>
#include <hetplan/recipes/pipeline.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "support/random_source.hpp"
#include "support/three_devices.hpp"

namespace test_policies {

using namespace hetplan;
using namespace hetplan::test;
using adapt::activity;
using adapt::rung;

namespace {

adapt::event at(double s, adapt::event_payload what) { return {seconds(s), std::move(what)}; }
adapt::capacity_becomes air(const cluster& c, double factor) { return {resource_id(0), c.network().resources()[0].capacity * factor}; }

/// A cheap planner with diverse plans: pipelines, and all layers on a single device.
struct few_plans {
  mutable int* asked = nullptr;
  bool worst_first = false;
  template <class Problem>
  [[nodiscard]] plan_result operator()(const Problem& problem) const {
    if (asked != nullptr) ++*asked;
    const objective_of_job wanted(problem.job);
    plan_result r = recipes::pipeline(problem, wanted, 5);
    plan_result alone = recipes::on_device(problem, wanted, 3);
    r.plans.insert(r.plans.end(), alone.plans.begin(), alone.plans.end());
    std::stable_sort(r.plans.begin(), r.plans.end(),
                     [&](const ranked_plan& a, const ranked_plan& b) { return score(wanted, a.evaluation) < score(wanted, b.evaluation); });
    if (worst_first) std::reverse(r.plans.begin(), r.plans.end());
    if (!r.plans.empty()) r.status = {};
    return r;
  }
};

struct home {
  planning_graph model = chain(6);
  cluster devices = three(4_GB, 20'000_Mbit_per_s);  // fast enough for pipelines to pay off
  job what{.workload = {.mode = mode::inference}, .batch = 8};

  [[nodiscard]] auto problem() const { return planning_problem{model, devices, roofline{}, what}; }
  [[nodiscard]] double best_s() const { return few_plans{}(problem()).plans.front().evaluation.response().value(); }
};

std::vector<device_id> devices_of(const plan& p) {
  std::vector<device_id> all;
  for (const stage& s : p.stages) {
    for (const assignment& a : s.devices) all.push_back(a.device);
  }
  return all;
}

/// A policy that records an inner policy's answers and checks that none uses a device known to be gone.
template <class Policy>
struct watched {
  Policy inner;
  std::vector<adapt::reaction> answers = {};
  adapt::reaction react(const adapt::situation& s) {
    adapt::reaction r = inner.react(s);
    if (r.next) {
      for (const device_id d : devices_of(*r.next)) CHECK(s.noticed.works(d));
    }
    answers.push_back(r);
    return r;
  }
};
template <class Policy>
watched(Policy) -> watched<Policy>;

/// Returns random changes of capacity and speed. With `losses`, traffic and a device that comes and goes; with `outages`, halts.
adapt::timeline some_changes(random_source& random, const cluster& c, double duration_s, bool losses, bool outages) {
  adapt::timeline t{seconds(duration_s)};
  std::vector<double> times;
  for (int n = random.integer(1, 6); n > 0; --n) times.push_back(random.unit() * duration_s);
  std::sort(times.begin(), times.end());
  bool here = true;
  const device_id leaves(random.index(c.size()));
  for (const double when : times) {
    const device_id from(random.index(c.size())), to(random.index(c.size()));
    switch (random.integer(losses ? -1 : 0, losses ? 2 : 1)) {
      case -1:
        if (from != to) t.events.push_back(at(when, adapt::transfer_begins{from, to, bytes(random.spread(1e6, 12))}));
        break;
      case 0: t.events.push_back(at(when, air(c, outages && random.chance(0.3) ? 0 : random.between(0.05, 1.5)))); break;
      case 1:
        t.events.push_back(at(
            when, adapt::speed_becomes{device_id(random.index(c.size())), outages && random.chance(0.2) ? 0 : random.between(0.2, 1.5)}));
        break;
      default:
        if (here) t.events.push_back(at(when, adapt::device_leaves{leaves}));
        else t.events.push_back(at(when, adapt::device_joins{leaves}));
        here = !here;
    }
  }
  return t;
}

}  // namespace

TEST_CASE("a static plan is never anything else") {
  const home x;
  const plan first = few_plans{}(x.problem()).plans.front().plan;
  adapt::static_plan policy(first);
  const adapt::history h =
      adapt::run(x.problem(), {100_s, {at(10, air(x.devices, 0.1)), at(20, adapt::device_leaves{device_id(0)})}}, policy);
  CHECK(h.plans.size() == 1);
  CHECK(h.adoptions.empty());
}

TEST_CASE("told to ignore changes below ten percent, the ladder does nothing about them, however many") {
  const home x;
  int asked = 0;
  adapt::timeline t{200_s, {}};
  for (int i = 0; i < 50; ++i) t.events.push_back(at(2 + i, air(x.devices, i % 2 == 0 ? 0.93 : 1.02)));
  const auto problem = x.problem();
  watched mine{adapt::ladder(problem, few_plans{&asked}, {.common = {.ignore = 0.1}})};
  const adapt::history h = adapt::run(problem, t, mine);
  CHECK(h.adoptions.empty());
  CHECK(asked == 1);
  CHECK(mine.answers.size() > 40);
}

TEST_CASE("a ladder whose options make no sense is refused with the option's name") {
  const home x;
  const auto problem = x.problem();
  const auto message = [&](const adapt::ladder_options& o) -> std::string {
    try {
      static_cast<void>(adapt::ladder(problem, few_plans{}, o));
    } catch (const invalid_input& e) {
      return e.what();
    }
    return "no error";
  };
  CHECK(message({}) == "no error");
  CHECK(message({.payback = 0_s}) == "ladder: payback = 0; expected finite seconds > 0");
  CHECK(message({.payback = seconds(std::numeric_limits<double>::infinity())}) == "ladder: payback = inf; expected finite seconds > 0");
  CHECK(message({.dwell = seconds(-1)}) == "ladder: dwell = -1; expected finite seconds >= 0");
  CHECK(message({.patience = seconds(std::nan(""))}) == "ladder: patience = nan; expected finite seconds >= 0");
  CHECK(message({.tolerance = -0.1}) == "ladder: tolerance = -0.1; expected a finite number >= 0");
  CHECK(message({.spare = 1}) == "ladder: spare = 1; expected a share >= 0 and < 1");
  CHECK(message({.common = {.most_plans = 0}}) == "ladder: most_plans = 0; expected at least 1");
  CHECK_THROWS_WITH(adapt::oracle(problem, few_plans{}, {.most_plans = 0}), "oracle: most_plans = 0; expected at least 1");
  CHECK_THROWS_WITH(adapt::replan_always(problem, few_plans{}, {.small = -1}), "replan_always: small = -1; expected a finite number >= 0");
}

TEST_CASE("a change within ten percent has the transfers scheduled anew, and no more") {
  // Three stages on one medium, where transfers of successive microbatches collide unless they are ordered.
  home x;
  x.devices = three(4_GB, 2000_Mbit_per_s);
  plan p{.model = x.model.name(), .cluster = x.devices.name(), .workload = x.what.workload, .microbatch_size = 1, .microbatches = 8};
  for (int s = 0; s < 3; ++s) {
    p.stages.push_back({.name = "s" + std::to_string(s), .layers = {layer_id(2 * s), layer_id(2 * s + 1)}, .devices = {{device_id(s), 1}}});
  }
  adapt::conditions now = adapt::nominal(x.devices);
  now.capacity[0] = 0.95 * now.capacity[0];
  const auto problem = x.problem();
  adapt::known_plans plans(problem);
  const auto scheduled = plans.reschedule(plans.add(p), now, {}, {}, {});
  REQUIRE(scheduled);
  REQUIRE(plans.try_out(*scheduled, now, {}).took_s < 0.999 * plans.try_out(0, now, {}).took_s);
  int asked = 0;
  const auto planner = [&](const auto& there) {
    ++asked;
    plan_result r;
    r.plans = {{p, judge(p, there.model, there.cluster, there.cost, there.models).evaluation}};
    return r;
  };
  const adapt::timeline t{60_s, {at(10, air(x.devices, 0.95))}};
  const auto run_under = [&](auto policy) { return adapt::run(problem, t, policy); };
  for (const adapt::history& h : {run_under(adapt::ladder(problem, planner)), run_under(adapt::network_only(problem, p))}) {
    REQUIRE(h.adoptions.size() == 1);
    CHECK(h.adoptions[0].reached == rung::network);
    CHECK(h.adoptions[0].caused_s == 10);
    CHECK(h.switches == 0);
    CHECK(h.plans.back() == plans[*scheduled]);
  }
  CHECK(asked == 1);
  CHECK(run_under(adapt::ladder(problem, planner, {.common = {.ignore = 0.1}})).adoptions.empty());
  CHECK(run_under(adapt::replan_always(problem, planner)).adoptions.empty());
  job ends = x.what;
  ends.qoe = {.deadline = 60_s, .iterations = 100000};
  const planning_problem mixed{x.model, x.devices, roofline{}, ends};
  adapt::mixing_policy policy(mixed, planner);
  const adapt::history h = adapt::run(mixed, t, policy);
  REQUIRE(h.adoptions.size() == 1);
  CHECK(h.adoptions[0].reached == rung::network);
}

TEST_CASE("where planning brings nothing, the planner is asked ever less often, and what is remembered has a bound") {
  // 500 changes of more than 10 %, with a latency or deadline that no plan can meet.
  home x;
  for (const bool ends : {false, true}) {
    INFO((ends ? "a deadline" : "a latency"));
    x.what.qoe = ends ? qoe_target{.deadline = 600_s, .iterations = 100'000'000} : qoe_target{.latency = 1_us};
    const auto problem = x.problem();
    adapt::timeline t{600_s, {}};
    random_source random(first_seed());
    INFO("seed " << first_seed());
    for (int i = 0; i < 500; ++i) t.events.push_back(at(5 + i, air(x.devices, random.spread(0.05, 5))));
    const auto asked_by = [&](const auto& make) {
      int asked = 0;
      const auto memory = std::make_shared<adapt::planning_memory>();
      auto policy = make(few_plans{&asked}, adapt::policy_options{.memory = memory});
      const adapt::history h = adapt::run(problem, t, policy);
      CHECK(h.iterations > 0);
      CHECK(memory->size() <= adapt::planning_memory::most);
      return asked;
    };
    CHECK(asked_by([&](auto planner, auto common) { return adapt::replan_always(problem, planner, common); }) <= 30);
    CHECK(asked_by([&](auto planner, auto common) { return adapt::oracle(problem, planner, common); }) <= 30);
    if (ends) {
      CHECK(asked_by([&](auto planner, auto common) {
              return adapt::mixing_policy(problem, adapt::plan_menu{planner}, {.common = common});
            }) <= 30);
    } else {
      CHECK(asked_by([&](auto planner, auto common) { return adapt::ladder(problem, planner, {.common = common}); }) <= 30);
    }
  }
}

TEST_CASE("a search is repeated where the environment differs, and not where it is alike") {
  const home x;
  const auto problem = x.problem();
  int asked = 0;
  adapt::plan_search search(problem, few_plans{&asked});
  adapt::known_plans known(problem);
  adapt::conditions now = adapt::nominal(x.devices);
  const adapt::holdings held(x.model, x.devices.size());
  qoe_target wanted;
  const auto ask = [&](double air_factor) {
    now.capacity[0] = air_factor * x.devices.network().resources()[0].capacity;
    const adapt::situation s{.now = {}, .since = {}, .noticed = now, .held = held, .traffic = {}, .wanted = wanted};
    const bool expected = search.may_pay(s, wanted);
    const int before = asked;
    CHECK_FALSE(search(known, s, wanted).plans.empty());
    CHECK(expected == (asked > before));
    return asked > before;
  };
  CHECK(ask(1));
  CHECK_FALSE(ask(1));
  CHECK_FALSE(ask(0.95));
  CHECK_FALSE(ask(1.09));
  CHECK(ask(0.01));  // a very different environment, where one device alone is best
  now.present[0] = 0;
  CHECK(ask(0.01));
  now.present[0] = 1;
  CHECK_FALSE(ask(0.01));
  wanted.latency = 1_s;
  CHECK(ask(0.01));
  int more = 0;
  for (int i = 1; i < 60; ++i) more += ask(0.01 / (1 + 0.2 * i)) ? 1 : 0;
  CHECK(more >= 2);
  CHECK(more <= 10);
}

TEST_CASE("plans that are of no use are forgotten, those in use are not, and answers about them have a bound") {
  const home x;
  const auto problem = x.problem();
  adapt::known_plans known(problem);
  plan p{.model = x.model.name(), .cluster = x.devices.name(), .workload = x.what.workload, .microbatch_size = 1, .microbatches = 8};
  p.stages = {{.name = "all", .layers = all_layers(x.model), .devices = {{device_id(0), 1}}}};
  const plan first = p;
  known.add(first);
  for (int i = 1; i < 100; ++i) {
    p.stages[0].name = "all" + std::to_string(i);
    known.add(p);
    known.add(first);  // the running plan
    known.forget(8);
    CHECK(known.size() <= 8);
  }
  CHECK(known.size() == 8);
  CHECK(known.add(first) < 8);
  CHECK(known.add(p) < 8);
  adapt::conditions now = adapt::nominal(x.devices);
  for (int i = 0; i < 1000; ++i) {
    now.speed[0] = 1 + 0.001 * i;
    CHECK(known.try_out(0, now, {}).ended);
  }
  CHECK(known.remembered() <= 2 * adapt::known_plans::most_remembered * known.size());
}

TEST_CASE("planning anew at the coordinator ends with the plan that serves best now, wherever its planner put it") {
  const home x;
  const auto problem = x.problem();
  const plan first = few_plans{}(problem).plans.front().plan;
  adapt::rescheduling_policy policy(problem, first, few_plans{.worst_first = true});
  const adapt::conditions now = adapt::nominal(x.devices);
  const adapt::holdings held(x.model, x.devices.size());
  const adapt::reaction r = policy.react({.now = {}, .since = {}, .noticed = now, .held = held, .traffic = {}, .running = &first});
  REQUIRE(r.next);
  CHECK(judge(*r.next, x.model, x.devices, roofline{}).evaluation.response().value() == Approx(x.best_s()).epsilon(1e-12));
}

TEST_CASE("policies that share a memory ask the planner once for the same moment") {
  const home x;
  const auto problem = x.problem();
  int asked = 0;
  const adapt::policy_options common{.memory = std::make_shared<adapt::planning_memory>()};
  adapt::oracle one(problem, few_plans{&asked}, common);
  adapt::replan_always other(problem, few_plans{&asked}, common);
  const adapt::timeline t{60_s, {}};
  CHECK(adapt::run(problem, t, one).iterations == adapt::run(problem, t, other).iterations);
  CHECK(asked == 1);
  CHECK(common.memory->plannings() == 1);
}

TEST_CASE("policies that share a memory ask the planner once for moments that are alike, and for the same pace") {
  const home x;
  const auto problem = x.problem();
  int asked = 0;
  const auto memory = std::make_shared<adapt::planning_memory>();
  const adapt::holdings held(x.model, x.devices.size());
  const qoe_target wanted{.deadline = 600_s, .iterations = 100};
  const auto ask = [&](double air_factor, double now_s, long long done) {
    adapt::plan_search search(problem, few_plans{&asked}, memory);
    adapt::known_plans known(problem);
    adapt::conditions now = adapt::nominal(x.devices);
    now.capacity[0] *= air_factor;
    const int before = asked;
    const adapt::situation s{
        .now = seconds(now_s), .since = {}, .noticed = now, .held = held, .traffic = {}, .wanted = wanted, .done = done};
    CHECK_FALSE(search(known, s, wanted).plans.empty());
    return asked - before;
  };
  CHECK(ask(1, 0, 0) == 1);
  CHECK(ask(1.08, 60, 10) == 0);  // same pace: equal time for each remaining iteration
  CHECK(ask(0.93, 300, 50) == 0);
  CHECK(ask(1.3, 300, 50) == 1);
  CHECK(ask(1, 300, 10) == 1);  // less time for each iteration
  CHECK(ask(1, 700, 50) == 1);  // too late
  CHECK(ask(1, 900, 60) == 0);
}

TEST_CASE("conditions that stand for others are at most ten percent away, and stand for themselves") {
  const home x;
  const adapt::conditions usual = adapt::nominal(x.devices);
  CHECK(adapt::rounded(usual, x.devices) == usual);
  random_source random(first_seed());
  INFO("seed " << first_seed());
  for (int i = 0; i < 1000; ++i) {
    adapt::conditions now = usual;
    now.capacity[0] *= random.spread(0.01, 12);
    now.speed[0] = random.spread(0.02, 10);
    now.speed[1] = 0;
    const adapt::conditions like = adapt::rounded(now, x.devices);
    CHECK(std::abs(std::log(like.capacity[0] / now.capacity[0])) <= std::log(1.1) * (1 + 1e-9));
    CHECK(std::abs(std::log(like.speed[0] / now.speed[0])) <= std::log(1.1) * (1 + 1e-9));
    CHECK(like.speed[1] == 0);
    CHECK(adapt::rounded(like, x.devices) == like);
  }
}

TEST_CASE("an answer that is no better than the running plan calls off the plan that is coming") {
  const home x;
  const auto problem = x.problem();
  const plan_result all = few_plans{}(problem);
  const adapt::conditions now = adapt::nominal(x.devices);
  const adapt::holdings held(x.model, x.devices.size());
  adapt::replan_always policy(problem, few_plans{.worst_first = true});
  const adapt::reaction r = policy.react({.now = {},
                                          .since = {},
                                          .noticed = now,
                                          .held = held,
                                          .traffic = {},
                                          .running = &all.plans.front().plan,
                                          .coming = &all.plans.back().plan,
                                          .can_run = true});
  CHECK_FALSE(r.next);
  CHECK(r.cancel);
}

TEST_CASE("a menu for a job that nothing ends in time is the fastest plans alone") {
  home x;
  int asked = 0;
  const adapt::plan_menu menu{few_plans{&asked}};
  const auto plans_for = [&](double deadline_s) {
    asked = 0;
    x.what.qoe = {.deadline = seconds(deadline_s), .iterations = 10};
    return menu(x.problem()).plans;
  };
  const double fastest = 10 * x.best_s();
  const auto all = plans_for(1.1 * fastest);
  CHECK(asked == 6);
  const auto late = plans_for(0.9 * fastest);
  CHECK(asked == 1);
  REQUIRE_FALSE(late.empty());
  CHECK(late.front() == all.front());
}

TEST_CASE("the ladder keeps a plan that keeps the latency, whatever changes") {
  home x;
  x.what.qoe.latency = seconds(3 * x.best_s());
  x.what.objective = objective_kind::latency;
  const auto problem = x.problem();
  int asked = 0;
  adapt::ladder policy(problem, few_plans{&asked});
  const adapt::history h = adapt::run(
      problem, {100_s, {at(10, air(x.devices, 0.7)), at(30, air(x.devices, 2)), at(50, adapt::speed_becomes{device_id(2), 0.9})}}, policy);
  CHECK(h.adoptions.empty());
  CHECK(h.violations == 0);
  CHECK(asked == 2);  // one search with the target itself, one with a margin
}

TEST_CASE("the ladder goes back to a plan that it knows, and plans anew only where it must") {
  // The medium nearly fails, then recovers: the ladder returns to the first plan without a search.
  home x;
  x.what.qoe.latency = seconds(1.2 * x.best_s());
  x.what.objective = objective_kind::latency;
  const auto problem = x.problem();
  int asked = 0;
  adapt::ladder_options o;
  o.dwell = 1_s;
  watched policy{adapt::ladder(problem, few_plans{&asked}, o)};
  const adapt::history h = adapt::run(problem, {2000_s, {at(100, air(x.devices, 0.02)), at(1000, air(x.devices, 1))}}, policy);
  REQUIRE_FALSE(h.adoptions.empty());
  const int after = asked;
  CHECK(after <= 3);
  CHECK(h.stretches.back().response_s <= x.what.qoe.latency->value() * (1 + 1e-9));
  CHECK(h.stretches.back().what != activity::stalled);
}

TEST_CASE("conditions that alternate move weights at most once per dwell") {
  const home x;
  for (const double low : {0.02, 0.1, 0.3, 0.6, 0.85}) {
    INFO("down to " << low);
    const auto problem = x.problem();
    adapt::ladder policy(problem, few_plans{});
    adapt::timeline t{400_s, {}};
    for (int i = 0; i < 100; ++i) t.events.push_back(at(2 + 3 * i, air(x.devices, i % 2 == 0 ? low : 1)));
    const adapt::history h = adapt::run(problem, t, policy);
    // Events end at 299 s: at most one move each 10 s until then, and one after.
    CHECK(h.switches <= 31);
    double last = -100;
    for (const adapt::adoption& a : h.adoptions) {
      if (same_placement(h.plans[a.from], h.plans[a.to])) continue;
      CHECK(a.decided_s >= last + 10 - 1e-9);
      last = a.decided_s;
    }
  }
}

TEST_CASE("noise does not make the ladder forget a question that it put off") {
  // Weights rest from a move at 100 s until 150 s. The medium recovers at 110 s; tremors at 120 s are no news. At 150 s the ladder asks.
  home x;
  x.what.qoe.latency = seconds(1.05 * x.best_s());
  x.what.objective = objective_kind::latency;
  const auto problem = x.problem();
  const adapt::ladder_options o{.patience = 0_s, .dwell = 50_s};
  watched calm{adapt::ladder(problem, few_plans{}, o)}, disturbed{adapt::ladder(problem, few_plans{}, o)};
  adapt::timeline t{400_s, {at(100, air(x.devices, 0.02)), at(110, air(x.devices, 1))}};
  const adapt::history quiet = adapt::run(problem, t, calm);
  t.events.push_back(at(120, air(x.devices, 1.01)));
  t.events.push_back(at(121, air(x.devices, 1)));
  const adapt::history noisy = adapt::run(problem, t, disturbed);
  REQUIRE(quiet.adoptions.size() >= 1);
  CHECK(noisy.adoptions.size() == quiet.adoptions.size());
  const bool put_off =
      std::any_of(calm.answers.begin(), calm.answers.end(), [](const adapt::reaction& r) { return r.ask_again.has_value(); });
  CHECK(put_off);
  CHECK(noisy.plans.back() == quiet.plans.back());
}

TEST_CASE("no policy stops at an outage, and none names a device that it knows to be gone") {
  long long lost = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 100; ++seed) {
    INFO("seed " << seed);
    random_source random(seed);
    home x;
    x.what.qoe.deadline = random.chance(0.5) ? std::optional(500_s) : std::nullopt;
    if (x.what.qoe.deadline) x.what.qoe.iterations = 1000;
    const auto problem = x.problem();
    const adapt::timeline t = some_changes(random, x.devices, 300, true, true);
    const plan first = few_plans{}(problem).plans.front().plan;
    const adapt::run_options<> o{.storage = {.archive = device_id(1)}};
    const auto run_under = [&](auto policy) {
      const adapt::history h = adapt::run(problem, t, policy, o);
      CHECK((h.finished_s || h.stretches.back().end_s == Approx(300)));
      lost += h.cut_off;
      return h;
    };
    run_under(watched{adapt::network_only(problem, first)});
    run_under(watched{adapt::replan_always(problem, few_plans{})});
    run_under(watched{adapt::oracle(problem, few_plans{})});
    run_under(watched{adapt::ladder(problem, few_plans{})});
    if (x.what.qoe.deadline) run_under(watched{adapt::mixing_policy(problem, adapt::plan_menu{few_plans{}})});
  }
  CHECK(lost > 0);
}

TEST_CASE("the oracle does no less than others where nothing is lost and nothing changes in an iteration", "[unsanitized]") {
  // The oracle runs each iteration's fastest plan at no cost. A change within an iteration may favour another plan, hence 2 %.
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 100; ++seed) {
    INFO("seed " << seed);
    random_source random(seed);
    const home x;
    const auto problem = x.problem();
    const adapt::timeline t = some_changes(random, x.devices, 400, false, false);
    const auto iterations = [&](auto policy, const auto& options) { return adapt::run(problem, t, policy, options).iterations; };
    const adapt::run_options<adapt::immediate> at_once;
    const auto most = iterations(adapt::oracle(problem, few_plans{}), at_once);
    const plan first = few_plans{}(problem).plans.front().plan;
    const auto least = [&](long long n) { CHECK(static_cast<double>(most) >= 0.98 * static_cast<double>(n)); };
    least(iterations(adapt::static_plan(first), at_once));
    least(iterations(adapt::replan_always(problem, few_plans{}), adapt::run_options<>{}));
    least(iterations(adapt::ladder(problem, few_plans{}), adapt::run_options<>{}));
  }
}

TEST_CASE("a mixture ends in time wherever the fastest plan would, takes no less than the clairvoyant, and does what it promised",
          "[unsanitized]") {
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 200; ++seed) {
    INFO("seed " << seed);
    random_source random(seed);
    home x;
    const adapt::plan_menu menu{few_plans{}};
    const plan_result plans = menu(x.problem());
    const double fastest = plans.plans.front().evaluation.latency.value();
    const long long work = random.integer(50, 2000);
    const double slack = random.between(1.02, 6);
    x.what.qoe.iterations = work;
    // Slack for the granularity of iterations: three iterations and the pause of a switch.
    x.what.qoe.deadline = seconds(slack * fastest * static_cast<double>(work) + 5 + 3 * plans.plans.back().evaluation.latency.value());
    const auto problem = x.problem();
    adapt::mixing_policy policy(problem, menu);
    const adapt::history h = adapt::run(problem, {*x.what.qoe.deadline * 1.5, {}}, policy);
    REQUIRE(h.finished_s);
    CHECK_FALSE(h.missed_deadline);
    CHECK(h.iterations == work);
    mix::rate_period whole{x.what.qoe.deadline->value(), {}};
    for (const auto& [p, e] : plans.plans) whole.rates.plans.push_back({1 / e.latency.value(), e.energy().value() / e.latency.value()});
    whole.rates.idle_W = 0;  // no charge after the last iteration
    const mix::clairvoyant_bound bound = mix::clairvoyant(std::span(&whole, 1), static_cast<double>(work));
    CHECK(h.energy_J >= bound.energy_J * (1 - 1e-9));
  }
}

TEST_CASE("a horizon that was begun is brought to its end") {
  home x;
  const auto plans = adapt::plan_menu{few_plans{}}(x.problem()).plans;
  const double fast = plans.front().evaluation.latency.value(), frugal = plans.back().evaluation.latency.value();
  REQUIRE(frugal > 1.2 * fast);
  const double each = std::sqrt(fast * frugal), end = 200 * each;
  x.what.qoe = {.deadline = seconds(end), .iterations = 200};
  const auto problem = x.problem();
  const adapt::mixing_options o{.progress = {.horizon_s = end / 2, .period_s = end / 100, .pessimism = 0}};
  adapt::mixing_policy policy(problem, adapt::plan_menu{few_plans{}}, o);
  const adapt::history h = adapt::run(problem, {seconds(end), {}}, policy);
  CHECK_FALSE(h.missed_deadline);
  CHECK(h.iterations == 200);
  CHECK(h.switches <= 4);  // two plans in each of two horizons
  CHECK(std::abs(adapt::iterations_between(h, 0, end / 2) - 100) <= 3);
}

TEST_CASE("a mixture of three plans in turn is carried out in order") {
  home x;
  const auto plans = adapt::plan_menu{few_plans{}}(x.problem()).plans;
  REQUIRE(plans.size() >= 3);
  const double slowest = plans.back().evaluation.latency.value(), end = 300 * slowest;
  const long long work = 300;  // the fastest plan alone would need only part of the time
  x.what.qoe = {.deadline = seconds(end), .iterations = work};
  const auto problem = x.problem();
  int asked = 0;
  // 30 % of the time on the slowest plan, 10 % on one between, the rest on the fastest.
  const auto in_turn = [&](const mix::plan_rates& rates, const mix::mixing_goal& goal) {
    ++asked;
    std::vector<std::size_t> by_rate;
    for (std::size_t p = 0; p < rates.plans.size(); ++p) {
      if (rates.plans[p].rate > 0) by_rate.push_back(p);
    }
    std::stable_sort(by_rate.begin(), by_rate.end(),
                     [&](std::size_t a, std::size_t b) { return rates.plans[a].rate > rates.plans[b].rate; });
    mix::mixture m;
    for (const auto& [plan, share] : {std::pair(by_rate.back(), 0.3), {by_rate[1], 0.1}, {by_rate[0], 0.5}})
      m.parts.push_back({plan, 0, share * goal.horizon_s});
    return m;
  };
  adapt::mixing_policy policy(problem, adapt::plan_menu{few_plans{}},
                              {.progress = {.period_s = end / 100, .pessimism = 0}, .mixing = in_turn});
  const adapt::history h = adapt::run(problem, {seconds(end), {}}, policy);
  CHECK(h.iterations == work);
  CHECK_FALSE(h.missed_deadline);
  CHECK(asked <= 4);  // decisions also ask about the time less one iteration
  REQUIRE(h.switches >= 2);
  std::vector<double> begins;
  for (const adapt::adoption& a : h.adoptions) begins.push_back(a.caused_s);
  CHECK(begins[0] == Approx(0.3 * end).epsilon(0.03));
  CHECK(begins[1] == Approx(0.4 * end).epsilon(0.05));
}

TEST_CASE("a mixture is mixed anew when capacities fall") {
  home x;
  x.what.qoe.iterations = 500;
  x.what.qoe.deadline = seconds(500 * x.best_s() * 3);
  const auto problem = x.problem();
  const auto with = [&](const adapt::timeline& t) {
    adapt::mixing_policy policy(problem, adapt::plan_menu{few_plans{}});
    return adapt::run(problem, t, policy);
  };
  const seconds end = *x.what.qoe.deadline * 1.2;
  const adapt::history calm = with({end, {}});
  const adapt::history slowed = with({end,
                                      {at(x.what.qoe.deadline->value() / 10, adapt::speed_becomes{device_id(0), 0.4}),
                                       at(x.what.qoe.deadline->value() / 5, air(x.devices, 0.3))}});
  CHECK_FALSE(calm.missed_deadline);
  CHECK_FALSE(slowed.missed_deadline);
  CHECK(slowed.finished_s);
  CHECK(slowed.stretches != calm.stretches);
}

TEST_CASE("an outage is no rest, and a mixture waits for its end as a static plan does") {
  home x;
  x.devices = three(4_GB);
  x.what.qoe = {.deadline = seconds(40 * x.best_s()), .iterations = 20};
  const auto problem = x.problem();
  const double each = x.best_s();
  adapt::timeline t{seconds(60 * each), {}};
  for (const device& d : x.devices.devices()) t.events.push_back(at(2.5 * each, adapt::speed_becomes{d.id, 0}));
  for (const device& d : x.devices.devices()) t.events.push_back(at(6.5 * each, adapt::speed_becomes{d.id, 1}));
  adapt::mixing_policy policy(problem, few_plans{});
  const adapt::history h = adapt::run(problem, t, policy, adapt::run_options{adapt::immediate{}, {}});
  CHECK(h.cut_off == 0);
  CHECK(h.iterations == 20);
  for (const adapt::stretch& s : h.stretches) CHECK((s.what != activity::idle || s.start_s > 6.5 * each));
}

TEST_CASE("a job without a deadline cannot be mixed") {
  const home x;
  const auto problem = x.problem();
  adapt::mixing_policy policy(problem, adapt::plan_menu{few_plans{}});
  CHECK_THROWS_WITH(adapt::run(problem, {9_s, {}}, policy), Catch::Contains("qoe.deadline"));
  CHECK_THROWS_AS(adapt::run(problem, {9_s, {}}, policy), invalid_input);
}

TEST_CASE("where nothing fits, policies hand on why") {
  home x;
  x.devices = three(10_MB);
  x.what.qoe = {.deadline = 9_s, .iterations = 9};
  const auto problem = x.problem();
  const auto reason = [&](auto policy) {
    const adapt::history h = adapt::run(problem, {9_s, {}}, policy);
    CHECK(h.status.result == outcome::none_found);
    return h.status.reason;
  };
  CHECK_THAT(reason(adapt::ladder(problem, few_plans{})), Catch::Contains("memory"));
  CHECK_THAT(reason(adapt::replan_always(problem, few_plans{})), Catch::Contains("memory"));
  CHECK_THAT(reason(adapt::oracle(problem, few_plans{})), Catch::Contains("memory"));
  CHECK_THAT(reason(adapt::mixing_policy(problem, adapt::plan_menu{few_plans{}})), Catch::Contains("memory"));
}

TEST_CASE("a menu is a Pareto front, fastest first") {
  const home x;
  const plan_result menu = adapt::plan_menu{few_plans{}}(x.problem());
  REQUIRE(menu.plans.size() > 1);
  for (std::size_t i = 1; i < menu.plans.size(); ++i) {
    CHECK(menu.plans[i].evaluation.response() > menu.plans[i - 1].evaluation.response());
    CHECK(menu.plans[i].evaluation.energy() < menu.plans[i - 1].evaluation.energy());
  }
}

TEST_CASE("Dora's adapter mixes work with a deadline and climbs the ladder for other work") {
  home x;
  x.model = chain(4);
  const recipes::dora_adapter_options o{.planner = {.keep = 3}};
  {
    const auto problem = x.problem();
    recipes::dora_adapter policy(problem, o);
    const adapt::history h = adapt::run(problem, {100_s, {at(20, adapt::device_leaves{device_id(0)})}}, policy,
                                        adapt::run_options<>{.storage = {.archive = device_id(1)}});
    CHECK(h.status.ok());
    REQUIRE_FALSE(h.adoptions.empty());
    CHECK(h.adoptions[0].reached == rung::replanned);
    CHECK(h.stretches.back().end_s == Approx(100));
  }
  x.what.qoe = {.deadline = 100_s, .iterations = 100};
  const auto problem = x.problem();
  recipes::dora_adapter policy(problem, o);
  const adapt::history h = adapt::run(problem, {120_s, {}}, policy);
  CHECK(h.finished_s);
  CHECK_FALSE(h.missed_deadline);
}

}  // namespace test_policies
