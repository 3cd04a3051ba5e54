// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/core/error.hpp>
#include <hetplan/serve/greedy_placement.hpp>
#include <hetplan/serve/request_handlers.hpp>
#include <hetplan/serve/serve_requests.hpp>
#include <hetplan/serve/service_time.hpp>

#include "support/random_source.hpp"
#include "support/small_edge_cloud.hpp"

namespace test_serve_requests {

using namespace hetplan;
using namespace hetplan::serve;
using test::draw_requests;
using test::play;
using test::small_cloud;

TEST_CASE("a stream of 120 frames that wants 60 a second and gets 30 counts 60") {
  auto s = small_cloud(1);
  s.times.emplace(std::vector<std::vector<variant_times>>{
      {{.pass = {{1}, {0.02}}}}, {{.pass = {{1}, {1.0 / 30}}}}, {{.pass = {{1}, {0.01}}, .step = {{1}, {0.01}}}}});
  s.placed.instances = {{.what = service_id(1), .gpus = {{server_id(0), 0}}}};
  const auto h = play(s, request_stream({{0.5, service_id(1), server_id(0), 0, 120}}));
  CHECK(h.records[0].outcome == request_outcome::in_part);
  CHECK(h.records[0].credit == Approx(60));
  CHECK(h.records[0].end_s == Approx(2.5));
}

TEST_CASE("data-parallel groups add up, and frames of one stream fill a batch") {
  const auto s = small_cloud(1);
  const instance one{.what = service_id(1), .gpus = {{server_id(0), 0}}, .batch = 4, .frames = 1};
  auto four = one;
  four.frames = 4;
  auto two_groups = one;
  two_groups.groups = 2;
  const any_service_time model(*s.times);
  CHECK(instance_times(model, s.services, one).stream_capacity(1) == Approx(40));
  CHECK(instance_times(model, s.services, four).stream_capacity(1) == Approx(100));
  CHECK(instance_times(model, s.services, two_groups).stream_capacity(1) == Approx(80));
}

TEST_CASE("a batch of a pipeline of two begins when the first stage is free") {
  auto s = small_cloud(1);
  s.services[0].variants[0].pipeline_parallel = 2;
  s.placed.instances = {{.what = service_id(0), .gpus = {{server_id(0), 0}, {server_id(0), 1}}}};
  const auto h = play(s, request_stream({{1, service_id(0), server_id(0)}, {1.001, service_id(0), server_id(0)}}));
  CHECK(h.records[0].end_s == Approx(1.02));
  CHECK(h.records[1].end_s == Approx(1.03));
}

TEST_CASE("every request ends once, whatever goes wrong") {
  const auto seed = test::first_seed();
  CAPTURE(seed);
  test::random_source random(seed);
  for (int round = 0; round < 40; ++round) {
    const auto s = small_cloud(random.integer(2, 9));
    const auto requests = draw_requests(random, s, 600, random.between(50, 1500));
    const double last_s = requests[requests.size() - 1].arrival_s;
    serving_options o{.detail = history_detail::records};
    for (int f = random.integer(0, 6); f > 0; --f) {
      const server_id who(random.integer(0, static_cast<int>(s.cloud.size()) - 1));
      const seconds at(random.between(0, last_s));
      const seconds until = at + seconds(random.between(0.01, last_s));
      const decltype(serving_fault::what) kinds[] = {server_fails{}, gpu_fails{random.integer(0, 1)}, ring_cut{until},
                                                     slow_link{until, random.between(0.01, 1)}, wrong_state{until}};
      o.faults.push_back({at, who, kinds[random.integer(0, 4)]});
    }
    std::ranges::sort(o.faults, {}, [](const serving_fault& f) { return f.at; });
    auto other = s.placed;
    std::ranges::reverse(other.instances);
    other.instances.pop_back();
    o.changes = {.at = {seconds(last_s / 2)}, .policy = fixed_placement({s.placed, other})};
    const auto draws = seed + static_cast<std::uint64_t>(round);
    const auto h = play(s, requests, o, draws);
    REQUIRE(h.requests() == requests.size());
    double credit = 0;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const auto& r = h.records[i];
      const double whole = s.services[requests[i].service.index()].is_stream() ? static_cast<double>(requests[i].length) : 1;
      REQUIRE(r.end_s >= requests[i].arrival_s);
      REQUIRE((r.credit >= 0 && r.credit <= whole));
      REQUIRE((r.outcome != request_outcome::served || r.credit == whole));
      credit += r.credit;
    }
    CHECK(h.credit() == Approx(credit));
    double binned = 0;
    for (const auto& bin : h.goodput) binned = std::accumulate(bin.begin(), bin.end(), binned);
    CHECK(binned == Approx(credit));
    std::uint64_t flown = 0;
    std::uint64_t passed_on = 0;
    for (const auto& f : h.flows) flown += f.requests;
    for (const auto& x : h.servers) passed_on += x.passed_on;
    CHECK(flown == passed_on);
    CHECK(play(s, requests, o, draws).records == h.records);
  }
}

TEST_CASE("goodput holds at ten times what the cloud can serve") {
  const auto seed = test::first_seed();
  CAPTURE(seed);
  test::random_source random(seed);
  const auto s = small_cloud(8);
  double most = 0;
  double last = 0;
  for (const double load : {0.5, 1.0, 2.0, 5.0, 10.0}) {
    std::vector<request> all;
    double now_s = 0;
    for (int i = 0; i < static_cast<int>(load * 8000); ++i) {
      now_s -= std::log(1 - random.between(0, 1)) / (load * 8 * 133);
      all.push_back({now_s, service_id(0), server_id(random.integer(0, 7))});
    }
    const auto h = play(s, request_stream(std::move(all)));
    last = h.goodput_per_s();
    most = std::max(most, last);
  }
  CHECK(last >= 0.98 * most);
}

TEST_CASE("nothing is passed on by a handler that serves locally, and nothing is lost") {
  const auto seed = test::first_seed();
  CAPTURE(seed);
  test::random_source random(seed);
  const auto s = small_cloud(4);
  const auto requests = draw_requests(random, s, 2000, 800);
  serve_locally handler;
  const auto h = serve_requests(s.cloud, s.services, *s.times, requests, s.placed, handler);
  CHECK(h.mean_offloads() == 0);
  CHECK(h.requests() == requests.size());
  CHECK(h.flows.empty());
}

TEST_CASE("passed on in turn: the other holders one after the other") {
  auto s = small_cloud(4);
  s.placed.instances.erase(s.placed.instances.begin());  // server 0 does not hold the image service
  std::vector<request> all;
  for (int i = 0; i < 6; ++i) all.push_back({0.2 + i, service_id(0), server_id(0)});
  pass_on_in_turn handler;
  const auto h =
      serve_requests(s.cloud, s.services, *s.times, request_stream(std::move(all)), s.placed, handler, {.detail = history_detail::records});
  for (int i = 0; i < 6; ++i) CHECK(h.records[static_cast<std::size_t>(i)].server == server_id(1 + i % 3));
  CHECK(h.count(request_outcome::served) == 6);
}

TEST_CASE("a central scheduler finds who is idle, but a queue forms before it") {
  auto s = small_cloud(4);
  std::vector<request> all;
  for (int i = 0; i < 400; ++i) all.push_back({0.01 * i, service_id(0), server_id(0)});
  const request_stream requests(std::move(all));
  central_handler at_once(0_s);
  const auto ideal = serve_requests(s.cloud, s.services, *s.times, requests, s.placed, at_once);
  CHECK(ideal.attainment() == 1);
  central_handler slow(20_ms);  // rounds of 320 ms, SLO of 200 ms
  const auto h = serve_requests(s.cloud, s.services, *s.times, requests, s.placed, slow);
  CHECK(h.attainment() < 0.5);
  CHECK(h.count(request_outcome::timed_out) > 100);
}

TEST_CASE("who is on the way to a device is counted there") {
  auto s = small_cloud(1);
  s.cloud.servers[0].gpus.clear();
  for (const char* name : {"one", "other"})
    s.cloud.servers[0].devices.push_back({.name = name, .unit = {"P100", 16_GB}, .bandwidth = 1_Gbit_per_s, .latency = 50_ms});
  s.services[0].latency = 400_ms;
  s.times.emplace(std::vector<std::vector<variant_times>>{
      {{.pass = {{1}, {0.1}}}}, {{.pass = {{1}, {1.0 / 30}}}}, {{.pass = {{1}, {0.01}}, .step = {{1}, {0.01}}}}});
  s.placed.instances = {{.what = service_id(0), .device = gpu_slot{server_id(0), 0}},
                        {.what = service_id(0), .device = gpu_slot{server_id(0), 1}}};
  const request four_at_once{1, service_id(0), server_id(0)};
  const auto h = play(s, request_stream({four_at_once, four_at_once, four_at_once, four_at_once}));
  CHECK(h.count(request_outcome::served) == 4);
}

TEST_CASE("a long time without requests costs nothing") {
  const auto s = small_cloud(3);
  const auto h = play(s, request_stream({{0, service_id(0), server_id(0)}, {1e9, service_id(0), server_id(0)}}));
  CHECK(h.count(request_outcome::served) == 2);
  CHECK(h.publications < 1000);
}

TEST_CASE("an observer stops a run, and the history says so") {
  const auto seed = test::first_seed();
  CAPTURE(seed);
  test::random_source random(seed);
  const auto s = small_cloud(4);
  const auto requests = draw_requests(random, s, 70000, 1000);
  serve_locally handler;
  std::uint64_t seen = 0;
  const auto h = serve_requests(s.cloud, s.services, *s.times, requests, s.placed, handler, {}, [&](const serving_progress& p) {
    seen = p.handled;
    return control::stop;
  });
  CHECK(h.result.result == outcome::stopped);
  CHECK(seen >= 65536);
  CHECK(h.requests() < requests.size());
}

namespace {
struct wrong_handler {
  decision answer;
  [[nodiscard]] decision handle(const pending_request&, const server_view&) const { return answer; }
};
}  // namespace

TEST_CASE("a decision that is none is refused") {
  const auto s = small_cloud(2);
  const request_stream one({{1, service_id(0), server_id(0)}});
  for (const auto& d :
       {decision::serve(instance_id(3)), decision::serve(instance_id(1)), decision::serve(instance_id(99)), decision::pass_on(server_id(0)),
        decision::pass_on(server_id(7)), decision::ask_again(1_s), decision::turn_down(request_outcome::served)}) {
    wrong_handler handler{d};
    CHECK_THROWS_AS(serve_requests(s.cloud, s.services, *s.times, one, s.placed, handler), invalid_model);
  }
}

TEST_CASE("bad input is refused before any work, with who and what") {
  const auto s = small_cloud(2);
  using Catch::Matchers::Contains;
  CHECK_THROWS_WITH(request_stream({{2, service_id(0), server_id(0)}, {1, service_id(0), server_id(0)}}),
                    Contains("request 1") && Contains("ascending"));
  CHECK_THROWS_WITH(request_stream({{-1, service_id(0), server_id(0)}}), Contains(">= 0"));
  CHECK_THROWS_WITH(play(s, request_stream({{1, service_id(9), server_id(0)}})), Contains("service 9"));
  CHECK_THROWS_WITH(play(s, request_stream({{1, service_id(0), server_id(9)}})), Contains("server 9"));
  auto full = s;
  full.placed.instances.push_back(full.placed.instances[0]);
  full.placed.instances.push_back(full.placed.instances[0]);
  CHECK_THROWS_WITH(play(full, request_stream({{1, service_id(0), server_id(0)}})), Contains("instance") && Contains("left"));
  auto large = s;
  large.placed.instances[0].batch = 9;
  CHECK_THROWS_WITH(play(large, request_stream({{1, service_id(0), server_id(0)}})), Contains("batch = 9"));
}

TEST_CASE("options that cannot be carried out are refused, and a run ends in time") {
  const auto s = small_cloud(2);
  const request_stream requests({{1, service_id(0), server_id(0)}, {100, service_id(0), server_id(0)}});
  const any_placement_policy policy = fixed_placement({s.placed});
  CHECK_THROWS_AS(play(s, requests, {.changes = {.at = {5_s}}}), invalid_input);
  CHECK_THROWS_AS(play(s, requests, {.changes = {.at = {5_s, 5_s}, .policy = policy}}), invalid_input);
  CHECK_THROWS_AS(play(s, requests, {.changes = {.at = {5_s}, .cycle = 1_s, .policy = policy}}), invalid_input);
  CHECK_THROWS_AS(play(s, requests, {.changes = {.cycle = seconds(-1), .policy = policy}}), invalid_input);
  CHECK_THROWS_AS(play(s, requests, {.bin = 1_ms}), invalid_input);
  CHECK_THROWS_AS(play(s, requests, {.changes = {.cycle = 1_us, .policy = policy}}), invalid_input);
  const auto h = play(s, requests, {.changes = {.cycle = 1_ms, .policy = policy}, .most_periods = 1000});
  CHECK(h.result.result == outcome::stopped);
  CHECK_THAT(h.result.reason, Catch::Matchers::Contains("1000 publications and changes"));
  CHECK(h.publications + h.changes == 1000);
}

TEST_CASE("what is not in the first deployment loads its weights, also where that one was empty") {
  auto s = small_cloud(1);
  s.services[0].weights = 1_GB;
  s.cloud.servers[0].load_bandwidth = 1_GB_per_s;
  const any_placement_policy policy = fixed_placement({deployment(), s.placed});
  s.placed = {};
  const auto h = play(s, request_stream({{5.5, service_id(0), server_id(0)}, {6.5, service_id(0), server_id(0)}}),
                      {.changes = {.at = {5_s}, .policy = policy}, .detail = history_detail::records});
  CHECK(h.records[0].outcome == request_outcome::no_resources);
  CHECK(h.records[1].outcome == request_outcome::served);
}

TEST_CASE("a stream on an instance that was taken out two changes ago fails with its server") {
  const auto s = small_cloud(1);
  const any_placement_policy policy = fixed_placement({s.placed, deployment(), deployment()});
  const auto h = play(s, request_stream({{0, service_id(1), server_id(0), 0, 6000}}),
                      {.faults = {{3_s, server_id(0), server_fails{}}},
                       .changes = {.at = {1_s, 2_s}, .policy = policy},
                       .detail = history_detail::records});
  CHECK(h.records[0].outcome == request_outcome::failed);
  CHECK(h.records[0].end_s == 3);
}

TEST_CASE("ring distances: the shorter way, around who is out, not over cuts") {
  auto s = small_cloud(7);
  s.cloud.ring.group = 7;
  ring_sync rings(s.cloud);
  const auto d = [&](int a, int b, std::int64_t k) { return rings.distance(server_id(a), server_id(b), k); };
  CHECK(d(0, 5, 0) == 2);
  CHECK(rings.known_period(server_id(0), server_id(5), 10) == 8);
  rings.set_cut(server_id(6), true, 4);  // between 6 and 0
  CHECK(d(0, 5, 3) == 2);
  CHECK(d(0, 5, 4) == 5);
  CHECK(rings.known_period(server_id(0), server_id(5), 4) == 1);  // server 0 keeps its earlier knowledge
  CHECK(rings.known_period(server_id(0), server_id(5), 9) == 4);
  rings.set_cut(server_id(2), true, 10);
  CHECK(!d(0, 5, 10));
  CHECK(rings.known_period(server_id(0), server_id(5), 10) == 4);
  CHECK(!rings.known_period(server_id(0), server_id(5), 12));  // too old
  rings.set_cut(server_id(6), false, 20);
  rings.set_out(server_id(6), true, 20);
  CHECK(d(0, 5, 20) == 1);
}

}  // namespace test_serve_requests
