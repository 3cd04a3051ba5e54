// SPDX-License-Identifier: BSL-1.0
#include <cstddef>
#include <limits>
#include <string>

#include <catch2/catch.hpp>

#include <hetplan/core/error.hpp>
#include <hetplan/mix/mixing_controller.hpp>
#include <hetplan/mix/progress.hpp>
#include <hetplan/solve/glpk.hpp>

namespace test_mixing_controller {

using namespace hetplan;
using mix::mixing_goal;
using mix::mixture;
using mix::plan_rates;

namespace {

/// One fast and dear, one slow and frugal; a switch takes two seconds.
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

/// What is said of a controller that answers this.
std::string refusal(const mixture& answer) {
  const mix::any_mixing_controller c = [&](const plan_rates&, const mixing_goal&) { return answer; };
  try {
    static_cast<void>(c(two_plans(), goal));
  } catch (const invalid_model& e) {
    return e.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("the controllers that ship are the functions of which they are made, and pass the check") {
  const plan_rates rates = two_plans();
  mixing_goal going_on = goal;
  going_on.running = 0;  // getting into the other takes something
  const glpk_lp lp;
  const mixture exact = mix::mix(rates, going_on), hull = mix::mix_on_hull(rates, going_on),
                program = mix::mix_relaxed(rates, going_on, lp);
  check_equal(mix::exact_mixing{}(rates, going_on), exact);
  check_equal(mix::hull_mixing{}(rates, going_on), hull);
  check_equal(mix::program_mixing{lp}(rates, going_on), program);
  check_equal(mix::any_mixing_controller(mix::exact_mixing{})(rates, going_on), exact);
  check_equal(mix::any_mixing_controller(mix::hull_mixing{})(rates, going_on), hull);
  check_equal(mix::any_mixing_controller(mix::program_mixing{lp})(rates, going_on), program);
  CHECK(hull.energy_J < exact.energy_J);  // three answers, not one
  CHECK(program.energy_J < exact.energy_J);
  CHECK(program.parts != hull.parts);
}

TEST_CASE("uniform progress asks its controller, for the fastest plan first, and begins with the first turn") {
  mix::uniform_progress controller{two_plans()};
  const mix::job_state job{.work_left = 100, .time_left_s = 100};
  CHECK(controller.decide(job).plan == 1);  // the frugal one alone
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

TEST_CASE("what cannot be run is refused with what is wrong") {
  CHECK(refusal({.parts = {{0, 0, 60}, {1, 2, 38}}}) == "accepted");
  CHECK(refusal({.parts = {{0, 0, 60}, {1, 2, 30}}, .idle_s = 8}) == "accepted");
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
