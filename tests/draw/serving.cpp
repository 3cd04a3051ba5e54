// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/draw/page.hpp>
#include <hetplan/draw/serving_charts.hpp>
#include <hetplan/draw/serving_report.hpp>

#include "draw/markup.hpp"
#include "support/small_edge_cloud.hpp"

namespace test_serving {

using namespace hetplan;
using namespace hetplan::serve;
using test::count;
using test::has;
using test::markup_fault;
using test::markup_of;
using test::small_cloud;

std::string page_of(const test::serving_setting& s, const service_history& h, const serving_options& run = {}) {
  return draw::serving_report_html(h, s.cloud, s.services, s.placed, run);
}

/// Returns the text between `from` and `to`, after `where`.
std::string between(const std::string& text, const std::string& where, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from, text.find(where));
  REQUIRE(at != std::string::npos);
  return text.substr(at + from.size(), text.find(to, at + from.size()) - at - from.size());
}

TEST_CASE("the page says what the history says") {
  const auto seed = test::first_seed();
  CAPTURE(seed);
  test::random_source random(seed);
  for (int round = 0; round < 12; ++round) {
    const auto s = small_cloud(random.integer(1, 9));
    const auto requests = test::draw_requests(random, s, 800, random.between(200, 4000));
    const server_id who(random.integer(0, static_cast<int>(s.cloud.size()) - 1));
    const serving_options run{.faults = {{0.1_s, who, slow_link{0.2_s, 0.5}}, {0.3_s, who, server_fails{}}}};
    const auto h = test::play(s, requests, run);
    const std::string page = page_of(s, h, run), text = markup_of(page);
    CHECK(markup_fault(text).empty());
    CHECK(page == page_of(s, h, run));

    const auto fact = [&](const std::string& id) { return between(text, "id=\"" + id + "\"", "<b>", "</b>"); };
    CHECK(fact("fact-requests") == "800");
    for (const bool streams : {false, true}) {
      const auto part = h.attained_by(s.services, streams);
      const std::string of = streams ? "-frames" : "";
      REQUIRE(part.asked > 0);
      CHECK(fact("fact-attainment" + of) == draw::detail::percent(part.share()));
      CHECK(fact("fact-goodput" + of) == draw::detail::short_number(part.credit / h.duration.value()) + "/s");
    }
    CHECK(fact("fact-offloads") == draw::fixed(h.mean_offloads(), 3));
    for (std::size_t k = 0; k < request_outcomes; ++k) {
      const auto n = h.count(static_cast<request_outcome>(k));
      if (n > 0) CHECK(has(text, " <b>" + std::to_string(n) + "</b> ("));
    }
    const auto table = between(text, "id=\"services\"", "<tbody>", "</tbody>");
    CHECK(count(table, "<tr>") == s.services.size());

    std::string credit, waiting;
    for (std::size_t l = 0; l < s.services.size(); ++l) {
      credit += l > 0 ? ";" : "";
      for (std::size_t n = 0; n < s.cloud.size(); ++n) credit += (n > 0 ? "," : "") + draw::fixed(h.credit_by_server[n][l]);
    }
    CHECK(between(text, "id=\"credit-matrix-grid\"", "data-values=\"", "\"") == credit);
    std::uint32_t most = 0;
    for (const auto& bin : h.waiting) most = std::max(most, *std::ranges::max_element(bin));
    CHECK(has(text, "id=\"queue-grid\"") == (most > 0));
    if (most > 0) CHECK(has(text, std::to_string(most) + " requests waiting"));

    CHECK(count(text, "class=\"slice\"") == s.placed.instances.size());
    CHECK(count(text, "class=\"flow\"") == h.flows.size());
    REQUIRE(h.flows.size() <= draw::detail::most_flows);
    for (const auto& f : h.flows)
      CHECK(has(text, "<title>" + s.cloud[f.from].name + " → " + s.cloud[f.to].name + "&#10;" +
                          draw::detail::grouped(static_cast<long long>(f.requests)) + " requests</title>"));
    CHECK(has(text, s.cloud[who].name + " fails") == (h.begin + h.duration >= 0.3_s));
    CHECK(has(text, "link of " + s.cloud[who].name + " at 50 %") == (h.begin + h.duration >= 0.1_s));
  }
}

TEST_CASE("a curve of service levels rises, and is what was served at the SLO") {
  const auto seed = test::first_seed();
  CAPTURE(seed);
  test::random_source random(seed);
  const auto s = small_cloud(3);
  const auto h = test::play(s, test::draw_requests(random, s, 3000, 3000));
  for (const std::size_t l : {0U, 2U}) {
    const auto& t = h.services[l];
    const auto share = [&](double times) { return draw::detail::answered_within(s.services[l], t, times); };
    CHECK(share(1) == static_cast<double>(t[request_outcome::served]) / static_cast<double>(t.requests()));
    for (double times = 0.25; times <= 4; times *= 1.01) CHECK(share(times) <= share(times * 1.01));
    CHECK(share(1e6) == Approx(static_cast<double>(t.latency.count()) / static_cast<double>(t.requests())));
  }
}

TEST_CASE("names are written, not obeyed") {
  auto s = small_cloud(3);
  s.cloud.name = "</title><script>alert(1)</script>";
  s.cloud.servers[0].name = "a\"><b>&";
  s.cloud.servers[1].name = "line\nbreak";
  s.services[0].name = "<i>'image'";
  s.services[1].name = "\x01\xff";
  test::random_source random(7);
  const serving_options run{.faults = {{0.01_s, server_id(0), gpu_fails{0}}}};
  const auto h = test::play(s, test::draw_requests(random, s, 2000, 3000), run);
  REQUIRE_FALSE(h.flows.empty());
  const std::string page = page_of(s, h, run), text = markup_of(page);
  CHECK(markup_fault(text).empty());
  CHECK_FALSE(has(page, "<script>alert"));
  CHECK(has(text, "&lt;i&gt;'image'"));
  CHECK(has(text, "GPU 0 of a&quot;&gt;&lt;b&gt;&amp; fails"));
}

TEST_CASE("what is on several GPUs is tied together, what is on a device stands with its server") {
  auto s = small_cloud(2);
  s.services[0].variants.push_back({.name = "two", .gpu_kind = "P100", .tensor_parallel = 2, .compute_share = 0.25, .memory = 1_GB});
  s.cloud.servers[1].devices = {{"phone", {"P100", 8_GB}, 100_Mbit_per_s}};
  s.placed.instances = {{.what = service_id(0), .variant = 1, .gpus = {{server_id(0), 0}, {server_id(0), 1}}},
                        {.what = service_id(0), .variant = 1, .gpus = {{server_id(0), 1}, {server_id(1), 0}}, .batch = 4},
                        {.what = service_id(0), .device = gpu_slot{server_id(1), 0}}};
  service_history h;
  h.duration = 1_s;
  h.services.resize(3);
  h.servers.resize(2);
  const std::string picture = draw::detail::deployment_picture({h, s.cloud, s.services, s.placed, {}});
  CHECK(count(picture, "class=\"slice\"") == 5);
  CHECK(count(picture, "class=\"tie\"") == 2);
  CHECK(has(picture, "on s0 GPU 1, s1 GPU 0"));
  CHECK(has(picture, "phone, registered with s1"));
  CHECK(has(picture, ">d0</text>"));
}

TEST_CASE("a page of a run without requests, of one that was stopped, and of a cloud too large to tell of each server") {
  auto s = small_cloud(2);
  CHECK(markup_fault(markup_of(page_of(s, test::play(s, request_stream())))).empty());

  auto h = test::play(s, request_stream({{0, service_id(0), server_id(0)}}));
  h.result = {outcome::stopped, "an observer <said> so"};
  CHECK(has(page_of(s, h), "an observer &lt;said&gt; so"));

  s = small_cloud(static_cast<int>(most_detailed) + 1);
  const std::string page = page_of(s, test::play(s, request_stream({{0, service_id(0), server_id(0)}, {1, service_id(1), server_id(9)}})));
  CHECK(markup_fault(markup_of(page)).empty());
  CHECK(count(page, "more than 1000 servers") == 2);
  CHECK(has(page, "id=\"gpu-matrix\""));
}

TEST_CASE("servers stand in slots in the order of their rings, and none is missing") {
  for (const int group : {1, 7, 100, 999, 5000}) {
    auto s = small_cloud(1000);
    s.cloud.ring.group = group;
    const draw::detail::server_slots slots(s.cloud, 250);
    std::size_t next = 0;
    for (const auto& slot : slots) {
      CHECK(slot.first == next);
      CHECK(slot.ring == slot.first / static_cast<std::size_t>(group));
      CHECK(slot.ring == (slot.first + slot.count - 1) / static_cast<std::size_t>(group));
      next += slot.count;
    }
    CHECK(next == 1000);
    const auto labels = slots.labels(8);
    for (std::size_t i = 1; i < labels.size(); ++i) CHECK(labels[i].slot >= labels[i - 1].slot + 8);
  }
}

TEST_CASE("colours of a grid: nothing is paper, the most is deepest, a little is seen") {
  using draw::detail::heat_depth;
  CHECK(heat_depth(0, 10) == 0);
  CHECK(heat_depth(10, 10) == draw::detail::heat_depths);
  CHECK(heat_depth(1e-9, 10) == 1);
  CHECK(heat_depth(0, 0) == 0);
  for (double v = 0; v < 10; v += 0.1) CHECK(heat_depth(v, 10) <= heat_depth(v + 0.1, 10));
}

}  // namespace test_serving
