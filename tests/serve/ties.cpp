// SPDX-License-Identifier: BSL-1.0
// Instants that are equal up to rounding; the oracle of tests/oracle/serving.py plays many more in exact fractions.

#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/serve/request_handlers.hpp>
#include <hetplan/serve/serve_requests.hpp>
#include <hetplan/serve/service_history.hpp>
#include <hetplan/serve/service_time.hpp>

namespace test_serve_ties {

using namespace hetplan;
using namespace hetplan::serve;

namespace {

/// Servers with some GPUs, and a service whose pass takes 0.1 s.
struct tenths {
  edge_cloud cloud{.name = "c", .ring = {.period = 1_s, .group = 4}};
  std::vector<service> services{{.name = "m", .latency = 300_ms, .variants = {{.name = "v", .gpu_kind = "G", .memory = 1_GB}}}};
  service_time_table times{{{{.pass = {{1, 2}, {0.1, 0.2}}}}}};
  deployment placed;

  explicit tenths(int servers, int gpus = 1) {
    for (int s = 0; s < servers; ++s) {
      cloud.servers.push_back({.name = "s" + std::to_string(s),
                               .gpus = std::vector<gpu>(static_cast<std::size_t>(gpus), gpu{"G", 1_GB}),
                               .uplink = 1_GB_per_s,
                               .downlink = 1_GB_per_s});
      for (int g = 0; g < gpus; ++g) placed.instances.push_back({.what = service_id(0), .gpus = {{server_id(s), g}}, .batch = 1});
    }
  }
  template <class Handler>
  [[nodiscard]] service_history play(std::vector<request> requests, Handler handler) const {
    return serve_requests(cloud, services, times, request_stream(std::move(requests)), placed, handler,
                          {.detail = history_detail::records});
  }
  [[nodiscard]] offload_by_idle_goodput usual() const { return {&services, 1}; }
};

request at(double arrival_s, int server = 0) { return {arrival_s, service_id(0), server_id(server), 0, 1}; }

}  // namespace

TEST_CASE("so many passes as an SLO takes are served within it, whenever they begin") {
  for (int n = 1; n <= 30; ++n) {
    for (const double begin : {0.0, 0.1, 0.7, 3600.3, 86400.1}) {
      CAPTURE(n, begin);
      tenths x(1);
      x.services[0].latency = seconds(n / 10.0);
      std::vector<request> all;
      for (int i = 0; i <= n; ++i) all.push_back(at(begin));
      const service_history h = x.play(all, x.usual());
      CHECK(h.count(request_outcome::served) == static_cast<std::uint64_t>(n));
      CHECK(h.count(request_outcome::no_resources) == 1);
      CHECK(h.services[0].latency.count_within(x.services[0].latency) == n);
    }
  }
}

TEST_CASE("a clock that began in 1970 changes nothing") {
  for (const double begin : {0.0, 3600.0, 1.7e9}) {
    CAPTURE(begin);
    tenths x(2);
    x.services[0].latency = 3_s;
    x.times = service_time_table{{{{.pass = {{1}, {0.15}}}}}};
    x.placed.instances.pop_back();
    std::vector<request> all;
    for (int i = 0; i < 20; ++i) all.push_back(at(begin));
    for (int i = 0; i < 9; ++i) all.push_back(at(begin + 3.1 + 0.1 * i, 1));
    const service_history h = x.play(all, x.usual());
    CHECK(h.count(request_outcome::served) == 29);
    CHECK(h.begin.value() == begin);
    CHECK(h.duration.value() == Approx(3.1 + 9 * 0.15));
    CHECK(h.services[0].latency.quantile(1) == h.services[0].latency.largest());
    CHECK(h.services[0].latency.largest().value() == Approx(3));
  }
}

TEST_CASE("who comes when a pass ends finds the instance idle, and is handled when its SLO is over as too late") {
  tenths x(1);
  x.services[0].latency = 1_s;
  std::vector<request> all;
  for (int i = 0; i < 9; ++i) all.push_back(at(i / 10.0));
  const service_history h = x.play(all, x.usual());
  for (std::size_t i = 0; i < all.size(); ++i) CHECK(h.records[i].end_s - all[i].arrival_s == Approx(0.1).epsilon(1e-12));
}

TEST_CASE("of equal expected ends the first of the deployment, and the first server, is taken") {
  tenths x(1, 2);
  x.services[0].variants.push_back({.name = "w", .gpu_kind = "G", .memory = 1_GB});
  x.times = service_time_table{{{{.pass = {{1}, {0.1}}}, {.pass = {{1}, {0.3}}}}}};
  x.placed.instances[0].variant = 0;  // 0.1 s each
  x.placed.instances[1].variant = 1;  // 0.3 s
  x.services[0].latency = 10_s;
  // Expected ends on GPU 0 and 1 are 0.1 and 0.3, then 0.2 and 0.3, then 0.1 + 0.1 + 0.1 and 0.3: GPU 0 is taken each time.
  const service_history h = x.play({at(0), at(0), at(0), at(0)}, x.usual());
  CHECK(h.records[0].end_s == Approx(0.1));
  CHECK(h.records[1].end_s == Approx(0.2));
  CHECK(h.records[2].end_s == Approx(0.3));
  CHECK(h.records[3].end_s == Approx(0.3));  // 0.4 on GPU 0, 0.3 on GPU 1
  const double third = 0.1 + 0.1 + 0.1;
  CHECK(h.records[2].end_s == third);  // the sum of GPU 0
  CHECK(h.records[3].end_s == 0.3);

  tenths two(2);
  two.services[0].latency = 300_ms;
  const service_history central = two.play({at(0), at(0), at(0), at(0), at(0), at(0), at(0)}, central_handler(seconds(0), 4));
  CHECK(central.count(request_outcome::served) == 6);
  CHECK(central.count(request_outcome::no_resources) == 1);
}

TEST_CASE("times at the edge of a bin are within it, but for rounding") {
  for (const double slo : {0.25, 0.5, 1.0, 1.5, 2.0, 0.3}) {
    CAPTURE(slo);
    latency_histogram h;
    for (const double x : {1.0, 1 - 1e-15, 1 + 4e-16}) h.add(slo * x);
    h.add(slo * 2);
    CHECK(h.count_within(seconds(slo)) >= 3 * (slo == 0.3 ? 0.5 : 1));
    CHECK(h.count_within(seconds(slo)) <= 3);
    CHECK(h.count_within(seconds(2 * slo)) == 4);
    CHECK(h.quantile(0.5).value() >= slo * (1 - 1e-12));
    CHECK(h.quantile(0.5).value() <= slo * (1 + 1.0 / 64));
  }
}

}  // namespace test_serve_ties
