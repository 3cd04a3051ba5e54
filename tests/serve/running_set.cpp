// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/core/error.hpp>
#include <hetplan/serve/instance_state.hpp>
#include <hetplan/serve/service_time.hpp>

#include "support/random_source.hpp"

namespace test_running_set {

using namespace hetplan;
using namespace hetplan::serve;

namespace {

/// One instance of a service with continuous batches of up to 6, with everything that depends on tokens by chance.
struct setting {
  std::vector<service> services;
  service_time_table table;
  request_stream requests;
};

setting random_setting(std::uint64_t seed) {
  test::random_source random(seed);
  service s{.name = "chat", .latency = 10000_s, .generates = true, .tokens = {20, 8}, .batches = batching::continuous};
  if (random.integer(0, 2) > 0) s.prefill_chunk = random.integer(1, 40);
  service_variant v{.name = "one", .gpu_kind = "gpu", .memory = 1_GB};
  if (random.integer(0, 3) > 0) v.cache_tokens = random.integer(60, 200);
  s.variants = {v};
  const double step_s = random.between(0.01, 0.1);
  variant_times t{.pass = {{1, 6}, {step_s, 2 * step_s}}, .per_token_s = step_s / 20, .step = {{1, 6}, {step_s, 1.5 * step_s}}};
  if (random.integer(0, 1) == 1) t.per_cached_token_s = step_s / 50;
  std::vector<request> all;
  double now_s = 0;
  for (int i = 0; i < 200; ++i) {
    now_s += random.integer(0, 3) == 0 ? 0 : random.between(0, 2 * step_s * 8);  // many at once
    all.push_back({now_s, service_id(0), server_id(0), static_cast<std::uint32_t>(random.integer(0, 60)),
                   static_cast<std::uint32_t>(random.integer(1, 40))});
  }
  return {{s}, service_time_table({{t}}), request_stream(std::move(all))};
}

/// Plays all requests, looking at the instance at least so often; see(set) is called whenever it has been advanced.
template <class See>
ended_requests play(const setting& s, double look_s, const See& see) {
  const instance_times times(s.table, s.services, {.what = service_id(0), .gpus = {{server_id(0), 0}}, .batch = 6});
  running_set set(times, 0);
  ended_requests out;
  const auto advance = [&](double to_s) {
    set.advance(to_s, s.requests, out);
    see(set, times);
  };
  double now_s = 0;
  for (std::size_t i = 0; i < s.requests.size(); ++i) {
    const double at_s = s.requests.arrival_s(i);
    while (now_s + look_s < at_s) advance(now_s += look_s);
    advance(now_s = at_s);
    set.join(static_cast<request_number>(i), now_s, s.requests, out);
    see(set, times);
  }
  while (set.busy()) advance(now_s += look_s);
  return out;
}

}  // namespace

TEST_CASE("the requests of a running set never exceed its cache, and each ends once") {
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 300; ++seed) {
    INFO("seed " << seed);
    const setting s = random_setting(seed);
    double most = 0;
    const auto out = play(s, 0.05, [&](const running_set& set, const instance_times& times) {
      REQUIRE(set.reserved_tokens() <= times.cache_tokens());
      most = std::max(most, set.reserved_tokens());
    });
    std::vector<int> ends(s.requests.size());
    const double cache = static_cast<double>(s.services[0].variants[0].cache_tokens);
    for (const auto& e : out) {
      ++ends[e.number];
      const auto& r = s.requests[e.number];
      const bool fits = cache == 0 || static_cast<double>(r.tokens_in) + r.length <= cache;
      CHECK((e.what == ended_request::how::done) == fits);
      if (!fits) continue;
      CHECK(e.first_s > s.requests.arrival_s(e.number));
      CHECK(e.first_s <= e.at_s);
      CHECK((e.between_s < 0) == (r.length == 1));
      if (r.length > 1) CHECK(e.first_s + e.between_s * (r.length - 1) == Approx(e.at_s));
    }
    CHECK(std::ranges::all_of(ends, [](int n) { return n == 1; }));
    if (cache > 0) CHECK(most > cache / 2);
  }
}

TEST_CASE("a running set does the same however often it is looked at") {
  const auto nothing = [](const running_set&, const instance_times&) {};
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 100; ++seed) {
    INFO("seed " << seed);
    const setting s = random_setting(seed);
    auto often = play(s, 0.003, nothing), seldom = play(s, 1e6, nothing);
    std::ranges::sort(often, {}, &ended_request::number);
    std::ranges::sort(seldom, {}, &ended_request::number);
    REQUIRE(often.size() == seldom.size());
    for (std::size_t i = 0; i < often.size(); ++i) {
      CHECK(often[i].number == seldom[i].number);
      CHECK(often[i].at_s == Approx(seldom[i].at_s).epsilon(1e-12));
      CHECK(often[i].first_s == Approx(seldom[i].first_s).epsilon(1e-12));
    }
  }
}

TEST_CASE("four thousand million tokens, one at a time, take no longer to play") {
  constexpr std::uint32_t many = 4'000'000'000;
  setting s = random_setting(1);
  s.services[0].prefill_chunk = 1;
  s.services[0].variants[0].cache_tokens = 0;
  const variant_times t{.pass = {{1, 6}, {1, 1}}, .per_token_s = 1, .step = {{1, 6}, {1, 1}}, .per_cached_token_s = 1e-3};
  s.table = service_time_table({{t}});
  s.requests = request_stream({{0, service_id(0), server_id(0), many, many}, {0, service_id(0), server_id(0), many, 1}});
  const auto out = play(s, 1e30, [](const running_set&, const instance_times&) {});
  REQUIRE(out.size() == 2);
  // The first prompt takes 2 s a token. Beside the steps of its tokens the second is read: 2 s each and 1 ms for each cached token.
  CHECK(out[0].first_s == Approx(2.0 * many).epsilon(1e-9));
  const double n = many - 1.0;
  CHECK(out[1].at_s == Approx(2.0 * many + 2 * n + 1e-3 * (n * (many + 1.0) + n * (n - 1) / 2)).epsilon(1e-6));
}

TEST_CASE("a service time that does not tell of caches has steps of the same length") {
  struct plain {
    seconds pass(const service_run&, const batch_load& b) const { return 10_ms * b.requests; }
    seconds step(const service_run&, int) const { return 1_ms; }
    int largest_batch(const service_run&) const { return 4; }
  };
  struct growing : plain {
    seconds per_cached_token(const service_run&) const { return seconds(each_s); }
    double each_s = 1e-6;
  };
  const service s{.name = "chat", .latency = 1_s, .generates = true, .variants = {{.name = "v", .gpu_kind = "g", .memory = 1_GB}}};
  const service_run r{s, s.variants[0], service_id(0), 0};
  CHECK(any_service_time(plain{}).per_cached_token(r) == 0_s);
  CHECK(any_service_time(growing{}).per_cached_token(r) == seconds(1e-6));
  growing wrong;
  wrong.each_s = -1;
  const instance i{.what = service_id(0), .gpus = {{server_id(0), 0}}};
  CHECK_THROWS_WITH(instance_times(wrong, {s}, i),
                    "service_time: per_cached_token(service \"chat\", variant \"v\") = -1 s; expected finite >= 0");
  CHECK_THROWS_WITH(service_time_table({{{.pass = {{1}, {1}}, .step = {{1}, {1}}, .per_cached_token_s = -1}}}),
                    Catch::Contains("per_cached_token_s = -1; expected a finite time >= 0"));
}

TEST_CASE("limits, chunks and caches that no service has are refused") {
  const service text{.name = "t",
                     .latency = 1_s,
                     .generates = true,
                     .batches = batching::continuous,
                     .variants = {{.name = "v", .gpu_kind = "g", .memory = 1_GB, .cache_tokens = 100}}};
  CHECK_NOTHROW(validate(std::vector{text}));
  const auto message = [&](const auto& change) {
    auto s = text;
    change(s);
    try {
      validate(std::vector{s});
    } catch (const invalid_input& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(message([](service& s) { s.batches = batching::fixed; }) == "service \"t\": cache_tokens is for continuous batches");
  CHECK(message([](service& s) { s.variants[0].cache_tokens = -1; }) == "service \"t\": cache_tokens = -1; expected tokens >= 0");
  CHECK(message([](service& s) { s.prefill_chunk = -5; }) == "service \"t\": prefill_chunk = -5; expected tokens >= 0");
  CHECK(message([](service& s) { s.ttft = seconds(-1); }) == "service \"t\": ttft [s] = -1; expected a finite number >= 0");
  CHECK(message([](service& s) { s.limits_answer = false; }) ==
        "service \"t\": without a limit on the answer expected both ttft and time_between_tokens");
  CHECK(message([](service& s) {
          s.generates = false;
          s.batches = batching::fixed;
          s.variants[0].cache_tokens = 0;
          s.ttft = 1_s;
        }) == "service \"t\": ttft and time_between_tokens are for services that generate tokens within a latency");
}

}  // namespace test_running_set
