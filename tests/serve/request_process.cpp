// SPDX-License-Identifier: BSL-1.0
// Synthetic requests: closed forms, hand-made cases, independence of streams, invalid input.

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/core/error.hpp>
#include <hetplan/serve/request_process.hpp>

#include "support/message_of.hpp"
#include "support/random_source.hpp"

namespace test_request_process {

using namespace hetplan;
using namespace hetplan::serve;

namespace {

edge_cloud cloud_of(int servers) {
  edge_cloud c{.name = "street", .servers = {}, .ring = {.period = 100_ms}};
  for (int n = 0; n < servers; ++n) c.servers.push_back({.name = "s" + std::to_string(n), .uplink = 1_GB_per_s, .downlink = 1_GB_per_s});
  return c;
}

std::vector<service> three_services() {
  const service_variant one{.name = "one", .gpu_kind = "P100", .memory = 2_GB};
  return {{.name = "image", .latency = 1_s, .variants = {one}},
          {.name = "video", .latency = 1_s, .rate = 30, .frames = 90.4, .variants = {one}},
          {.name = "text", .latency = 9_s, .generates = true, .tokens = {20.6, 0.2}, .variants = {one}}};
}

request_process one_rate(double per_s, double cv, seconds duration, int what = 0) {
  return {.rates = {{service_id(what), server_id(0), per_s, cv}}, .duration = duration};
}

request_stream drawn(const request_process& p, std::uint64_t seed) { return draw_requests(p, cloud_of(3), three_services(), seed); }

struct moments {
  double mean = 0, variance = 0;
};
moments of(const std::vector<double>& values) {
  moments m;
  for (const double v : values) m.mean += v / static_cast<double>(values.size());
  for (const double v : values) m.variance += (v - m.mean) * (v - m.mean) / static_cast<double>(values.size() - 1);
  return m;
}

std::string refused(const request_process& p) {
  return test::message_of([&] { validate(p, cloud_of(3), three_services()); });
}

}  // namespace

TEST_CASE("the number of requests has the mean and the variance of a stationary renewal process") {
  // Cox, Renewal Theory: the mean is rate x time for any cv; after many gaps, the variance is cv^2 x mean + 1/6 + cv^4 / 2 - m / 3, with m
  // = 2 cv^4 the third central moment of Gamma's gaps in units of the mean gap. Over 3000 runs, tolerances are 4.5 standard errors for the
  // mean and 15 % for the variance: more than 5 standard errors where counts are nearly normal.
  constexpr int runs = 3000;
  constexpr double per_s = 4, time_s = 50;
  const std::uint64_t seed = test::first_seed();
  CAPTURE(seed);
  for (const double cv : {0.0, 0.3, 0.8, 1.0, 2.0, 4.0}) {
    CAPTURE(cv);
    const auto p = one_rate(per_s, cv, seconds(time_s));
    std::vector<double> counts;
    for (int i = 0; i < runs; ++i) counts.push_back(static_cast<double>(drawn(p, seed * 1'000'003 + static_cast<std::uint64_t>(i)).size()));
    const auto [mean, variance] = of(counts);
    const double expected = cv * cv * per_s * time_s + (1 - std::pow(cv, 4)) / 6;
    if (cv == 0) {
      CHECK(counts == std::vector<double>(runs, per_s * time_s));  // whole gaps fit for any phase
      continue;
    }
    CHECK(std::abs(mean - per_s * time_s) < 4.5 * std::sqrt(expected / runs));
    CHECK(variance == Approx(expected).epsilon(0.15));
  }
}

TEST_CASE("gaps have their mean, their coefficient of variation and their third moment") {
  // 200 000 gaps of the process; the skewness of Gamma is 2 cv.
  for (const double cv : {0.2, 0.9, 1.0, 1.5, 3.0}) {
    CAPTURE(cv);
    const auto all = drawn(one_rate(10, cv, 20'000_s), 7);
    std::vector<double> gaps;
    for (std::size_t i = 1; i < all.size(); ++i) gaps.push_back(all[i].arrival_s - all[i - 1].arrival_s);
    const auto [mean, variance] = of(gaps);
    double third = 0;
    for (const double g : gaps) third += std::pow(g - mean, 3) / static_cast<double>(gaps.size());
    CHECK(mean == Approx(0.1).epsilon(0.03));
    CHECK(std::sqrt(variance) / mean == Approx(cv).epsilon(0.03));
    CHECK(third / std::pow(variance, 1.5) == Approx(2 * cv).epsilon(0.12));
  }
}

TEST_CASE("without variation requests are evenly spaced from a drawn phase on") {
  const auto all = drawn(one_rate(8, 0, 10_s), 3);
  REQUIRE(all.size() == 80);
  CHECK(all[0].arrival_s < 0.125);
  for (std::size_t i = 1; i < all.size(); ++i) CHECK(all[i].arrival_s - all[i - 1].arrival_s == Approx(0.125).epsilon(1e-12));
}

TEST_CASE("a seed gives the same requests for ever") {
  const auto poisson = drawn(one_rate(2, 1, 2_s), 1);
  const auto bursty = drawn(one_rate(2, 3, 20_s), 1);
  REQUIRE(poisson.size() == 6);
  REQUIRE(bursty.size() == 27);
  CHECK(poisson[0].arrival_s == Approx(0.39549712054733466).epsilon(1e-12));
  CHECK(bursty[0].arrival_s == Approx(0.97511607872754469).epsilon(1e-12));
  CHECK(bursty[bursty.size() - 1].arrival_s == Approx(11.905149622283311).epsilon(1e-12));
  CHECK(drawn(one_rate(2, 3, 20_s), 1) == bursty);
  CHECK_FALSE(drawn(one_rate(2, 3, 20_s), 2) == bursty);
}

TEST_CASE("what enters at one server does not depend on the others, and all are in order of arrival") {
  const request_rate a{service_id(0), server_id(0), 5, 2}, b{service_id(2), server_id(1), 7, 1}, c{service_id(0), server_id(2), 3, 0.5};
  const auto together = drawn({.rates = {a, b, c}, .duration = 60_s}, 9);
  for (const auto& each : {a, b, c}) {
    std::vector<request> own;
    for (const auto& r : together)
      if (r.service == each.service && r.server == each.server) own.push_back(r);
    CHECK(request_stream(own) == drawn({.rates = {each}, .duration = 60_s}, 9));
  }
  CHECK(drawn({.rates = {c, b, a}, .duration = 60_s}, 9) == together);
  // A shorter duration only truncates the stream.
  const auto shorter = drawn({.rates = {a, b, c}, .duration = 20_s}, 9);
  const auto begin = together.between(0_s, 20_s);
  CHECK(shorter == request_stream({begin.begin(), begin.end()}));
}

TEST_CASE("twice the rate is the same requests in half the time") {
  const auto slow = drawn(one_rate(4, 2.5, 64_s), 5), fast = drawn(one_rate(8, 2.5, 32_s), 5);
  REQUIRE(slow.size() == fast.size());
  for (std::size_t i = 0; i < slow.size(); ++i) CHECK(slow[i].arrival_s == Approx(2 * fast[i].arrival_s).epsilon(1e-12));
}

TEST_CASE("lengths are typical, or drawn, each as often as the others") {
  CHECK(drawn(one_rate(5, 1, 10_s, 0), 1)[0].length == 1);
  CHECK(drawn(one_rate(5, 1, 10_s, 1), 1)[0].length == 90);
  const auto text = drawn(one_rate(5, 1, 10_s, 2), 1)[0];
  CHECK(text.tokens_in == 21);
  CHECK(text.length == 1);

  auto p = one_rate(100, 1, 300_s, 2);
  p.lengths = {{}, {}, {{10, 1}, {20, 2}, {30, 3}}};
  const auto all = drawn(p, 4);
  std::vector<double> seen(4);
  for (const auto& r : all) {
    REQUIRE(r.tokens_in == 10 * r.length);
    seen.at(r.length) += 1;
  }
  for (std::size_t l = 1; l <= 3; ++l) CHECK(seen[l] / static_cast<double>(all.size()) == Approx(1.0 / 3).epsilon(0.05));
  // Lengths and arrivals are drawn independently.
  const auto typical = drawn(one_rate(100, 1, 300_s, 2), 4);
  REQUIRE(typical.size() == all.size());
  CHECK(typical[all.size() - 1].arrival_s == all[all.size() - 1].arrival_s);
}

TEST_CASE("nothing enters at rate 0 or in no time") {
  CHECK(drawn(one_rate(0, 1, 10_s), 1).empty());
  CHECK(drawn(one_rate(5, 1, 0_s), 1).empty());
  CHECK(drawn({.rates = {}, .duration = 10_s}, 1).empty());
}

TEST_CASE("a process that breaks a rule is refused before anything is drawn") {
  using Catch::Matchers::Contains;
  auto p = one_rate(5, 1, 10_s);
  CHECK(refused(p) == "no error");
  const auto with_rate = [](const request_rate& r) { return request_process{.rates = {r}, .duration = 10_s}; };
  CHECK_THAT(refused(with_rate({service_id(3), server_id(0), 1})), Contains("rate 0: service 3; there are 3"));
  CHECK_THAT(refused(with_rate({service_id(), server_id(0), 1})), Contains("service -1"));
  CHECK_THAT(refused(with_rate({service_id(0), server_id(3), 1})), Contains("server 3; there are 3"));
  CHECK_THAT(refused(with_rate({service_id(0), server_id(0), -1})), Contains("per_s = -1"));
  CHECK_THAT(refused(with_rate({service_id(0), server_id(0), INFINITY})), Contains("per_s = inf"));
  CHECK_THAT(refused(with_rate({service_id(0), server_id(0), NAN})), Contains("per_s = nan"));
  for (const double cv : {-1.0, 1e-4, 101.0, static_cast<double>(NAN)})
    CHECK_THAT(refused(with_rate({service_id(0), server_id(0), 1, cv})), Contains("cv = ") && Contains("0.001 to 100"));
  CHECK_THAT(refused(with_rate({service_id(0), server_id(0), 1e9})), Contains("requests on average"));
  p.rates.push_back(p.rates[0]);
  CHECK_THAT(refused(p), Contains("rate 1") && Contains("again"));
  CHECK_THAT(refused(one_rate(1, 1, seconds(-1))), Contains("duration = -1 s"));
  CHECK_THAT(refused(one_rate(1, 1, seconds(INFINITY))), Contains("duration = inf s"));
  p = one_rate(5, 1, 10_s);
  p.lengths = {{{0, 1}}};
  CHECK_THAT(refused(p), Contains("lengths of service 0") && Contains("neither tokens nor frames"));
  p.lengths = {{}, {{0, 0}}};
  CHECK_THAT(refused(p), Contains("at least one token or frame"));
  p.lengths = {{}, {}, {}, {{0, 1}}};
  CHECK_THAT(refused(p), Contains("there are 3 services"));
}

}  // namespace test_request_process
