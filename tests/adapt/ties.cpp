// SPDX-License-Identifier: BSL-1.0
// Times that are equal but for rounding: sums of tenths of a second, which are inexact in floating point.

#include <hetplan/adapt/run.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/adapt/fixed_policies.hpp>
#include <hetplan/adapt/iteration.hpp>

#include "support/by_hand.hpp"

namespace test_ties {

using namespace hetplan;
using namespace hetplan::test;
using adapt::activity;
using adapt::reaction;
using adapt::situation;

namespace {

/// One layer that takes 0.1 s on either of two devices of 10 FLOP/s.
struct world_of_tenths {
  planning_graph model = model_of({work_of("a", 1)}, {});
  cluster devices{"two", {worker("d0", 10), worker("d1", 10)}, shared_medium{1_GB_per_s, {}}};
  job what{.workload = {.mode = mode::inference}, .batch = 1};

  [[nodiscard]] plan on(int d) const { return plan_of(mode::inference, 1, 1, {stage_of({0}, {{d, 1}})}); }
  template <class Policy>
  [[nodiscard]] adapt::history run(const adapt::timeline& t, Policy& policy) const {
    return adapt::run(planning_problem{model, devices, roofline{}, what}, t, policy, adapt::run_options<adapt::immediate>{});
  }
};

/// A policy asked after every iteration, so that each duration is added on its own.
struct asked_after_each {
  plan what;
  std::vector<double> asked = {};
  [[nodiscard]] reaction react(const situation& s) {
    asked.push_back(s.now.value());
    return {.next = s.running == nullptr ? std::optional(what) : std::nullopt, .ask_again = s.now};
  }
};

adapt::event at(double s, adapt::event_payload what) { return {seconds(s), std::move(what)}; }

}  // namespace

TEST_CASE("an iteration that ends with the timeline, a loss or a halt is whole, however tenths are added") {
  world_of_tenths x;
  for (int n = 1; n <= 40; ++n) {
    CAPTURE(n);
    const double end = n / 10.0;
    x.what.qoe = {.deadline = seconds(end), .iterations = n};
    const std::vector<adapt::timeline> ends{
        {seconds(end), {}},
        {seconds(end), {at(end / 2, adapt::speed_becomes{device_id(1), 0.5})}},
        {seconds(end + 5), {at(end, adapt::device_leaves{device_id(0)})}},
        {seconds(end + 5), {at(end, adapt::speed_becomes{device_id(0), 0})}},
    };
    for (const adapt::timeline& t : ends) {
      adapt::static_plan at_once(x.on(0));
      asked_after_each one_by_one{x.on(0)};
      for (const adapt::history& h : {x.run(t, at_once), x.run(t, one_by_one)}) {
        CHECK(h.iterations == n);
        CHECK(h.cut_off == 0);
        CHECK_FALSE(h.missed_deadline);
        REQUIRE(h.finished_s);
        CHECK(*h.finished_s == Approx(end).epsilon(1e-12));
      }
    }
    x.what.qoe = {};  // without a target, the run fills the timeline
    adapt::static_plan at_once(x.on(0));
    asked_after_each one_by_one{x.on(0)};
    for (const adapt::history& h : {x.run(ends[0], at_once), x.run(ends[0], one_by_one)}) {
      CHECK(h.iterations == n);
      CHECK(h.cut_off == 0);
    }
    for (const adapt::history& h : {x.run(ends[2], at_once), x.run(ends[2], one_by_one)}) {  // the device stands still at the end
      CHECK(h.iterations == n);
      CHECK(h.cut_off == 0);
      CHECK(h.stall_s == Approx(5).epsilon(1e-12));
    }
  }
}

TEST_CASE("an iteration that would end a thousandth later is cut off") {
  world_of_tenths x;
  adapt::static_plan policy(x.on(0));
  const adapt::history h = x.run({seconds(0.2999), {}}, policy);
  CHECK(h.iterations == 2);
  CHECK(h.cut_off == 1);
}

TEST_CASE("who asks to be asked at the end of an iteration is asked then, and not before the time that it named") {
  const world_of_tenths x;
  for (int n = 2; n <= 40; ++n) {
    CAPTURE(n);
    const double moment = n / 10.0;
    struct once {
      plan what;
      double moment_s;
      std::vector<double> asked = {};
      reaction react(const situation& s) {
        asked.push_back(s.now.value());
        if (s.now.value() < moment_s)
          return {.next = s.running == nullptr ? std::optional(what) : std::nullopt, .ask_again = seconds(moment_s)};
        return {};
      }
    } policy{x.on(0), moment};
    static_cast<void>(x.run({seconds(10), {at(0.05, adapt::speed_becomes{device_id(1), 0.5})}}, policy));
    REQUIRE(policy.asked.size() == 3);  // at the start, after the event, when due
    CHECK(policy.asked.back() == Approx(moment).epsilon(1e-12));
  }
}

TEST_CASE("a plan that would end with the deadline is in time, and of equal ends the frugal one is better") {
  const job what{.workload = {.mode = mode::inference}, .batch = 1};
  for (int n = 1; n <= 40; ++n) {
    CAPTURE(n);
    double now = 0;
    for (int i = 0; i < n; ++i) now += 0.1;  // summed as in a run
    const adapt::goal wanted(what, {.deadline = seconds((n + 3) / 10.0), .iterations = n + 3}, seconds(now), n);
    const adapt::iteration i{.ended = true, .took_s = 0.1, .response_s = 0.1, .device_J = {2}};
    CHECK(wanted.of(i).late_s == 0);
    adapt::iteration slower = i, frugal = i;
    slower.took_s = 0.1 * (1 + 1e-6);
    CHECK(wanted.of(slower).late_s > 0);
    CHECK(wanted.of(i).beats(wanted.of(slower)));
    frugal.took_s = 0.1 * (1 + 4e-16);
    frugal.device_J = {1};
    CHECK(wanted.of(frugal).beats(wanted.of(i)));
    CHECK_FALSE(wanted.of(i).beats(wanted.of(i)));
  }
}

}  // namespace test_ties
