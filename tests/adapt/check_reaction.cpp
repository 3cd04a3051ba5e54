// SPDX-License-Identifier: BSL-1.0
#include <hetplan/adapt/adaptation_policy.hpp>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/adapt/run.hpp>

#include "support/by_hand.hpp"

namespace test_check_reaction {

using namespace hetplan;
using namespace hetplan::test;
using adapt::reaction;
using adapt::situation;

namespace {

/// Two layers of 3 FLOP and 5 B of weights each, on devices of 1 FLOP/s.
struct trained_by_hand {
  planning_graph model = make();
  cluster devices = wireless(3);
  job what{.workload = {.mode = mode::training, .optimizer_factor = 2}, .batch = 2};
  plan first = on(0);

  static planning_graph make() {
    std::vector<layer_spec> layers{work_of("a", 3, 3, 3), work_of("b", 3, 3, 3)};
    for (layer_spec& l : layers) l.weight = bytes(5);
    return model_of(std::move(layers), {{0, 1, 2, 2}});
  }
  [[nodiscard]] plan on(int d) const {
    plan p = plan_of(mode::training, 1, 2, {stage_of({0, 1}, {{d, 1}})});
    p.planner = "mine";
    p.workload = what.workload;
    return p;
  }
  /// Returns the error that `spoil` causes in the second answer, at 36 s. A valid answer would move the weights of 2 layers.
  [[nodiscard]] std::string said_of(const std::function<void(reaction&)>& spoil) const {
    struct spoiled {
      plan first, next;
      const std::function<void(reaction&)>& spoil;
      reaction react(const situation& s) {
        if (s.running == nullptr) return {.next = first, .ask_again = seconds(30)};
        reaction r{.next = next};
        spoil(r);
        return r;
      }
    } policy{first, on(1), spoil};
    struct {
      double moved_bytes = 0;
      control operator()(const adapt::run_progress& p) {
        moved_bytes = p.so_far.moved_bytes;
        return control::go;
      }
    } seen;
    const planning_problem problem{model, devices, roofline{}, what};
    std::string said;
    try {
      static_cast<void>(adapt::run(problem, {300_s, {}}, policy, adapt::run_options<adapt::immediate>{}, seen));
    } catch (const invalid_input& e) {
      said = std::string("invalid_input: ") + e.what();
    } catch (const invalid_model& e) {
      said = std::string("invalid_model: ") + e.what();
    }
    if (!said.empty()) CHECK(seen.moved_bytes == 0);
    return said;
  }
};

const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("a time that a policy answers is a number, not negative and no longer than the longest timeline") {
  const trained_by_hand x;
  const std::string who = "invalid_model: adaptation policy: its answer at 36 s: ";
  CHECK(x.said_of([](reaction&) {}).empty());
  for (const double bad : {nan, -1.0, inf, -inf, 1e300, 1.1e9}) {
    CAPTURE(bad);
    CHECK(x.said_of([&](reaction& r) { r.thinking = seconds(bad); }) ==
          who + "thinking = " + to_text(bad) + "; expected seconds from 0 to 1e+09");
    CHECK(x.said_of([&](reaction& r) { r.ask_again = seconds(bad); }) ==
          who + "ask_again = " + to_text(bad) + "; expected a time of the timeline, at most 1e+09 s from now");
    CHECK(x.said_of([&](reaction& r) { r.answers = seconds(bad); }) ==
          who + "answers = " + to_text(bad) + "; expected a time from 0 s until now");
  }
  CHECK(x.said_of([](reaction& r) { r.answers = seconds(37); }) == who + "answers = 37; expected a time from 0 s until now");
  CHECK(x.said_of([](reaction& r) {
           r.thinking = 1_s;
           r.ask_again = 2_s;  // a past time: asked again at once
           r.answers = 36_s;
         }).empty());
  CHECK(x.said_of([](reaction& r) { r.how = static_cast<adapt::switching>(9); }) == who + "how = 9; expected a way of switching");
  CHECK(x.said_of([](reaction& r) { r.reached = static_cast<adapt::rung>(-1); }) == who + "reached = -1; expected a step of the ladder");
}

TEST_CASE("a plan that a policy answers is one of the job") {
  const trained_by_hand x;
  const std::string who = "invalid_input: adaptation policy: its answer at 36 s: the plan of planner \"mine\": ";
  const auto said = [&](const std::function<void(plan&)>& spoil) { return x.said_of([&](reaction& r) { spoil(*r.next); }); };
  CHECK(said([](plan& p) { p.workload.mode = mode::inference; }) ==
        who + "/workload/mode: expected that of the job, training, got inference");
  CHECK(said([](plan& p) { p.workload.optimizer_factor = 0; }) == who + "/workload/optimizer_factor: expected that of the job, 2, got 0");
  CHECK(said([](plan& p) { p.workload.optimizer_factor = nan; }) ==
        who + "/workload/optimizer_factor: expected that of the job, 2, got nan");
  CHECK(said([](plan& p) { p.workload.context = 7; }) == who + "/workload/context: expected that of the job, 0, got 7");
  CHECK(said([](plan& p) { p.microbatches = 1; }) == who + "samples of an iteration: expected that of the job, 2, got 1");
  CHECK(said([](plan& p) { p.microbatches = 3; }) == who + "samples of an iteration: expected that of the job, 2, got 3");
  CHECK(said([](plan& p) { p.model = "other"; }) ==
        who + "/model: expected that of the problem, \"" + x.model.name() + "\", got \"other\"");
  CHECK(said([](plan& p) { p.cluster = "other"; }) ==
        who + "/cluster: expected that of the problem, \"" + x.devices.name() + "\", got \"other\"");
  CHECK(said([&](plan& p) {
          p.model = x.model.name();
          p.cluster = x.devices.name();
        }).empty());
  CHECK(said([](plan& p) { p.schedule.kind = static_cast<schedule_kind>(99); }) ==
        who + "/schedule/kind: expected a value with a name (0 to 2), got 99");
  CHECK_THAT(said([](plan& p) { p.sharing_policy = static_cast<sharing>(99); }), Catch::StartsWith(who + "/network: "));
  CHECK_THAT(said([](plan& p) { p.transfers = static_cast<transfer_mode>(99); }), Catch::StartsWith(who + "/transfers: "));
  CHECK_THAT(said([](plan& p) { p.copies = static_cast<transfer_copies>(-1); }), Catch::StartsWith(who + "/copies: "));
  CHECK_THAT(said([](plan& p) { p.stages[0].layers = {layer_id(0)}; }), Catch::StartsWith(who) && Catch::Contains("layer"));
  CHECK_THAT(said([](plan& p) { p.stages[0].layers = {layer_id(0), layer_id(7)}; }), Catch::StartsWith(who) && Catch::Contains("7"));
  CHECK_THAT(said([](plan& p) { p.stages[0].devices[0].device = device_id(9); }), Catch::StartsWith(who) && Catch::Contains("9"));
  CHECK_THAT(said([](plan& p) { p.stages[0].devices[0].device = device_id(); }), Catch::StartsWith(who));
  CHECK_THAT(said([](plan& p) { p.stages[0].devices[0].samples = -1; }), Catch::StartsWith(who) && Catch::Contains("-1"));
  CHECK_THAT(said([](plan& p) { p.stages.clear(); }), Catch::StartsWith(who) && Catch::Contains("stage"));
  CHECK(said([](plan& p) { p.workload.tokens = 99; }).empty());  // `tokens` is ignored in training
  for (const sharding s : {sharding::zero2, sharding::fsdp}) {
    const auto two = [s](plan& p) {
      p.microbatches = 1;
      p.microbatch_size = 2;
      p.stages = {stage_of({0, 1}, {{0, 1}, {1, 1}})};
      p.stages[0].shard = s;
    };
    CHECK_THAT(said(two), Catch::StartsWith(who + "stage \"") &&
                              Catch::Contains(" is under " + std::string(s == sharding::zero2 ? "zero2" : "fsdp")) &&
                              Catch::Contains("what moves when such a plan changes is not known"));
  }
}

TEST_CASE("the first plan of a policy is checked like any other") {
  const trained_by_hand x;
  struct wrong {
    plan p;
    reaction react(const situation&) const { return {.next = p}; }
  } policy{x.first};
  policy.p.workload.mode = mode::generation;
  const planning_problem problem{x.model, x.devices, roofline{}, x.what};
  CHECK_THROWS_WITH(
      adapt::run(problem, {9_s, {}}, policy),
      "adaptation policy: its answer at 0 s: the plan of planner \"mine\": /workload/mode: expected that of the job, training, "
      "got generation");
}

TEST_CASE("a plan does not hold a transfer back for longer than the longest timeline") {
  const trained_by_hand x;
  const auto said = [&](double release_s) {
    return x.said_of([&](reaction& r) {
      plan& p = *r.next;
      p.stages = {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})};
      p.schedule.transfers = {
          {.from = device_id(0), .to = device_id(1), .from_stage = stage_id(0), .to_stage = stage_id(1), .release = seconds(release_s)}};
    });
  };
  CHECK(said(3).empty());
  CHECK(said(1e300) ==
        "invalid_input: adaptation policy: its answer at 36 s: the plan of planner \"mine\": /schedule/flows/0/release: expected at most "
        "1e+09 s, got 1e+300 s");
}

TEST_CASE("a job whose policy gives no plan and no reason says that, and not that a device of a plan is away") {
  const trained_by_hand x;
  struct silent {
    reaction react(const situation&) const { return {}; }
  } policy;
  const planning_problem problem{x.model, x.devices, roofline{}, x.what};
  const adapt::history h = adapt::run(problem, {9_s, {}}, policy);
  CHECK(h.status.result == outcome::none_found);
  CHECK(h.status.reason == "the policy gave no plan, and no reason for it");
}

}  // namespace test_check_reaction
