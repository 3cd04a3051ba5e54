// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/core/error.hpp>
#include <hetplan/mix/mixing_controller.hpp>
#include <hetplan/mix/progress.hpp>
#include <hetplan/solve/glpk.hpp>

#include "support/message_of.hpp"

namespace test_mixing_controller {

using namespace hetplan;
using mix::mixing_goal;
using mix::mixture;
using mix::plan_rates;

namespace {

/// Returns a fast and costly plan and a slow and frugal one; a switch takes two seconds.
plan_rates two_plans() {
  const mix::switch_cost two_seconds{2, 10};
  return {.plans = {{2, 50}, {1, 20}}, .switches = {.between = {{}, two_seconds, two_seconds, {}}, .start = {{}, {}}}, .idle_W = 5};
}
constexpr mixing_goal goal{.horizon_s = 100, .progress = 150};

void check_equal(const mixture& a, const mixture& b) {
  CHECK(a.status.ok());
  CHECK(a.parts == b.parts);
  CHECK(a.idle_s == b.idle_s);
  CHECK(a.progress == b.progress);
  CHECK(a.energy_J == b.energy_J);
}

/// Runs every plan in turn for equal times, from the running one on; `asked` counts the calls.
struct in_turn {
  int* asked;
  mixture operator()(const plan_rates& rates, const mixing_goal& g) const {
    ++*asked;
    mixture m;
    const std::size_t n = rates.plans.size(), first = g.running.value_or(0);
    double pauses_s = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t p = (first + i) % n;
      m.parts.push_back({p, rates.cost(i > 0 ? std::optional((p + n - 1) % n) : g.running, p).pause_s});
      pauses_s += m.parts.back().pause_s;
    }
    for (mix::mixture_part& part : m.parts) part.seconds = (g.horizon_s - pauses_s) / static_cast<double>(n);
    return m;
  }
};

plan_rates three_plans() {
  const mix::switch_cost move{6, 100};
  return {.plans = {{3, 95}, {2, 50}, {1, 20}}, .switches = {.between = std::vector(9, move), .start = std::vector(3, move)}, .idle_W = 5};
}

/// Turns of plans with the time at which each begins to work.
struct timetable {
  std::vector<std::pair<std::size_t, double>> turns = {};
  int reserve = 0, horizons = 0;
};

/// Follows the controller until the deadline; plans work at `luck` times their rates.
timetable follow(const mix::uniform_progress& controller, mix::job_state now, double luck = 1) {
  timetable t;
  const double deadline_s = now.time_left_s;
  while (now.time_left_s > 0 && now.work_left > 0) {
    const mix::decision d = controller.decide(now);
    t.reserve += d.reserve ? 1 : 0;
    t.horizons += d.horizon_s == std::min(controller.options.horizon_s, now.time_left_s) ? 1 : 0;
    REQUIRE(d.plan);
    if (t.turns.empty() || t.turns.back().first != *d.plan) t.turns.emplace_back(*d.plan, deadline_s - now.time_left_s + d.pause_s);
    now = mix::after(now, d, d.seconds, luck * controller.rates.plans[*d.plan].rate * (d.seconds - d.pause_s));
  }
  return t;
}

/// Returns the error for a controller with this answer.
std::string refusal(const mixture& answer) {
  const mix::any_mixing_controller c = [&](const plan_rates&, const mixing_goal&) { return answer; };
  return test::message_of<invalid_model>([&] { return c(two_plans(), goal); });
}

}  // namespace

TEST_CASE("the controllers that ship are the functions of which they are made, and pass the check") {
  const plan_rates rates = two_plans();
  mixing_goal going_on = goal;
  going_on.running = 0;  // a switch to the other plan costs
  const glpk_lp lp;
  const mixture exact = mix::mix(rates, going_on), hull = mix::mix_on_hull(rates, going_on),
                program = mix::mix_relaxed(rates, going_on, lp);
  check_equal(mix::exact_mixing{}(rates, going_on), exact);
  check_equal(mix::hull_mixing{}(rates, going_on), hull);
  check_equal(mix::program_mixing{lp}(rates, going_on), program);
  check_equal(mix::any_mixing_controller(mix::exact_mixing{})(rates, going_on), exact);
  check_equal(mix::any_mixing_controller(mix::hull_mixing{})(rates, going_on), hull);
  check_equal(mix::any_mixing_controller(mix::program_mixing{lp})(rates, going_on), program);
  CHECK(hull.energy_J < exact.energy_J);
  CHECK(program.energy_J < exact.energy_J);
  CHECK(program.parts != hull.parts);
}

TEST_CASE("uniform progress asks its controller, for the fastest plan first, and begins with the first turn") {
  mix::uniform_progress controller{two_plans()};
  const mix::job_state job{.work_left = 100, .time_left_s = 100};
  CHECK(controller.decide(job).plan == 1);  // the frugal plan alone
  int asked = 0;
  controller.mixing = [&](const plan_rates& rates, const mixing_goal& g) {
    ++asked;
    CHECK(rates == controller.rates);
    CHECK(g.horizon_s == 100);
    CHECK(g.progress == 100);
    CHECK(g.order == mix::turn_order::faster_first);
    return mixture{.parts = {{.plan = 0, .seconds = 30}, {.plan = 1, .pause_s = 2, .seconds = 68}}, .progress = 128};
  };
  const mix::decision d = controller.decide(job);
  CHECK(asked == 1);
  CHECK(d.plan == 0);
  CHECK(d.seconds == 30);
  CHECK_FALSE(d.reserve);
  CHECK(d.mixture.progress == 128);
}

TEST_CASE("turns of three plans run in order and for as long as was said, with the controller asked once") {
  for (const double luck : {0.9, 1.0, 1.1}) {
    CAPTURE(luck);
    int asked = 0;
    const mix::uniform_progress controller{three_plans(), {.period_s = 7}, in_turn{&asked}};
    const timetable t = follow(controller, {.work_left = 1000 * luck + 100, .time_left_s = 618}, luck);  // 200 s each
    CHECK(asked == 1);
    CHECK(t.reserve == 0);
    REQUIRE(t.turns.size() == 3);
    for (std::size_t p = 0; p < 3; ++p) {
      CHECK(t.turns[p].first == p);
      CHECK(t.turns[p].second == Approx(6 + 206.0 * static_cast<double>(p)));
    }
  }
}

TEST_CASE("a rest of turns is added up at present rates") {
  int asked = 0;
  mix::uniform_progress controller{three_plans(), {.period_s = 1000}, in_turn{&asked}};
  const mix::job_state start{.work_left = 600, .time_left_s = 618};
  mix::decision d = controller.decide(start);
  mix::job_state now = mix::after(start, d, 106, 300);  // a pause and half a turn
  REQUIRE(now.turns_left.size() == 3);
  CHECK(now.turns_left[0].seconds == Approx(100));
  d = controller.decide(now);
  CHECK(d.mixture.parts.size() == 3);
  CHECK(d.mixture.parts[0].pause_s == 0);
  CHECK(d.mixture.progress == Approx(300 + 400 + 200));
  CHECK(d.mixture.energy_J == Approx(100 * 95 + 200 * 50 + 200 * 20 + 2 * (100 + 6 * 5)));
  CHECK(d.mixture.shortfall == 0);
  CHECK(d.mixture.idle_s == Approx(0).margin(1e-9));
  now.time_left_s -= 350;  // after a delay, the last turn has no time and the second is shorter
  d = controller.decide(now);
  CHECK(d.mixture.parts.size() == 2);
  CHECK(d.mixture.parts[1].seconds == Approx(512 - 350 - 100 - 6));
  CHECK(asked == 1);
}

TEST_CASE("in open loop the controller is asked again where its turns cannot go on") {
  int asked = 0;
  mix::uniform_progress controller{three_plans(), {.period_s = 7}, in_turn{&asked}};
  const mix::job_state start{.work_left = 900, .time_left_s = 618};
  const mix::job_state begun = mix::after(start, controller.decide(start), 13, 21);
  REQUIRE(asked == 1);
  SECTION("a horizon begins") {
    controller.options.horizon_s = 103;
    asked = 0;
    const timetable t = follow(controller, start);
    CHECK(asked == t.horizons);
    CHECK(asked > 6);  // horizons end early once their progress is made
    CHECK(t.reserve == 0);
  }
  SECTION("a plan among them can run no more") {
    controller.rates.plans[2].rate = 0;
    static_cast<void>(controller.decide(begun));
    CHECK(asked == 2);
  }
  SECTION("the reserve has taken a turn") {
    mix::job_state late = begun;
    late.running = 1;  // another plan's turn was missed
    late.turns_left = {{2, 6, 200}};
    late.work_left = 1700;
    const mix::decision d = controller.decide(late);
    CHECK(asked == 1);
    CHECK(d.reserve);
    CHECK(d.plan == 0);
    CHECK(mix::after(late, d, d.seconds, 1).turns_left.empty());
  }
  SECTION("it asks for the receding horizon") {
    controller.mixing = [turns = in_turn{&asked}](const plan_rates& rates, const mixing_goal& g) {
      mixture m = turns(rates, g);
      m.control = mix::mixture_control::receding_horizon;
      return m;
    };
    CHECK(mix::after(start, controller.decide(start), 13, 21).turns_left.empty());
    CHECK(asked == 2);
  }
  SECTION("the shipped ones ask for it") {
    const glpk_lp lp;
    for (const mix::any_mixing_controller& c :
         {mix::any_mixing_controller(mix::exact_mixing{}), mix::any_mixing_controller(mix::hull_mixing{}),
          mix::any_mixing_controller(mix::program_mixing{lp})}) {
      CHECK(c(two_plans(), goal).control == mix::mixture_control::receding_horizon);
    }
  }
  SECTION("a turn makes no sense") {
    mix::job_state wrong = begun;
    wrong.turns_left[1].plan = 3;
    CHECK_THROWS_WITH(controller.decide(wrong),
                      "uniform_progress: a turn of 200 s is left to plan 3; expected a number >= 0 and one of 3 plans");
  }
}

TEST_CASE("what cannot be run is refused with what is wrong") {
  CHECK(refusal({.parts = {{0, 0, 60}, {1, 2, 38}}}) == "no error");
  CHECK(refusal({.parts = {{0, 0, 60}, {1, 2, 30}}, .idle_s = 8}) == "no error");
  const std::string who = "mixing controller: ";
  CHECK(refusal({.parts = {{0, 0, 60}, {2, 2, 38}}}) == who + "part 1 is plan 2; expected one below 2");
  CHECK(refusal({.parts = {{0, 0, -1}}}) == who + "part 0 takes -1 s; expected a number >= 0");
  CHECK(refusal({.parts = {{0, -0.5, 1}}}) == who + "the pause of part 0 takes -0.5 s; expected a number >= 0");
  CHECK(refusal({.idle_s = std::numeric_limits<double>::quiet_NaN()}) == who + "idling takes nan s; expected a number >= 0");
  CHECK(refusal({.parts = {{0, 0, 60}, {1, 2, 38}}, .idle_s = 1}) ==
        who + "parts and idling take 101 s; expected at most the horizon, 100 s");
}

TEST_CASE("a controller is asked about sound rates and goals only") {
  const mix::any_mixing_controller never = [](const plan_rates&, const mixing_goal&) -> mixture { throw 1; };
  CHECK_THROWS_AS(never({.plans = {{-1, 1}}}, goal), invalid_input);
  CHECK_THROWS_AS(never(two_plans(), {.horizon_s = 1, .progress = -1}), invalid_input);
}

}  // namespace test_mixing_controller
