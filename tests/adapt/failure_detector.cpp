// SPDX-License-Identifier: BSL-1.0
#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/adapt/environment.hpp>
#include <hetplan/cluster/topology.hpp>

#include "support/random_source.hpp"

using namespace hetplan;
using adapt::heartbeat;

TEST_CASE("a silent device is given up a timeout after its last beat and a probe later") {
  const heartbeat h{.period = 2_s, .timeout = 5_s, .probe = 1_s};
  CHECK(h.noticed(0_s) == 6_s);  // the device still sent the beat at 0 s
  CHECK(h.noticed(1.9_s) == 6_s);
  CHECK(h.noticed(2_s) == 8_s);
  CHECK(h.noticed(7_s) == 12_s);
  CHECK(h.seen(0_s) == 0_s);
  CHECK(h.seen(0.1_s) == 2_s);
  CHECK(h.seen(4_s) == 4_s);
  CHECK(h.traffic(3).value() == Approx(96));
  CHECK(adapt::immediate{}.noticed(3_s) == 3_s);
  CHECK(adapt::immediate{}.seen(3_s) == 3_s);
}

TEST_CASE("a heartbeat is what a coordinator that counts beats would do, whatever the periods") {
  const std::uint64_t first = test::first_seed();
  for (std::uint64_t seed = first; seed < first + 500; ++seed) {
    INFO("seed " << seed);
    test::random_source random(seed);
    heartbeat h;
    h.period = seconds(random.between(0.05, 3));
    h.timeout = h.period * random.between(1, 4);
    h.probe = seconds(random.between(0, 2));
    REQUIRE_NOTHROW(adapt::check_heartbeat(h));
    const double at = random.between(0, 50);
    double last = 0, next = 0;
    for (int k = 0; k * h.period.value() < at; ++k) {
      last = k * h.period.value();
      next = (k + 1) * h.period.value();
    }
    CHECK(h.noticed(seconds(at)).value() == Approx(last + h.timeout.value() + h.probe.value()));
    CHECK(h.seen(seconds(at)).value() == Approx(next));
    // The delay is within its stated window, and a later failure is not noticed earlier.
    const double delay = h.noticed(seconds(at)).value() - at;
    CHECK(delay <= (h.timeout + h.probe).value() * (1 + 1e-12));
    CHECK(delay >= (h.timeout - h.period + h.probe).value() - 1e-9);
    CHECK(delay >= 0);
    const double later = at + random.between(0, 3);
    CHECK(h.noticed(seconds(later)).value() >= h.noticed(seconds(at)).value() - 1e-9);
    CHECK(h.seen(seconds(later)).value() >= h.seen(seconds(at)).value() - 1e-9);
  }
}

TEST_CASE("heartbeats that would suspect everybody, or make no sense, are refused by name") {
  const auto message = [](const heartbeat& h) -> std::string {
    try {
      adapt::check_heartbeat(h);
    } catch (const invalid_input& e) {
      return e.what();
    }
    return "";
  };
  CHECK(message({}).empty());
  CHECK(message({.period = 0_s}).find("period = 0") != std::string::npos);
  CHECK(message({.period = 3_s, .timeout = 2_s}).find("timeout = 2; expected at least the period, 3 s") != std::string::npos);
  CHECK(message({.probe = seconds(-1)}).find("probe = -1") != std::string::npos);
  CHECK(message({.beat = bytes(NAN)}).find("beat") != std::string::npos);
}

TEST_CASE("events are known when the detector tells, wishes at once, and who comes back is not missed any more") {
  const device_id a(0), b(1);
  const adapt::timeline t{100_s,
                          {{1_s, adapt::device_leaves{a}},
                           {2.5_s, adapt::device_joins{a}},
                           {10.5_s, adapt::device_leaves{b}},
                           {11.2_s, adapt::qoe_becomes{.latency = 1_s}},
                           {11.3_s, adapt::speed_becomes{a, 0.5}},
                           {60_s, adapt::device_joins{b}}}};
  const heartbeat h{.period = 1_s, .timeout = 3_s, .probe = 0.5_s};
  CHECK(adapt::times_known(t, h) == std::vector<seconds>{3_s, 3_s, 13.5_s, 11.2_s, 12_s, 60_s});
  CHECK(adapt::times_known(t, adapt::immediate{}) == std::vector<seconds>{1_s, 2.5_s, 10.5_s, 11.2_s, 11.3_s, 60_s});
}

TEST_CASE("a detector of the user's that tells the future is refused") {
  struct prophet {
    [[nodiscard]] seconds noticed(seconds at) const { return at - 1_s; }
    [[nodiscard]] seconds seen(seconds at) const { return at; }
  };
  static_assert(adapt::check_failure_detector<prophet>());
  const adapt::timeline t{10_s, {{5_s, adapt::device_leaves{device_id(0)}}}};
  CHECK_THROWS_AS(adapt::times_known(t, prophet{}), invalid_model);
  CHECK_THROWS_WITH(adapt::times_known(t, prophet{}), Catch::Contains("noticed(5 s) = 4 s"));
}
