// SPDX-License-Identifier: BSL-1.0
#include <hetplan/adapt/fixed_policies.hpp>
#include <hetplan/adapt/known_plans.hpp>
#include <hetplan/adapt/run.hpp>
#include <hetplan/cost/cost_model.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "support/random_source.hpp"
#include "support/three_devices.hpp"

namespace test_own_policy {

using namespace hetplan;
using namespace hetplan::test;
using adapt::change_size;

namespace {

/// A situation with one shared medium whose fields are set by hand.
struct asked {
  cluster devices = three(4_GB, 2000_Mbit_per_s);
  adapt::conditions now = adapt::nominal(devices);
  adapt::holdings held = {};
  std::vector<adapt::foreign_traffic> traffic = {};
  qoe_target wanted = {};
  bool can_run = true;
  std::string dropped = {};

  [[nodiscard]] adapt::situation situation() const {
    return {
        .now = {}, .since = {}, .noticed = now, .held = held, .traffic = traffic, .can_run = can_run, .dropped = dropped, .wanted = wanted};
  }
  /// Sets the medium to a multiple of its nominal capacity and returns the class of the change.
  change_size capacity(adapt::change_classifier& c, double factor) {
    now.capacity[0] = adapt::nominal(devices).capacity[0] * factor;
    return c.classify(situation());
  }
};

/// `network_only` rebuilt from public blocks.
struct mine {
  const planning_problem* problem;
  plan first;
  adapt::policy_options options = {};
  adapt::known_plans known{*problem};
  adapt::change_classifier changes{options};

  adapt::reaction react(const adapt::situation& s) {
    const change_size changed = changes.classify(s);
    if (s.running == nullptr) return {.next = first};
    if (changed == change_size::none || !s.can_run) return {};
    return adapt::reorder_transfers(*problem, known, s, options).value_or(adapt::reaction{});
  }
};
static_assert(adapt::check_adaptation_policy<mine>());

plan three_stages(const planning_graph& model, const cluster& c) {
  plan p{.model = model.name(), .cluster = c.name(), .workload = {.mode = mode::inference}, .microbatch_size = 1, .microbatches = 8};
  for (int s = 0; s < 3; ++s) {
    p.stages.push_back({.name = "s" + std::to_string(s), .layers = {layer_id(2 * s), layer_id(2 * s + 1)}, .devices = {{device_id(s), 1}}});
  }
  return p;
}

}  // namespace

TEST_CASE("small changes one way add up to a large one, and back and forth they do not") {
  asked x;
  adapt::change_classifier c({.small = 0.1});
  CHECK(x.capacity(c, 1) == change_size::large);
  CHECK(x.capacity(c, 1) == change_size::none);
  CHECK(x.capacity(c, 0.95) == change_size::small);
  CHECK(x.capacity(c, 0.95) == change_size::none);
  CHECK(x.capacity(c, 0.88) == change_size::large);  // 12 % since the last large change, 7 % since the last change
  for (int i = 0; i < 5; ++i) {
    CHECK(x.capacity(c, 0.92) == change_size::small);
    CHECK(x.capacity(c, 0.85) == change_size::small);
  }
  CHECK(x.capacity(c, 0) == change_size::large);
}

TEST_CASE("a change that is ignored is measured from the last one that was not") {
  asked x;
  adapt::change_classifier c({.small = 0.1, .ignore = 0.04});
  CHECK(x.capacity(c, 1) == change_size::large);
  CHECK(x.capacity(c, 0.98) == change_size::none);
  CHECK(x.capacity(c, 0.95) == change_size::small);  // measured from 1, not from 0.98
  CHECK(x.capacity(c, 0.93) == change_size::none);
  adapt::change_classifier deaf({.small = 0.1, .ignore = 0.5});
  CHECK(x.capacity(deaf, 1) == change_size::large);
  CHECK(x.capacity(deaf, 0.6) == change_size::none);  // ignored changes are not large, either
  CHECK(x.capacity(deaf, 0.4) == change_size::large);
}

TEST_CASE("other traffic, another wish, an outage and a dropped answer are large") {
  asked x;
  adapt::change_classifier c({});
  CHECK(c.classify(x.situation()) == change_size::large);
  x.traffic = {{device_id(0), device_id(1), 5_MB}};
  CHECK(c.classify(x.situation()) == change_size::large);
  x.traffic[0].left = 1_MB;
  CHECK(c.classify(x.situation()) == change_size::none);
  x.traffic[0].priority = 1;
  CHECK(c.classify(x.situation()) == change_size::large);
  x.wanted.latency = 1_s;
  CHECK(c.classify(x.situation()) == change_size::large);
  CHECK(c.classify(x.situation()) == change_size::none);
  x.can_run = false;
  for (int i = 0; i < 2; ++i) CHECK(c.classify(x.situation()) == change_size::large);  // large for as long as the outage lasts
  x.can_run = true;
  CHECK(c.classify(x.situation()) == change_size::none);
  x.dropped = "a device is gone";
  CHECK(c.classify(x.situation()) == change_size::large);
}

TEST_CASE("the blocks refuse what makes no sense") {
  CHECK_THROWS_WITH(adapt::change_classifier({.small = -1}), "change_classifier: small = -1; expected a finite number >= 0");
  CHECK_THROWS_WITH(adapt::change_classifier({.ignore = std::numeric_limits<double>::infinity()}),
                    "change_classifier: ignore = inf; expected a finite number >= 0");
  const asked x;
  const planning_graph model = chain(6);
  const planning_problem problem{model, x.devices, roofline{}, job{.workload = {.mode = mode::inference}, .batch = 8}};
  adapt::known_plans known(problem);
  CHECK_THROWS_WITH(adapt::reorder_transfers(problem, known, x.situation(), {}),
                    "reorder_transfers: no plan runs; expected one in situation::running");
}

TEST_CASE("network_only is what a user puts together of a classifier and an order of transfers") {
  const planning_graph model = chain(6);
  const cluster devices = three(4_GB, 2000_Mbit_per_s);
  const planning_problem problem{model, devices, roofline{}, job{.workload = {.mode = mode::inference}, .batch = 8}};
  const plan first = three_stages(model, devices);
  long long adopted = 0;
  for (std::uint64_t seed = first_seed(), last = seed + 5; seed < last; ++seed) {
    CAPTURE(seed);
    random_source random(seed);
    adapt::timeline t{100_s, {}};
    for (int i = 0; i < 6; ++i) {
      const double factor = random.between(0.5, 1.2);
      t.events.push_back({seconds(5 + 15 * i), adapt::capacity_becomes{resource_id(0), 2000_Mbit_per_s * factor}});
    }
    adapt::network_only theirs(problem, first);
    mine ours{&problem, first};
    const adapt::history a = adapt::run(problem, t, ours), b = adapt::run(problem, t, theirs);
    CHECK(a == b);
    adopted += static_cast<long long>(a.adoptions.size());
  }
  CHECK(adopted > 0);
}

}  // namespace test_own_policy
