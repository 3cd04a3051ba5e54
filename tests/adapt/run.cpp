// SPDX-License-Identifier: BSL-1.0
// Runs worked by hand, with devices of 1 FLOP/s and wires of 1 B/s: FLOP and bytes are seconds.

#include <hetplan/adapt/run.hpp>
#include <hetplan/mix/mixing.hpp>

#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/adapt/fixed_policies.hpp>
#include <hetplan/search/ranking.hpp>

#include "support/by_hand.hpp"

namespace test_run {

using namespace hetplan;
using namespace hetplan::test;
using adapt::activity;
using adapt::reaction;
using adapt::situation;
using adapt::switching;

namespace {

device_id dev(int d) { return device_id(d); }
adapt::event at(double s, adapt::event_payload what) { return {seconds(s), std::move(what)}; }
adapt::capacity_becomes air(double rate) { return {resource_id(0), bytes_per_second(rate)}; }

/// A policy with scripted answers that records the times of its questions.
struct scripted {
  std::function<reaction(const situation&)> answer;
  std::vector<double> asked = {};
  reaction react(const situation& s) {
    asked.push_back(s.now.value());
    return answer(s);
  }
};

/// Answers with the first plan at the start, and with `next` once, at the first question after `from_s`.
scripted changes_once(plan first, double from_s, plan next, switching how, double thinking_s = 0) {
  return {[=, done = false](const situation& s) mutable -> reaction {
    if (s.running == nullptr) return {.next = first, .ask_again = seconds(from_s)};
    if (done || s.now.value() < from_s) return {};
    done = true;
    return {.next = next, .how = how, .reached = adapt::rung::replanned, .thinking = seconds(thinking_s), .reason = "told to"};
  }};
}
/// Answers with `next` once the running plan cannot go on.
scripted flees(plan first, plan next, switching how = switching::delta) {
  return {[=](const situation& s) -> reaction {
    if (s.running == nullptr) return {.next = first};
    if (s.can_run) return {};
    return {.next = next, .how = how, .reached = adapt::rung::replanned, .reason = "a device is gone"};
  }};
}

/// Two layers with weights, of 3 FLOP forward and 3 + 3 backward, and 2 B between them each way. An iteration takes 3 + 2 + 3 = 8 s
/// in inference and 3 + 2 + 3 + 6 + 2 + 6 = 22 s in training.
struct world_by_hand {
  planning_graph model;
  cluster devices;
  job what;

  world_by_hand(mode how, cluster c, double weight_bytes, bool frozen = false, double factor = 2, double tensor_bytes = 2)
      : model(make(weight_bytes, frozen, tensor_bytes)), devices(std::move(c)),
        what{.workload = {.mode = how, .optimizer_factor = factor}, .batch = 1} {}

  [[nodiscard]] auto problem() const { return planning_problem{model, devices, roofline{}, what}; }
  [[nodiscard]] plan apart(int a, int b) const {
    plan p = plan_of(what.workload.mode, 1, 1, {stage_of({0}, {{a, 1}}), stage_of({1}, {{b, 1}})});
    p.workload = what.workload;
    return p;
  }
  [[nodiscard]] plan together(int a) const {
    plan p = plan_of(what.workload.mode, 1, 1, {stage_of({0, 1}, {{a, 1}})});
    p.workload = what.workload;
    return p;
  }
  template <class Policy, class Detector = adapt::immediate>
  [[nodiscard]] adapt::history run(const adapt::timeline& t, Policy& policy, const adapt::run_options<Detector>& o = {}) const {
    return adapt::run(problem(), t, policy, o);
  }

 private:
  static planning_graph make(double weight_bytes, bool frozen, double tensor_bytes) {
    std::vector<layer_spec> layers{work_of("a", 3, 3, 3), work_of("b", 3, 3, 3)};
    for (layer_spec& l : layers) l.weight = bytes(weight_bytes);
    layers[0].trainable = !frozen;
    return model_of(std::move(layers), {{0, 1, tensor_bytes, tensor_bytes}});
  }
};

struct expected_stretch {
  activity what;
  double start_s, end_s;
  long long iterations = 0;
};
void check_stretches(const adapt::history& h, const std::vector<expected_stretch>& expected) {
  REQUIRE(h.stretches.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO("stretch " << i);
    CHECK(h.stretches[i].what == expected[i].what);
    CHECK(h.stretches[i].start_s == near(expected[i].start_s));
    CHECK(h.stretches[i].end_s == near(expected[i].end_s));
    CHECK(h.stretches[i].iterations == expected[i].iterations);
  }
}

}  // namespace

TEST_CASE("a capacity drop in the middle of an iteration slows what is still to be sent") {
  // The second iteration sends from 11 s. At 12 the medium drops to a quarter: 1 B until 16, F until 19. Then 3 + 8 + 3 = 14 s each.
  const world_by_hand x(mode::inference, wireless(3), 0);
  adapt::static_plan policy(x.apart(0, 1));
  const adapt::history h = x.run({48_s, {at(12, air(0.25))}}, policy);
  check_stretches(
      h, {{activity::running, 0, 8, 1}, {activity::running, 8, 19, 1}, {activity::running, 19, 47, 2}, {activity::cut_off, 47, 48}});
  CHECK(h.iterations == 4);
  CHECK(h.cut_off == 1);
  CHECK(h.stretches[1].response_s == near(11));
  CHECK(h.status.ok());
}

TEST_CASE("a device that slows down in the middle of a task has less of it behind it") {
  // d1 works 5..8, 13..16, ... At 14 it drops to half speed with 1 of 3 FLOP done: 2 more take 4 s, until 18. Then 3 + 2 + 6 = 11 s.
  const world_by_hand x(mode::inference, wireless(3), 0);
  adapt::static_plan policy(x.apart(0, 1));
  const adapt::history h = x.run({40_s, {at(14, adapt::speed_becomes{dev(1), 0.5})}}, policy);
  check_stretches(h, {{activity::running, 0, 8, 1}, {activity::running, 8, 18, 1}, {activity::running, 18, 40, 2}});
  CHECK(h.cut_off == 0);
}

TEST_CASE("an iteration loses its work with a device, which is missed after its last beat, timeout and probe") {
  // Three iterations of 8 s end at 24, the fourth is cut off at 30.25. Last beat at 30, suspected at 32, given up at 32.5. The
  // archive on d2 sends layer b, 5 B, until 37.5. On d0 alone, three of 6 s end at 55.5; the next is cut off at 60. d1 is back at 50.
  const world_by_hand x(mode::inference, wired(3), 5);
  scripted policy = flees(x.apart(0, 1), x.together(0));
  const adapt::run_options<> o{.storage = {.archive = dev(2)}};
  const adapt::history h = x.run({60_s, {at(30.25, adapt::device_leaves{dev(1)}), at(50, adapt::device_joins{dev(1)})}}, policy, o);
  check_stretches(h, {{activity::running, 0, 24, 3},
                      {activity::cut_off, 24, 30.25},
                      {activity::stalled, 30.25, 32.5},
                      {activity::migrating, 32.5, 37.5},
                      {activity::running, 37.5, 55.5, 3},
                      {activity::cut_off, 55.5, 60}});
  CHECK(policy.asked == std::vector<double>{0, 32.5, 55.5});  // d1's return at 50 becomes known between iterations, at 55.5
  REQUIRE(h.adoptions.size() == 1);
  CHECK(h.adoptions[0].caused_s == near(30.25));
  CHECK(h.adoptions[0].decided_s == near(32.5));
  CHECK(h.adoptions[0].done_s == near(37.5));
  CHECK(h.adoptions[0].stall_s == near(5));
  CHECK(h.adoptions[0].moved_bytes == near(5));
  CHECK(h.reaction_s == near(7.25));
  CHECK(h.stall_s == near(7.25));
  CHECK(h.moved_bytes == near(5));
  CHECK(h.switches == 1);
  CHECK(h.iterations == 6);
  CHECK(h.plans.size() == 2);
}

TEST_CASE("who comes back before anyone else has taken over goes on with what it held") {
  const world_by_hand x(mode::training, wired(3), 5);  // 22 s each
  scripted policy = flees(x.apart(0, 1), x.together(0));
  const adapt::history h =
      x.run({100_s, {at(30, adapt::device_leaves{dev(1)}), at(31, adapt::device_joins{dev(1)})}}, policy, adapt::run_options<>{});
  check_stretches(h, {{activity::running, 0, 22, 1},
                      {activity::cut_off, 22, 30},
                      {activity::stalled, 30, 31},
                      {activity::running, 31, 97, 3},
                      {activity::cut_off, 97, 100}});
  CHECK(h.adoptions.empty());
  CHECK(h.status.ok());
}

TEST_CASE("others' traffic takes its share over several iterations") {
  // Iterations send 2 B from their third second on, others 7 B from 4. First: at 4, 1 own byte is left and shares the medium until 6,
  // F until 9; others move 1 B until 6 and 3 B until 9. Second: others end at 12, own bytes 12..14, F until 17. Then 8 s each.
  const world_by_hand x(mode::inference, wireless(3), 0);
  adapt::static_plan policy(x.apart(0, 1));
  const adapt::history h = x.run({33_s, {at(4, adapt::transfer_begins{dev(2), dev(0), 7_B})}}, policy);
  check_stretches(h, {{activity::running, 0, 9, 1}, {activity::running, 9, 33, 3}});
  // With 9 B, others have 2 B left at 12: both share the medium until 16, F until 19.
  const adapt::history longer = x.run({27_s, {at(4, adapt::transfer_begins{dev(2), dev(0), 9_B})}}, policy);
  CHECK(longer.stretches.size() == 3);
  CHECK(longer.stretches[1].end_s == near(19));
}

TEST_CASE("equal iterations beside a long transfer are run at once, and leave of it what they would one by one") {
  // An iteration beside others' traffic takes 3 + 4 + 3 = 10 s, in which others move 8 B. Of 804 B, 4 B are left after 100
  // iterations: 3 B alone, then 2 B shared until 1005. The last own byte moves alone until 1006, F until 1009.
  const world_by_hand x(mode::inference, wireless(3), 0);
  adapt::static_plan policy(x.apart(0, 1));
  const adapt::history h = x.run({1017_s, {at(0, adapt::transfer_begins{dev(2), dev(0), 804_B})}}, policy);
  check_stretches(h, {{activity::running, 0, 1000, 100}, {activity::running, 1000, 1009, 1}, {activity::running, 1009, 1017, 1}});
}

TEST_CASE("traffic of a device that is away waits for it, from its first moment on") {
  // d2 is away 1..20. Its transfer of 4 B, due at 2, starts with the first iteration after 20.
  const world_by_hand x(mode::inference, wireless(3), 0);
  adapt::static_plan policy(x.apart(0, 1));
  const adapt::history h = x.run(
      {50_s,
       {at(1, adapt::device_leaves{dev(2)}), at(2, adapt::transfer_begins{dev(2), dev(0), 4_B}), at(20, adapt::device_joins{dev(2)})}},
      policy);
  // From 24: 3 B alone, 1 B shared until 29, the last own byte until 30, F until 33.
  check_stretches(
      h, {{activity::running, 0, 24, 3}, {activity::running, 24, 33, 1}, {activity::running, 33, 49, 2}, {activity::cut_off, 49, 50}});
}

TEST_CASE("immutable weights come while the old plan runs, and nothing stops") {
  // Inference takes 8 s on d0 and d1. At 8 all moves to d2, which fetches 5 B from each until 13 and starts at 16, 6 s each.
  const world_by_hand x(mode::inference, wired(3), 5);
  scripted policy = changes_once(x.apart(0, 1), 8, x.together(2), switching::background);
  const adapt::history h = x.run({28_s, {}}, policy);
  check_stretches(h, {{activity::running, 0, 16, 2}, {activity::running, 16, 28, 2}});
  REQUIRE(h.adoptions.size() == 1);
  CHECK(h.adoptions[0].decided_s == near(8));
  CHECK(h.adoptions[0].done_s == near(16));
  CHECK(h.adoptions[0].stall_s == 0);
  CHECK(h.adoptions[0].moved_bytes == near(10));
  CHECK(h.moved_bytes == near(10));
  CHECK(h.stall_s == 0);
  // With the plan stopped, both transfers take 5 s.
  scripted stops = changes_once(x.apart(0, 1), 8, x.together(2), switching::delta);
  const adapt::history stopped = x.run({25_s, {}}, stops);
  check_stretches(stopped, {{activity::running, 0, 8, 1}, {activity::migrating, 8, 13}, {activity::running, 13, 25, 2}});
}

TEST_CASE("in training a switch stops for weights and the optimizer's state, frozen weights come before") {
  // 22 s an iteration. Each layer has 15 B of weights and state: 30 s for both on one medium.
  const world_by_hand x(mode::training, wireless(3), 5);
  for (const switching how : {switching::delta, switching::background}) {
    scripted policy = changes_once(x.apart(0, 1), 22, x.together(2), how);
    const adapt::history h = x.run({88_s, {}}, policy);
    check_stretches(h, {{activity::running, 0, 22, 1}, {activity::migrating, 22, 52}, {activity::running, 52, 88, 2}});
    CHECK(h.moved_bytes == near(30));
  }
  // With the first layer frozen, its 5 B move during an iteration; the trainable layer's 15 B stop the plan for 15 s.
  const world_by_hand y(mode::training, wireless(3), 5, true);
  const double own = judge(y.apart(0, 1), y.model, y.devices, roofline{}).evaluation.latency.value();
  scripted policy = changes_once(y.apart(0, 1), own, y.together(2), switching::background, 0);
  const adapt::history h = y.run({seconds(own * 3 + 15), {}}, policy);
  REQUIRE(h.adoptions.size() == 1);
  CHECK(h.adoptions[0].stall_s == near(15));
  CHECK(h.adoptions[0].moved_bytes == near(20));
  CHECK(h.stretches[0].what == activity::running);
  CHECK(h.adoptions[0].decided_s == near(own));
  CHECK(h.adoptions[0].done_s > own * 2 + 15);  // the transfer slows that iteration
}

TEST_CASE("after a loss the model goes back to the last backup that is whole, and what was done since is lost") {
  // Without tensors, iterations take 12 s on two devices and 18 s on one. Each device copies its layer's 15 B to the other: 0..15,
  // after 3 iterations 36..51, after 6 72..87. d0 holds the copy of d1's layer, so nothing moves.
  const world_by_hand x(mode::training, wired(3), 5, false, 2, 0);
  const adapt::run_options<adapt::immediate> o{.storage = {.backups = adapt::backup_routine{.period = 3}}};
  const auto lost_at = [&](double s) {
    scripted policy = flees(x.apart(0, 1), x.together(0));
    return x.run({seconds(s + 37), {at(s, adapt::device_leaves{dev(1)})}}, policy, o);
  };
  const auto check = [&](double s, long long done, long long back_to) {
    INFO("d1 leaves at " << s);
    const adapt::history h = lost_at(s);
    CHECK(h.lost == done - back_to);
    CHECK(h.iterations == back_to + 2);
    CHECK(h.adoptions.size() == 1);
    CHECK(h.cut_off == 2);
    CHECK(h.status.ok());
  };
  check(16, 1, 0);
  check(40, 3, 0);  // the copy of iteration 3 is incomplete
  check(50, 4, 0);
  check(52, 4, 3);  // complete, although no iteration has ended since
  check(71, 5, 3);
  check(80, 6, 3);
  check(88, 7, 6);
  // A loss before the first complete copy is final.
  const adapt::history h = lost_at(14);
  CHECK(h.status.result == outcome::none_found);
  CHECK_THAT(h.status.reason, Catch::Contains("held it"));
  CHECK(h.iterations == 1);
  CHECK(h.lost == 0);
}

TEST_CASE("bytes of backups are charged to nobody's switch") {
  const world_by_hand x(mode::training, wired(3), 5, true, 2, 0);  // the frozen first layer is copied only once
  adapt::run_options<adapt::immediate> o{.storage = {.backups = adapt::backup_routine{.period = 1}}};
  scripted policy = changes_once(x.apart(0, 1), 20, x.apart(2, 1), switching::background);
  const adapt::history h = x.run({100_s, {}}, policy, o);
  REQUIRE(h.adoptions.size() == 1);
  CHECK(h.adoptions[0].moved_bytes == near(5));
  CHECK(h.moved_bytes > 5);
}

TEST_CASE("another microbatch size on the same devices moves no work and leaves the copies good") {
  world_by_hand x(mode::training, wired(3), 5, false, 2, 0);
  x.what.batch = 2;
  plan one_by_one = x.apart(0, 1), at_once = x.apart(0, 1);
  one_by_one.microbatches = 2;
  at_once.microbatch_size = 2;
  for (stage& s : at_once.stages) s.devices.front().samples = 2;
  scripted policy = changes_once(one_by_one, 60, at_once, switching::delta);
  const adapt::run_options<adapt::immediate> o{.storage = {.backups = adapt::backup_routine{.period = 100}}};
  const adapt::history h = x.run({400_s, {}}, policy, o);
  REQUIRE(h.adoptions.size() == 1);
  CHECK(h.switches == 0);
  CHECK(h.stall_s == 0);
  CHECK(h.moved_bytes == near(2 * 15));  // the first copy of each device
}

TEST_CASE("in generation another share of the sequences moves caches and no weights") {
  planning_graph_builder b("cached");
  b.add_layer({.name = "a", .forward_flops = flops(3), .weight = bytes(7), .kv_bytes_per_token = bytes(2)});
  const planning_graph model = std::move(b).build();
  const cluster devices = wired(2);
  const planning_problem problem{model, devices, roofline{},
                                 job{.workload = {.mode = mode::generation, .context = 3, .tokens = 2}, .batch = 4}};
  const auto shared_out = [&](int first) {
    plan p = plan_of(mode::generation, 4, 1, {stage_of({0}, {{0, first}, {1, 4 - first}})});
    p.workload = problem.job.workload;
    return p;
  };
  scripted policy = changes_once(shared_out(1), 100, shared_out(3), switching::delta);
  const adapt::history h = adapt::run(problem, {400_s, {}}, policy);
  REQUIRE(h.adoptions.size() == 1);
  CHECK(h.switches == 0);
  CHECK(h.adoptions[0].moved_bytes == near(2 * 5 * 2));  // two sequences change devices
  CHECK(h.adoptions[0].stall_s == near(20));
}

TEST_CASE("frozen weights that come back from a backup take no iteration back") {
  const world_by_hand x(mode::training, wired(3), 5, true, 2, 0);
  const adapt::run_options<adapt::immediate> o{.storage = {.backups = adapt::backup_routine{.period = 100}}};
  scripted policy = flees(x.apart(0, 1), x.together(1));  // d0 has the frozen layer
  const adapt::history h = x.run({100_s, {at(70, adapt::device_leaves{dev(0)})}}, policy, o);
  CHECK(h.adoptions.size() == 1);
  CHECK(h.lost == 0);
}

TEST_CASE("an outage holds an iteration up and no more; one that lasts ends with the time") {
  const world_by_hand x(mode::inference, wireless(3), 0);
  adapt::static_plan policy(x.apart(0, 1));
  // Own bytes 3..5, nothing moves 4..24: the transfer ends at 25, F at 28.
  const adapt::history h = x.run({36_s, {at(4, air(0)), at(24, air(1))}}, policy);
  check_stretches(h, {{activity::running, 0, 28, 1}, {activity::running, 28, 36, 1}});
  const adapt::history dark = x.run({1e6_s, {at(12, air(0))}}, policy);
  check_stretches(dark, {{activity::running, 0, 8, 1}, {activity::cut_off, 8, 1e6}});
  CHECK(dark.status.result == outcome::none_found);
  const adapt::history still = x.run({1e6_s, {at(8, adapt::speed_becomes{dev(1), 0})}}, policy);
  check_stretches(still, {{activity::running, 0, 8, 1}, {activity::stalled, 8, 1e6}});
  CHECK(still.status.result == outcome::none_found);
}

TEST_CASE("an iteration that stands still is given up when the policy learns of it and has something better") {
  const world_by_hand x(mode::inference, wireless(3), 0);
  const adapt::run_options<adapt::heartbeat> beats;
  // 8 s an iteration with bytes at 3..5; 6 s on one device. The medium fails during the second iteration's transfer, at 12.5. That is
  // known at 13; at 14 the medium is back.
  scripted leaves = flees(x.apart(0, 1), x.together(0), switching::at_no_cost);
  const adapt::history h = x.run({25_s, {at(12.5, air(0)), at(14, air(1))}}, leaves, beats);
  check_stretches(h, {{activity::running, 0, 8, 1}, {activity::cut_off, 8, 13}, {activity::running, 13, 25, 2}});
  // An outage shorter than its detection goes unnoticed.
  scripted stays = flees(x.apart(0, 1), x.together(0), switching::at_no_cost);
  const adapt::history brief = x.run({24.5_s, {at(12.2, air(0)), at(12.7, air(1))}}, stays, beats);
  check_stretches(brief, {{activity::running, 0, 8, 1}, {activity::running, 8, 16.5, 1}, {activity::running, 16.5, 24.5, 1}});
  // A policy without an alternative waits, and no work is repeated.
  adapt::static_plan patient(x.apart(0, 1));
  const adapt::history waits = x.run({26_s, {at(12, air(0)), at(14, air(1))}}, patient);
  check_stretches(waits, {{activity::running, 0, 8, 1}, {activity::running, 8, 18, 1}, {activity::running, 18, 26, 1}});
}

TEST_CASE("who loses the coordinator learns of it when the others have agreed on the next one") {
  // d1 is the strongest device and coordinates. Each election message sends 64 B to all over the medium of 100 B/s.
  cluster c("wireless", {worker("d0"), worker("d1", 2), worker("d2")}, shared_medium{bytes_per_second(100)});
  const world_by_hand x(mode::inference, std::move(c), 0);
  REQUIRE(adapt::elect_coordinator(x.devices, adapt::nominal(x.devices)) == dev(1));
  adapt::conditions left = adapt::nominal(x.devices);
  left.present[1] = 0;
  const double talk = adapt::election_time(x.devices, left).value();
  CHECK(talk == near(1.28));
  const adapt::heartbeat beats;
  const auto adopted_after = [&](int gone, int stays) {
    scripted policy = flees(x.apart(gone, stays), x.together(stays), switching::at_no_cost);
    const adapt::history h = x.run({60_s, {at(10.25, adapt::device_leaves{dev(gone)})}}, policy, adapt::run_options{beats, {}});
    REQUIRE(h.adoptions.size() == 1);
    return h.adoptions.front().done_s;
  };
  const double noticed = beats.noticed(10.25_s).value();
  CHECK(adopted_after(0, 2) == near(noticed));
  CHECK(adopted_after(1, 2) == near(noticed + talk));
}

TEST_CASE("a coordinator that is back before all have agreed that it was gone is back") {
  cluster c("wireless", {worker("d0"), worker("d1", 2), worker("d2")}, shared_medium{bytes_per_second(10)});  // the election takes 12.8 s
  const world_by_hand x(mode::inference, std::move(c), 0);
  std::vector<char> there;
  scripted policy{[&](const situation& s) -> reaction {
    there.push_back(s.noticed.present[1]);
    if (s.running == nullptr) return {.next = x.together(0)};
    return {};
  }};
  static_cast<void>(x.run({60_s, {at(10, adapt::device_leaves{dev(1)}), at(14, adapt::device_joins{dev(1)})}}, policy,
                          adapt::run_options{adapt::heartbeat{}, {}}));
  REQUIRE(there.size() >= 2);
  CHECK(there.back() == 1);
}

TEST_CASE("a mixture delivers in a run what it promised") {
  // Iterations of 8 s and 6 s, no weights: rates 1/8 and 1/6.
  const world_by_hand x(mode::inference, wireless(3), 0);
  for (const double progress : {101.0, 110.0, 120.0, 131.0}) {
    const mix::plan_rates rates{.plans = {{1.0 / 8, 1}, {1.0 / 6, 2}}};
    const mix::mixture m = mix::mix(rates, {.horizon_s = 800, .progress = progress, .running = 0});
    REQUIRE(m.parts.size() == 2);
    const plan plans[] = {x.apart(0, 1), x.together(0)};
    const double change = m.parts[0].pause_s + m.parts[0].seconds;
    scripted policy = changes_once(plans[m.parts[0].plan], change, plans[m.parts[1].plan], switching::delta);
    const adapt::history h = x.run({800_s, {}}, policy);
    CHECK(m.progress == near(progress));
    CHECK(std::abs(static_cast<double>(h.iterations) - m.progress) <= 2);  // whole iterations: one at each end of a part
    CHECK(static_cast<double>(h.iterations) <= m.progress + 1);
  }
}

TEST_CASE("a deadline that passes is missed, and one that is kept is not") {
  world_by_hand x(mode::inference, wireless(3), 0);
  adapt::static_plan policy(x.apart(0, 1));
  x.what.qoe = {.deadline = 24_s, .iterations = 3};
  const adapt::history h = x.run({100_s, {}}, policy);
  CHECK(h.finished_s == Approx(24));
  CHECK_FALSE(h.missed_deadline);
  CHECK(h.stretches.back().end_s == near(24));
  x.what.qoe.deadline = 23_s;
  CHECK(x.run({100_s, {}}, policy).missed_deadline);
  x.what.qoe.deadline = 1_s;
  const adapt::history late = x.run({100_s, {at(5, adapt::qoe_becomes{.deadline = 2_s})}}, policy);  // the new deadline has passed already
  CHECK(late.missed_deadline);
  CHECK(late.iterations == 3);
  const adapt::history in_time = x.run({20_s, {at(5, adapt::qoe_becomes{.deadline = 21_s})}}, policy);
  CHECK_FALSE(in_time.missed_deadline);  // undecided at the end of the timeline
  CHECK_FALSE(in_time.finished_s);
}

TEST_CASE("a latency that is wanted later counts from the iteration that begins then") {
  const world_by_hand x(mode::inference, wireless(3), 0);
  adapt::static_plan policy(x.apart(0, 1));
  const adapt::history h = x.run({40_s, {at(9, adapt::qoe_becomes{.latency = 7_s})}}, policy);
  CHECK(h.iterations == 5);
  CHECK(h.violations == 3);
}

TEST_CASE("a policy is asked again when it wants to be, between iterations") {
  const world_by_hand x(mode::inference, wireless(3), 0);
  const auto asked = [&](std::function<std::optional<seconds>(const situation&)> when, double duration) {
    scripted policy{[&](const situation& s) -> reaction {
      reaction r{.ask_again = when(s)};
      if (s.running == nullptr) r.next = x.apart(0, 1);
      return r;
    }};
    static_cast<void>(x.run({seconds(duration), {}}, policy));
    return policy.asked;
  };
  CHECK(asked([](const situation&) { return std::nullopt; }, 100) == std::vector<double>{0});
  CHECK(asked([](const situation& s) { return s.now + 10_s; }, 50) == std::vector<double>{0, 16, 32, 48});
  CHECK(asked([](const situation& s) { return s.now; }, 25) == std::vector<double>{0, 8, 16, 24});
  CHECK(asked([](const situation&) { return 0_s; }, 25) == std::vector<double>{0, 8, 16, 24});
}

TEST_CASE("a question that is due at once does not keep a job that cannot run from its end") {
  const world_by_hand x(mode::inference, wireless(3), 0);
  scripted policy{[&](const situation& s) -> reaction {
    reaction r{.ask_again = s.now};
    if (s.running == nullptr) r.next = x.apart(0, 1);
    return r;
  }};
  const adapt::history h = x.run({100_s, {at(4, adapt::device_leaves{dev(1)}), at(50, adapt::speed_becomes{dev(2), 2})}}, policy);
  CHECK(policy.asked == std::vector<double>{0, 4, 50});
  check_stretches(h, {{activity::cut_off, 0, 4}, {activity::stalled, 4, 100}});
  // The same while the next plan is being computed.
  scripted slow{[&](const situation& s) -> reaction {
    if (s.running == nullptr) return {.next = x.apart(0, 1)};
    if (s.can_run) return {};
    return {.next = x.apart(0, 2), .thinking = 20_s, .ask_again = s.now + 1_s};
  }};
  const adapt::history later = x.run({32_s, {at(4, adapt::device_leaves{dev(1)})}}, slow);
  check_stretches(later, {{activity::cut_off, 0, 4}, {activity::stalled, 4, 24}, {activity::running, 24, 32, 1}});
}

TEST_CASE("resting is idle until asked again, and a plan that comes meanwhile needs no background") {
  const world_by_hand x(mode::inference, wired(3), 5);
  scripted policy{[&](const situation& s) -> reaction {
    if (s.running == nullptr) return {.next = x.apart(0, 1), .ask_again = 8_s};
    if (s.now < 10_s) return {.ask_again = 20_s, .rest = true};
    return {};
  }};
  const adapt::history h = x.run({28_s, {}}, policy);
  check_stretches(h, {{activity::running, 0, 8, 1}, {activity::idle, 8, 20}, {activity::running, 20, 28, 1}});
  CHECK(h.stall_s == 0);
  scripted both{[&](const situation& s) -> reaction {
    if (s.running == nullptr) return {.next = x.apart(0, 1), .ask_again = 8_s};
    if (s.now < 10_s) return {.next = x.together(2), .how = switching::background, .ask_again = 20_s, .rest = true};
    return {};
  }};
  const adapt::history moved = x.run({26_s, {}}, both);
  check_stretches(moved,
                  {{activity::running, 0, 8, 1}, {activity::migrating, 8, 13}, {activity::idle, 13, 20}, {activity::running, 20, 26, 1}});
}

TEST_CASE("a plan on a device that has left in silence is dropped, whichever way it comes") {
  const world_by_hand x(mode::inference, wired(3), 5);
  for (const switching how : {switching::delta, switching::background, switching::through_coordinator, switching::at_no_cost}) {
    INFO(static_cast<int>(how));
    scripted policy = changes_once(x.apart(0, 1), 24, x.together(2), how);
    const adapt::run_options<> o{.detector = {.period = 10_s, .timeout = 20_s}};
    const adapt::history h = x.run({48_s, {at(23.5, adapt::device_leaves{dev(2)})}}, policy, o);
    check_stretches(h, {{activity::running, 0, 48, 6}});
    CHECK(h.adoptions.empty());
    CHECK(h.plans.size() == 1);
  }
}

TEST_CASE("weights in the background that can come no more do not hold a job for ever") {
  // d2 fetches 5 B from each of d0 and d1. It leaves at 10, during both transfers, which is known at once.
  const world_by_hand x(mode::inference, wired(4), 5);
  std::vector<bool> could;
  scripted policy{[&](const situation& s) -> reaction {
    if (s.running == nullptr) return {.next = x.apart(0, 1), .ask_again = 8_s};
    if (s.now < 10_s) return {.next = x.together(2), .how = switching::background};
    if (s.noticed.present[2] == 0) return {.next = x.together(3), .how = switching::background};
    return {};
  }};
  const adapt::history h = x.run({44_s, {at(10, adapt::device_leaves{dev(2)})}}, policy);
  REQUIRE(h.adoptions.size() == 1);
  CHECK(h.plans.back() == x.together(3));
  check_stretches(h, {{activity::running, 0, 24, 3}, {activity::running, 24, 42, 3}, {activity::cut_off, 42, 44}});
  CHECK(h.moved_bytes > 10);  // including the bytes sent to d2 in vain
}

TEST_CASE("a switch that is cut off by a loss leaves the old plan, and the policy is asked") {
  const world_by_hand x(mode::inference, wired(4), 5);
  scripted policy = changes_once(x.apart(0, 1), 8, x.together(2), switching::delta);
  const adapt::history h = x.run({24_s, {at(10, adapt::device_leaves{dev(2)})}}, policy);
  check_stretches(
      h, {{activity::running, 0, 8, 1}, {activity::migrating, 8, 10}, {activity::running, 10, 18, 1}, {activity::cut_off, 18, 24}});
  CHECK(h.adoptions.empty());
  CHECK(policy.asked == std::vector<double>{0, 8, 10});
  CHECK(h.status.ok());
}

TEST_CASE("energy is idle power while nothing runs, of those that are there") {
  world_by_hand x(mode::inference,
                  {"pair",
                   [] {
                     auto all = workers(3);
                     for (device& d : all) d.power = {1_W, 11_W};
                     return all;
                   }(),
                   mesh{bytes_per_second(1)}},
                  0);
  adapt::static_plan policy(x.apart(0, 1));
  // Iterations: 8 s, 3 s busy per device: 2 * (8 + 30) J. Cut off at 10: d0 busy for 2 s, 22 J; d1 idle, 2 J. Then d0 idle: 90 J.
  const adapt::history h = x.run({100_s, {at(10, adapt::device_leaves{dev(1)})}}, policy);
  CHECK(h.device_energy_J[0] == near(38 + 22 + 90));
  CHECK(h.device_energy_J[1] == near(38 + 2));
  CHECK(h.device_energy_J[2] == 0);
  CHECK(h.energy_J == near(190));
}

TEST_CASE("an empty timeline is the evaluation, over and over") {
  const world_by_hand x(mode::inference, wireless(3), 0);
  adapt::static_plan policy(x.apart(0, 1));
  const adapt::history h = x.run({8000_s, {}}, policy);
  check_stretches(h, {{activity::running, 0, 8000, 1000}});
  CHECK(h == x.run({8000_s, {}}, policy));
}

TEST_CASE("a run that makes no sense is refused before anyone is asked") {
  const world_by_hand x(mode::inference, wireless(3), 0);
  const auto refused = [&](const adapt::timeline& t, const adapt::run_options<>& o, const std::string& says) {
    scripted policy{[](const situation&) -> reaction { return {}; }};
    CHECK_THROWS_WITH(x.run(t, policy, o), Catch::Contains(says));
    CHECK_THROWS_AS(x.run(t, policy, o), invalid_input);
    CHECK(policy.asked.empty());
  };
  refused({0_s, {}}, {}, "duration");
  refused({seconds(std::numeric_limits<double>::infinity()), {}}, {}, "duration");
  refused({9_s, {at(-1, air(1))}}, {}, "event 0");
  refused({9_s, {at(2, air(1)), at(1, air(1))}}, {}, "event 1");
  refused({9_s, {at(2, adapt::capacity_becomes{resource_id(7), 1_B / 1_s})}}, {}, "no resource");
  refused({9_s, {at(2, air(-1))}}, {}, "capacity");
  refused({9_s, {at(2, adapt::speed_becomes{dev(9), 1})}}, {}, "no device");
  refused({9_s, {at(2, adapt::speed_becomes{dev(0), std::nan("")})}}, {}, "speed");
  refused({9_s, {at(2, adapt::device_joins{dev(0)})}}, {}, "is there already");
  refused({9_s, {at(2, adapt::device_leaves{dev(0)}), at(3, adapt::device_leaves{dev(0)})}}, {}, "is not there");
  refused({9_s, {at(2, adapt::device_leaves{dev(0)}), at(3, adapt::device_leaves{dev(1)}), at(20, adapt::device_leaves{dev(2)})}}, {},
          "no device is left");
  refused({9_s, {at(2, adapt::transfer_begins{dev(0), dev(0), 1_B})}}, {}, "no route");
  refused({9_s, {at(2, adapt::transfer_begins{dev(0), dev(1), bytes(-1)})}}, {}, "transfer");
  refused({9_s, {at(2, adapt::qoe_becomes{})}}, {}, "qoe");
  refused({9_s, {at(2, adapt::qoe_becomes{.latency = 0_s})}}, {}, "qoe.latency");
  refused({9_s, {}}, {.detector = {.period = 0_s}}, "heartbeat");
  refused({9_s, {}}, {.storage = {.backups = adapt::backup_routine{.period = 0}}}, "period");
  refused({9_s, {}}, {.storage = {.archive = dev(3)}}, "archive");
}

TEST_CASE("a plan whose iterations take no time is refused, as is one for another cluster") {
  const world_by_hand x(mode::inference, wireless(3), 0);
  const planning_graph nothing = model_of({work_of("a", 0)}, {});
  adapt::static_plan policy(plan_of(mode::inference, 1, 1, {stage_of({0}, {{0, 1}})}));
  const planning_problem problem{nothing, x.devices, roofline{}, x.what};
  CHECK_THROWS_WITH(adapt::run(problem, {9_s, {}}, policy), Catch::Contains("0 s"));
  adapt::static_plan elsewhere(x.apart(0, 7));
  CHECK_THROWS_AS(x.run({9_s, {}}, elsewhere), invalid_input);
}

TEST_CASE("a policy without a plan says why, and the job stalls") {
  const world_by_hand x(mode::inference, wireless(3), 0);
  scripted policy{[](const situation&) -> reaction { return {.reason = "nothing fits"}; }};
  const adapt::history h = x.run({9_s, {at(4, air(0.5))}}, policy);
  CHECK(h.status.result == outcome::none_found);
  CHECK(h.status.reason == "nothing fits");
  CHECK(policy.asked == std::vector<double>{0, 4});
  check_stretches(h, {{activity::stalled, 0, 9}});
  CHECK(h.energy_J == 0);
}

TEST_CASE("an observer sees time pass and may end it") {
  const world_by_hand x(mode::inference, wireless(3), 0);
  adapt::static_plan policy(x.apart(0, 1));
  const auto stop_at = [](const adapt::run_progress& l) { return l.so_far.iterations >= 2 ? control::stop : control::go; };
  const adapt::history h =
      adapt::run(x.problem(), {100_s, {at(9, air(0.5)), at(20, air(1))}}, policy, adapt::run_options<adapt::immediate>{}, stop_at);
  CHECK(h.status.result == outcome::stopped);
  CHECK(h.iterations == 2);
}

TEST_CASE("a timeline that time itself could not pass through is refused before anything runs") {
  const world_by_hand x(mode::inference, wireless(3), 0);
  scripted policy{[&](const situation&) { return reaction{.next = x.apart(0, 1)}; }};
  CHECK_THROWS_WITH(adapt::run(x.problem(), {seconds(3.6e23), {}}, policy),
                    Catch::Contains("duration = 3.6e+23 s; expected seconds > 0, at most 1e+09"));
  CHECK(policy.asked.empty());
  CHECK(adapt::run(x.problem(), {adapt::longest_timeline, {}}, policy).status.ok());
}

TEST_CASE("what makes work without end is stopped by its budget, and years of calm need none") {
  const world_by_hand x(mode::training, wireless(3), 1);
  adapt::static_plan policy(x.apart(0, 1));
  adapt::run_options<> o{.steps = 1000};
  CHECK(adapt::run(x.problem(), {adapt::longest_timeline, {}}, policy, o).status.ok());
  o.storage.backups = adapt::backup_routine{.period = 1};
  const adapt::history h = adapt::run(x.problem(), {adapt::longest_timeline, {at(9, air(0.5))}}, policy, o);
  CHECK(h.status.result == outcome::stopped);
  CHECK_THAT(h.status.reason, Catch::Contains("stopped by its budget of 1016 steps at "));
  CHECK(h.iterations > 100);
  scripted restless{[&](const situation& s) -> reaction {
    if (s.running == nullptr) return {.next = x.apart(0, 1), .ask_again = s.now};
    return {.ask_again = s.now, .rest = true};
  }};
  CHECK(adapt::run(x.problem(), {adapt::longest_timeline, {}}, restless, {.steps = 1000}).iterations == 1);
}

}  // namespace test_run
