// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/serve/service_history.hpp>

#include "support/random_source.hpp"
#include "support/small_edge_cloud.hpp"

namespace test_service_history {

using namespace hetplan;
using namespace hetplan::serve;

TEST_CASE("what was asked for adds up by bin of arrival, and credit by server and service") {
  const auto seed = test::first_seed();
  CAPTURE(seed);
  test::random_source random(seed);
  for (int round = 0; round < 20; ++round) {
    const auto s = test::small_cloud(random.integer(1, 9));
    const auto requests = test::draw_requests(random, s, 400, random.between(50, 1500));
    const auto h = test::play(s, requests);
    std::vector<std::vector<double>> asked(h.offered.size(), std::vector<double>(3)), credit(s.cloud.size(), std::vector<double>(3));
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const auto& r = requests[i];
      const auto bin = static_cast<std::size_t>((r.arrival_s - h.begin.value()) / h.bin.value() * (1 + 1e-9));  // tolerates rounding
      REQUIRE(bin < asked.size());
      asked[bin][r.service.index()] += s.services[r.service.index()].is_stream() ? r.length : 1;
      credit[h.records[i].server.index()][r.service.index()] += h.records[i].credit;
    }
    CHECK(h.offered == asked);
    REQUIRE(h.credit_by_server.size() == s.cloud.size());
    for (std::size_t n = 0; n < s.cloud.size(); ++n) {
      double sum = 0;
      for (std::size_t l = 0; l < 3; ++l) {
        CHECK(h.credit_by_server[n][l] == Approx(credit[n][l]));
        sum += credit[n][l];
      }
      CHECK(sum == Approx(h.servers[n].credit));
    }
  }
}

TEST_CASE("a cloud of more servers than are told of keeps its totals alone") {
  const auto s = test::small_cloud(static_cast<int>(most_detailed) + 1);
  const auto h = test::play(s, request_stream({{0, service_id(0), server_id(0)}, {1, service_id(0), server_id(1000)}}));
  CHECK(h.credit_by_server.empty());
  CHECK(h.waiting.empty());
  CHECK(h.offered.size() > 1);
  CHECK(h.credit() == 2);
}

TEST_CASE("a quantile is one of the times, the exact one or at most a bin above") {
  latency_histogram few;
  for (int i = 0; i < 9; ++i) few.add(0.129);
  few.add(1);
  CHECK(few.quantile(0.5) == 0.129_s);
  CHECK(few.quantile(0.9) == 0.129_s);
  CHECK(few.quantile(0.91) == 1_s);

  const auto seed = test::first_seed();
  CAPTURE(seed);
  test::random_source random(seed);
  latency_histogram all;
  std::vector<double> times;
  for (int i = 0; i < 1000; ++i) {
    times.push_back(std::exp(random.between(-9, 3)));
    all.add(times.back());
  }
  std::ranges::sort(times);
  for (const int percent : {1, 10, 50, 90, 99, 100}) {
    const double exact = times[static_cast<std::size_t>(10 * percent - 1)], told = all.quantile(percent / 100.0).value();
    CHECK(std::ranges::binary_search(times, told));
    CHECK(told >= exact);
    CHECK(told <= exact * (1 + latency_histogram::resolution));
  }
}

TEST_CASE("how many took at most so long is known to a bin, and whole beyond the longest") {
  const auto seed = test::first_seed();
  CAPTURE(seed);
  test::random_source random(seed);
  latency_histogram all;
  CHECK(all.count_within(1_s) == 0);
  std::vector<double> times;
  for (int i = 0; i < 1000; ++i) {
    times.push_back(std::exp(random.between(-9, 3)));
    all.add(times.back());
  }
  std::ranges::sort(times);
  double before = 0;
  for (double t = 1e-4; t < 40; t *= 1.07) {
    const double within = all.count_within(seconds(t));
    // The error is at most the contents of one bin, 1/64 of an octave.
    CHECK(within >= static_cast<double>(std::ranges::upper_bound(times, t / 1.016) - times.begin()));
    CHECK(within <= static_cast<double>(std::ranges::upper_bound(times, t * 1.016) - times.begin()));
    CHECK(within >= before);
    before = within;
  }
  CHECK(all.count_within(seconds(times.back())) == 1000);
  CHECK(all.count_within(0_s) == 0);
}

}  // namespace test_service_history
