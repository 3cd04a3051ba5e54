// SPDX-License-Identifier: BSL-1.0
// Candidates under one judge, where runs are so long that estimates rank them first.

#include <hetplan/search/ranking.hpp>

#include <catch2/catch.hpp>

#include "support/by_hand.hpp"

namespace test_ranking {

using namespace hetplan;
using namespace hetplan::test;

namespace {

constexpr int many = 600;

/// Joules that do not grow with the run: what further microbatches add says too little of `square`, too much of `capped`.
struct bent_power {
  [[nodiscard]] joules energy(const device_usage& u, const device& d) const {
    const double total = u.total.value();
    return joules(d.kind == "square" ? total * total : d.kind == "capped" ? std::min(total, 30.0) : d.kind == "steady" ? 1000 : 0);
  }
};

/// A slow and a fast device, both of which a plan may use alone; 0.1 s or 1 s a microbatch.
struct setting {
  planning_graph model = model_of({work_of("a", 1)}, {});
  cluster devices;

  setting(std::string fast_kind, double fast_J, std::string slow_kind = "", double slow_J = 1)
      : devices("two",
                {of_kind(worker("fast", 10), std::move(fast_kind), fast_J), of_kind(worker("slow", 1), std::move(slow_kind), slow_J)},
                mesh{bytes_per_second(1), seconds(0)}) {}

  static device of_kind(device d, std::string kind, double budget_J) {
    d.kind = std::move(kind);
    d.energy_budget = joules(budget_J);
    return d;
  }
  [[nodiscard]] auto problem() const {
    return planning_problem{model, devices, roofline{}, job{.workload = {.mode = mode::inference}, .batch = many, .microbatch_sizes = {1}},
                            judge_models{plain_memory{}, bent_power{}}};
  }
  [[nodiscard]] static plan on(int d) { return plan_of(mode::inference, 1, many, {stage_of({0}, {{d, 1}})}); }
};

/// The answer where the only candidate is a run on the fast device, which an estimate refuses.
plan_result answer_to_refused(const setting& s) {
  const auto problem = s.problem();
  const minimize_latency fastest;
  ranking best(problem, fastest, 1);
  static_cast<void>(best.consider(setting::on(0), 1));
  CHECK_FALSE(best.last_fitted());
  return std::move(best).result();
}

}  // namespace

TEST_CASE("where no long run fits, the limit that binds is told as the whole run breaks it") {
  const setting s("square", 100);  // 60 s and 3 600 J; an estimate says 352 J
  const auto problem = s.problem();
  const plan_result r = answer_to_refused(s);
  CHECK(r.status.result == outcome::none_found);
  REQUIRE(r.binding);
  const auto truth = find_broken_limit(judge(setting::on(0), s.model, s.devices, problem.cost, problem.models).evaluation, s.devices);
  REQUIRE(truth);
  CHECK(r.binding->overflow() == truth->overflow());
  CHECK(r.status.reason == to_string(*truth, s.devices) + " (1 plan of given tried)");
}

TEST_CASE("a later candidate takes the place of all that break a limit in the whole run") {
  const setting s("square", 1000);  // an estimate says 352 J, the whole run takes 3 600 J
  const auto problem = s.problem();
  const minimize_latency fastest;
  ranking best(problem, fastest, 1);
  static_cast<void>(best.consider(setting::on(0), 2));
  CHECK(best.last_fitted());
  static_cast<void>(best.consider(setting::on(1), 2));
  const plan_result r = std::move(best).result();
  REQUIRE(r.plans.size() == 1);
  CHECK(r.plans.front().plan.stages.front().devices.front().device == device_id(1));
  CHECK(r.plans.front().evaluation.latency.value() == near(many));
}

TEST_CASE("a run that only an estimate refuses is found where nothing else fits") {
  const setting s("capped", 40);  // an estimate says 60 J, the whole run takes 30 J: 2 J, 4 J and what 28 further parts add
  const plan_result r = answer_to_refused(s);
  REQUIRE(r.status.ok());
  REQUIRE(r.plans.size() == 1);
  CHECK(r.plans.front().evaluation.energy() == joules(30));
}

TEST_CASE("what was judged in full is not judged again, and competes with estimates that were") {
  // The fast device takes less than the slow one's 1 000 J by the estimate, 352 J, and 3 600 J in truth.
  struct least_energy {
    [[nodiscard]] double score(const evaluation& e) const { return e.energy().value(); }
  };
  const setting s("square", 1e6, "steady", 1e6);
  const auto problem = s.problem();
  const least_energy least;
  ranking best(problem, least, 2);
  const evaluation known = judge(setting::on(1), s.model, s.devices, problem.cost, problem.models).evaluation;
  static_cast<void>(best.consider(setting::on(0), 2));
  const long long before = best.budget().used();
  static_cast<void>(best.consider(setting::on(1), known, 2));
  CHECK(best.budget().used() == before);
  const plan_result r = std::move(best).result();
  REQUIRE(r.plans.size() == 2);
  CHECK(r.plans.front().evaluation.energy() == joules(1000));
  CHECK(r.plans.back().evaluation.energy().value() == near(3600));
  CHECK(r.steps == before + many);
}

TEST_CASE("observers are told whether the best so far is an estimate") {
  const setting s("", 1e6, "", 1e6);
  const auto problem = s.problem();
  const minimize_latency fastest;
  std::vector<bool> estimated;
  const auto listen = [&](const candidate_judged& c) {
    REQUIRE(c.best != nullptr);
    estimated.push_back(c.estimated);
    return control::go;
  };
  ranking best(problem, fastest, 2);
  static_cast<void>(best.consider(setting::on(1), 2, listen));
  plan whole = setting::on(0);
  whole.microbatch_size = many;
  whole.microbatches = 1;
  whole.stages.front().devices.front().samples = many;
  static_cast<void>(best.consider(whole, 2, listen));
  CHECK(estimated == std::vector<bool>{true, false});
}

}  // namespace test_ranking
