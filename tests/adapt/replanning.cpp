// SPDX-License-Identifier: BSL-1.0
#include <hetplan/adapt/known_plans.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/adapt/ladder.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/recipes/dora_adapter.hpp>
#include <hetplan/recipes/pipeline.hpp>

#include "support/three_devices.hpp"

namespace test_replanning {

using namespace hetplan;
using namespace hetplan::test;

namespace {

struct question {
  double capacity, speed;  ///< the medium's capacity and the first device's speed, relative to their usual values
  std::size_t known;
  std::optional<seconds> latency;
  friend bool operator==(const question&, const question&) = default;
};

/// A planner for single devices that records its questions.
struct remembers {
  std::shared_ptr<std::vector<question>> asked = std::make_shared<std::vector<question>>();

  [[nodiscard]] plan_result operator()(const planning_problem& q) const { return answer(q, 0); }
  [[nodiscard]] plan_result operator()(const planning_problem& q, std::span<const plan> known) const {
    for (const plan& p : known) CHECK(p.stages.front().devices.front().device.index() < q.cluster.size());
    return answer(q, known.size());
  }
  [[nodiscard]] plan_result answer(const planning_problem& q, std::size_t known) const {
    CHECK_FALSE(q.with_bounds);
    const layer& l = q.model.layers().front();
    const double took_s = q.cost.time({.layer = l}, q.cluster[device_id(0)]).value();
    asked->push_back({q.cluster.network().resources().front().capacity / 400_Mbit_per_s, 1e10 / 4e12 / took_s, known, q.job.qoe.latency});
    return recipes::on_device(q, objective_of_job(q.job), 3);
  }
};
/// The same planner, without use for known plans.
struct in_full {
  remembers inner;
  [[nodiscard]] plan_result operator()(const planning_problem& q) const { return inner(q); }
};

struct asked_by_hand {
  planning_graph model = chain(6);
  cluster devices = three();
  planning_problem problem{model, devices, roofline{}, job{.workload = {.mode = mode::inference}, .batch = 8}};

  [[nodiscard]] adapt::conditions at(double capacity, double speed = 1) const {
    adapt::conditions c = adapt::nominal(devices);
    c.capacity[0] = c.capacity[0] * capacity;
    c.speed[0] = speed;
    return adapt::rounded(c, devices);
  }
};

}  // namespace

TEST_CASE("a planner that makes use of known plans is asked in full once for devices and speeds, then from these plans") {
  const asked_by_hand x;
  const remembers planner;
  adapt::replanning ask(x.problem, planner);
  const auto capacity = [&](double factor) { return x.at(factor).capacity[0] / 400_Mbit_per_s; };
  CHECK(ask(x.at(1), {}, {}).plans.size() == 3);
  CHECK(ask(x.at(0.5), {}, {}).plans.size() == 3);
  CHECK(ask(x.at(0.5), {}, {}).plans.size() == 3);
  CHECK(ask(x.at(2), {}, {}).plans.size() == 3);
  REQUIRE(planner.asked->size() == 3);
  const auto said = [&](std::size_t i) { return std::pair((*planner.asked)[i].capacity, (*planner.asked)[i].known); };
  CHECK(said(0) == std::pair(1.0, std::size_t{0}));
  CHECK(said(1) == std::pair(capacity(0.5), std::size_t{3}));
  CHECK(said(2) == std::pair(capacity(2), std::size_t{3}));

  planner.asked->clear();
  static_cast<void>(ask(x.at(0.5, 0.5), {}, {}));  // a new speed: planned for the usual network first
  static_cast<void>(ask(x.at(2, 0.5), {}, {}));
  adapt::conditions gone = x.at(0.5);
  gone.present[1] = 0;
  const plan_result& without = ask(gone, {}, {});
  for (const ranked_plan& r : without.plans) CHECK(r.plan.stages.front().devices.front().device != device_id(1));
  REQUIRE(planner.asked->size() == 5);
  CHECK(said(0) == std::pair(1.0, std::size_t{0}));
  CHECK(said(1) == std::pair(capacity(0.5), std::size_t{3}));
  CHECK(said(2) == std::pair(capacity(2), std::size_t{3}));
  CHECK(said(3) == std::pair(1.0, std::size_t{0}));
  CHECK(said(4).first == capacity(0.5));
  CHECK(said(4).second == without.plans.size());

  const remembers other;
  adapt::replanning without_use(x.problem, in_full{other});
  for (const double factor : {1.0, 0.5, 2.0}) static_cast<void>(without_use(x.at(factor), {}, {}));
  CHECK(other.asked->size() == 3);
  for (const question& q : *other.asked) CHECK(q.known == 0);
}

TEST_CASE("an answer is the same whatever else was asked for before") {
  const asked_by_hand x;
  const recipes::dora_planner planner;
  const std::vector<adapt::conditions> moments{x.at(1), x.at(0.3), x.at(0.3, 0.5), x.at(3), x.at(3, 0.5)};
  adapt::replanning forwards(x.problem, planner), backwards(x.problem, planner);
  std::vector<std::vector<ranked_plan>> first, last;
  for (const adapt::conditions& c : moments) first.push_back(forwards(c, {}, {}).plans);
  for (std::size_t i = moments.size(); i-- > 0;) last.insert(last.begin(), backwards(moments[i], {}, {}).plans);
  CHECK(first == last);
}

TEST_CASE("dora from plans for another network finds as good plans as in full, but for a few in a hundred", "[unsanitized]") {
  const asked_by_hand x;
  const recipes::dora_planner planner;
  for (const mode how : {mode::inference, mode::training}) {
    planning_problem problem = x.problem;
    problem.job.workload.mode = how;
    adapt::replanning narrow(problem, planner), wide(problem, [&](const planning_problem& q) { return planner(q); });
    for (const double speed : {1.0, 0.5}) {
      for (const double factor : {0.1, 0.3, 0.6, 1.5, 3.0, 10.0}) {
        CAPTURE(static_cast<int>(how), speed, factor);
        const plan_result &a = narrow(x.at(factor, speed), {}, {}), &b = wide(x.at(factor, speed), {}, {});
        REQUIRE((!a.plans.empty() && !b.plans.empty()));
        CHECK(a.plans.front().evaluation.response() <= 1.03 * b.plans.front().evaluation.response());
        CHECK(a.candidates < b.candidates);
      }
    }
  }
}

TEST_CASE("known plans that do not fit are no use, and the planner answers in full") {
  const asked_by_hand x;
  planning_problem problem = x.problem;
  const recipes::dora_planner planner;
  const std::vector<plan> known = plans_of(recipes::on_device(problem, objective_of_job(problem.job), 1).plans);
  const cluster small = three(40_MB);  // no device holds all 60 MB
  const planning_problem tight{x.model, small, roofline{}, problem.job};
  const plan_result in_full = planner(tight), from_known = planner(tight, known);
  CHECK(in_full.plans == from_known.plans);
  CHECK(in_full.status == from_known.status);
}

TEST_CASE("the ladder asks for something to spare only where what is wanted is in reach") {
  const asked_by_hand x;
  const double best_s = recipes::on_device(x.problem, objective_of_job(x.problem.job), 1).plans.front().evaluation.response().value();
  for (const auto& [wanted, expected] : {std::pair(0.5 * best_s, std::vector{0.5}), std::pair(2 * best_s, std::vector{2.0, 1.8})}) {
    planning_problem problem = x.problem;
    problem.job.qoe.latency = seconds(wanted);
    const remembers planner;
    adapt::ladder policy(problem, planner, {.spare = 0.1});
    const adapt::holdings held;
    const adapt::conditions now = x.at(1);
    const adapt::reaction r =
        policy.react({.now = {}, .since = {}, .noticed = now, .held = held, .traffic = {}, .wanted = problem.job.qoe});
    CHECK(r.next);
    REQUIRE(planner.asked->size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK((*planner.asked)[i].latency->value() == Approx(expected[i] * best_s));
  }
}

TEST_CASE("a planner that answers with plans of something else is named") {
  const asked_by_hand x;
  const planning_graph longer = chain(9);
  const cluster elsewhere("elsewhere", {x.devices.devices().begin(), x.devices.devices().end()}, shared_medium{400_Mbit_per_s, 2_ms});
  const planning_problem there{x.model, elsewhere, roofline{}, x.problem.job}, larger{longer, x.devices, roofline{}, x.problem.job};
  const auto said = [&](const planning_problem& answered) {
    const adapt::any_planner planner = [&](const planning_problem&) { return recipes::on_device(answered, minimize_latency{}); };
    adapt::replanning ask(x.problem, planner);
    try {
      static_cast<void>(ask(x.at(1), {}, {}));
    } catch (const invalid_input& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(said(x.problem).empty());
  CHECK(said(there) == "any_planner: the plan of planner \"on-device\": /cluster: expected that of the problem, \"" + x.devices.name() +
                           "\", got \"elsewhere\"");
  CHECK_THAT(said(larger), Catch::StartsWith("any_planner: the plan of planner \"on-device\": "));
}

}  // namespace test_replanning
