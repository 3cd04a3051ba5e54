// SPDX-License-Identifier: BSL-1.0
// What is told of an adaptation: the picture and the page.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/adapt/timeline.hpp>
#include <hetplan/draw/adaptation_chart.hpp>
#include <hetplan/draw/adaptation_report.hpp>
#include <hetplan/draw/time_axis.hpp>

#include "draw/markup.hpp"
#include "support/compared_histories.hpp"
#include "support/split_text.hpp"

namespace test_adaptation {

using namespace hetplan;
using test::comparison;
using test::count;
using test::has;
using test::markup_fault;
using test::markup_of;
using test::near;
using test::one_stage;
using test::random_comparison;
using test::runs;
using test::two_layers;
using test::two_stages;

TEST_CASE("what the picture shows of the conditions is what applying the events gives") {
  const std::uint64_t seed = test::first_seed();
  test::random_source random(seed);
  test::for_random_instances(60, [&](const test::instance& i) {
    INFO("seed " << seed);
    const cluster c = i.cluster();
    const adapt::timeline t = test::random_timeline(random, c);
    const qoe_target first{.latency = random.chance(0.5) ? std::optional(seconds(3)) : std::nullopt};
    const draw::detail::adaptation_view view({}, t, c, first);
    const auto at = [](const std::vector<draw::detail::level>& levels, double time) {
      for (const auto& l : levels) {
        if (l.from_s <= time && time < l.to_s) return l.value;
      }
      return 0.0;
    };
    for (const auto* rows : {&view.resources, &view.devices}) {
      for (const auto& r : *rows) {
        CHECK(std::all_of(r.levels.begin(), r.levels.end(), [](const auto& l) { return l.from_s < l.to_s; }));
      }
    }
    for (int k = 0; k < 30; ++k) {
      const double time = random.unit() * t.duration.value();
      adapt::conditions now = adapt::nominal(c);
      double wanted = first.latency ? first.latency->value() : std::numeric_limits<double>::infinity();
      for (const adapt::event& e : t.events) {
        if (e.at.value() > time) break;
        apply(now, e);
        if (const auto* q = std::get_if<adapt::qoe_becomes>(&e.what)) wanted = q->latency ? q->latency->value() : wanted;
      }
      CHECK(view.wanted_at(time) == wanted);
      for (const auto& r : view.resources) CHECK(at(r.levels, time) == now.capacity[r.index].value());
      for (const auto& d : view.devices) {
        CHECK(at(d.levels, time) == now.speed[d.index]);
        CHECK(at(d.away, time) == (now.present[d.index] != 0 ? 0 : 1));
      }
      if (view.hidden > 0) continue;
      // What has no row never changed.
      const adapt::conditions described = adapt::nominal(c);
      for (std::size_t r = 0; r < now.capacity.size(); ++r) {
        const bool shown = std::any_of(view.resources.begin(), view.resources.end(), [&](const auto& x) { return x.index == r; });
        if (!shown) CHECK(now.capacity[r] == described.capacity[r]);
      }
      for (std::size_t d = 0; d < c.size(); ++d) {
        const bool shown = std::any_of(view.devices.begin(), view.devices.end(), [&](const auto& x) { return x.index == d; });
        if (!shown) CHECK((now.speed[d] == 1 && now.present[d] != 0));
      }
    }
  });
}

TEST_CASE("plans have the same name under every policy: a letter for who computes, a number for the network") {
  plan ordered = two_stages();
  ordered.sharing_policy = sharing::priority;
  plan from_another = two_stages();
  from_another.planner = "another";
  std::vector<io::policy_history> rows(2);
  rows[0].history.plans = {two_stages(), one_stage(), ordered};
  rows[1].history.plans = {one_stage(), from_another, ordered};
  rows[1].history.predictions[1] = evaluation{};
  const cluster c = test::wireless(2);
  const draw::detail::adaptation_view view(rows, adapt::timeline{9_s}, c, {});
  const auto names = [&](std::size_t p) { return std::vector<std::string>{view.name(p, 0), view.name(p, 1), view.name(p, 2)}; };
  CHECK(names(0) == std::vector<std::string>{"A", "B", "A2"});
  CHECK(names(1) == std::vector<std::string>{"B", "A", "A2"});
  CHECK(view.name(0, 3) == "none");
  CHECK(draw::detail::plan_name{25, 0}.text() == "Z");
  CHECK(draw::detail::plan_name{26, 1}.text() == "AA2");
  CHECK(draw::detail::plan_name{26 + 26 * 26, 0}.text() == "AAA");
}

TEST_CASE("times are written as on a clock") {
  using namespace draw::detail;
  CHECK(clock_text(0) == "0 s");
  CHECK(clock_text(0.25) == "250 ms");
  CHECK(clock_text(42.55) == "42.5 s");
  CHECK(clock_text(125) == "2 min 5 s");
  CHECK(clock_text(7200) == "2 h");
  CHECK(clock_text(7384) == "2 h 3 min");
  const auto rule = [](double span) { return tick_rule({0, 880, span}, time_labels::clock); };  // 11 ticks at most
  const auto clock_label = [&](double s) { return rule(86400).label(s, 86400); };
  CHECK(clock_label(0) == "0");
  CHECK(clock_label(90) == "1 min 30 s");
  CHECK(clock_label(5400) == "1 h 30 min");
  CHECK(clock_label(86400) == "24 h");
  CHECK(clock_label(0.25) == "250 ms");
  CHECK(clock_label(0.1 * 1200) == "2 min");
  CHECK(tick_rule({0, 880, 0.2}, time_labels::seconds).label(0.02, 0.2) == "20 ms");
  CHECK(grouped(0) == "0");
  CHECK(grouped(-999) == "-999");
  CHECK(grouped(86400) ==
        "86\xE2\x80\xAF"
        "400");
  CHECK(grouped(-1234567) ==
        "-1\xE2\x80\xAF"
        "234\xE2\x80\xAF"
        "567");
  for (double span = 1e-3; span < 1e9; span *= 1.3) {
    INFO(span);
    CHECK(span / rule(span).step_s(span) <= 11 * (1 + 1e-9));
    CHECK(span / rule(span).step_s(span) > 2);
    CHECK(span / largest_zoom / rule(span).step_s(span / largest_zoom) <= 11 * (1 + 1e-9));
    CHECK(span / largest_zoom / rule(span).step_s(span / largest_zoom) > 2);
  }
  CHECK(rule(86400).step_s(86400) == 10800);
  CHECK(rule(600).step_s(600) == 60);
}

TEST_CASE("a band knows least, most and mean of every part of the time") {
  const std::uint64_t seed = test::first_seed();
  INFO("seed " << seed);
  test::random_source random(seed);
  for (int k = 0; k < 50; ++k) {
    draw::detail::time_axis axis;
    axis.width = 100;
    axis.latency_s = 10;
    constexpr std::size_t bins = 16;
    draw::detail::value_band band(axis, bins);
    std::vector<draw::detail::level> all;
    for (double at = 0; at < 10;) {
      const double to = random.chance(0.1) ? 10 : std::min(10.0, at + random.spread(0.001, 10));
      all.push_back({at, to, random.unit()});
      if (random.chance(0.8)) band.add(at, to, all.back().value);
      else all.pop_back();
      at = to;
    }
    const auto means = band.means([](std::size_t) { return true; });
    std::size_t m = 0;
    for (std::size_t b = 0; b < bins; ++b) {
      const double from = 10.0 * static_cast<double>(b) / bins, to = 10.0 * static_cast<double>(b + 1) / bins;
      double sum = 0, length = 0;
      for (const auto& l : all) {
        const double part = std::min(to, l.to_s) - std::max(from, l.from_s);
        if (part > 0) sum += part * l.value, length += part;
      }
      CHECK(band.weight(b) == Approx(length).margin(1e-12));
      if (length < 1e-9) {
        if (m < means.size() && means[m].from_s == from) ++m;
        continue;
      }
      REQUIRE(m < means.size());
      CHECK(means[m].from_s == near(from));
      CHECK(means[m].value == Approx(sum / length));
      ++m;
    }
  }
  draw::detail::time_axis axis;
  axis.width = 10;
  axis.latency_s = 10;
  draw::detail::value_band band(axis, 10);
  band.add(2, 3.5, 1);
  band.add(3.5, 5, 3);
  // Part 2 has one value, part 3 both, part 4 the other: a box over part 3 between lines without height; y is down from 40.
  CHECK(band.range({0, 40}, 4) == "M2 30h1v-20h2h-1v20Z");
  CHECK(draw::detail::step_line({{2, 3.5, 1}, {3.5, 5, 3}, {7, 8, 2}}, axis, {0, 40}, 4) == "M2 30H3.5V10H5M7 20H8");
  CHECK(draw::detail::step_area({{2, 3.5, 1}, {3.5, 5, 3}, {7, 8, 2}}, axis, {0, 40}, 4) == "M2 40V30H3.5V10H5V40ZM7 40V20H8V40Z");
}

TEST_CASE("picture and page of anything are well formed, self-contained, and name everybody", "[long]") {
  const std::uint64_t seed = test::first_seed();
  test::random_source random(seed);
  test::for_random_instances(25, [&](const test::instance& i) {
    INFO("seed " << seed);
    comparison x = random_comparison(random, i, random.integer(1, 5), random.chance(0.3) ? 2000 : 60);
    job j;
    if (random.chance(0.5)) j.qoe.latency = 2_s;
    if (random.chance(0.5)) j.qoe.deadline = seconds(x.timeline.duration.value() / 2);
    const std::string svg = draw::adaptation_svg(x.rows, x.timeline, x.model, x.cluster, j.qoe);
    const std::string page = draw::adaptation_report_html(x.rows, x.timeline, x.model, x.cluster, j);
    CHECK(markup_fault(svg) == "");
    CHECK(markup_fault(markup_of(page)) == "");
    CHECK(svg.size() < 300'000);
    CHECK(count(svg, "http") == 1);  // the name space
    CHECK_FALSE(has(page, "http:"));
    CHECK_FALSE(has(page, "https:"));
    CHECK_FALSE(has(page, " src="));
    CHECK_FALSE(has(page, "@import"));
    for (const std::string& text : {svg, page}) {
      CHECK_FALSE(has(text, "nan"));
      CHECK_FALSE(has(text, "inf\""));
      CHECK_FALSE(has(text, "<policy"));
      CHECK_FALSE(has(text, "<reason"));
      for (const io::policy_history& row : x.rows) CHECK(has(text, draw::xml_text(row.policy)));
    }
    for (const char* id :
         {"summary", "policies", "policies-table", "timeline", "adaptation", "adoptions", "plans", "plans-table", "zoom-in", "tip"}) {
      INFO(id);
      CHECK(count(page, " id=\"" + std::string(id) + "\"") == 1);
    }
    CHECK(draw::adaptation_svg(x.rows, x.timeline, x.model, x.cluster, j.qoe) == svg);
  });
}

TEST_CASE("the picture tells conditions, plans, halts, adoptions and wishes") {
  adapt::history h;
  h.plans = {two_stages(), one_stage()};
  h.stretches = {runs(0, 30, 0, 15, 2),
                 {adapt::activity::stalled, 30, 50, 0, 0, 0, 8, false},
                 {adapt::activity::migrating, 50, 60, 0, 0, 0, 8, false},
                 runs(60, 100, 1, 10, 4, true)};
  h.adoptions = {{30, 50, 60, 0, 1, adapt::rung::replanned, "d1 is gone", 10, 4e6, 2}};
  h.iterations = 25, h.violations = 10, h.stall_s = 30, h.energy_J = 716, h.moved_bytes = 4e6, h.switches = 1, h.reaction_s = 30;
  const adapt::timeline t{100_s,
                          {{10_s, adapt::capacity_becomes{resource_id(0), bytes_per_second(0)}},
                           {20_s, adapt::capacity_becomes{resource_id(0), bytes_per_second(125'000)}},
                           {30_s, adapt::device_leaves{device_id(1)}},
                           {70_s, adapt::transfer_begins{device_id(0), device_id(1), 5_MB}},
                           {80_s, adapt::qoe_becomes{5_s, {}}}}};
  const std::vector<io::policy_history> rows{{"ladder", h}};
  const cluster c = test::wireless(2, 0, 1e6);
  const std::string svg = draw::adaptation_svg(rows, t, two_layers(), c, {.latency = 3_s, .deadline = 90_s});
  for (const std::string& words : test::split_text(
           R"(>by hand on wireless: 1 policy over 100 s<|>shared<|>d1<|>8 Mbit/s<|>away<|>outage 10 s<|>away 70 s<|>d0 → d1, 5 MB<)"
           R"(|>response 5 s<|>deadline<|>ladder<|>1 adoption<|>A<|>B<|>re-planned → B<|>nothing can run<|>wanted 3 s<)"
           R"(|>25 iterations<|>10 late (40 %)<|>halted 30 s<|>716 J<|>20 s<|>100 s<)",
           '|')) {
    INFO(words);
    // 100 s is 1 min 40 s on the axis; titles say it in seconds.
    CHECK((has(svg, words) || words == ">100 s<"));
  }
  CHECK(has(
      svg,
      "ladder: plan A → B (re-planned)&#10;d1 is gone&#10;caused at 30 s, decided 20 s later, in force 30 s later&#10;halted for 10 s&#10;"
      "moved 4 MB with 2 J"));
  CHECK(has(svg, "ladder, 60 s to 100 s&#10;plan B&#10;running&#10;10 iterations, response 4 s, wanted 3 s&#10;10 of them late&#10;400 J"));
  CHECK_FALSE(has(svg, ">d0<"));  // it never changed
}

TEST_CASE("a day of seconds under five policies stays small, and its halts stay visible") {
  const std::uint64_t seed = test::first_seed();
  INFO("seed " << seed);
  test::random_source random(seed);
  adapt::timeline t{86400_s};
  for (int s = 0; s < 86400; s += 2) {
    for (int r = 0; r < 4; ++r)
      t.events.push_back({seconds(s), adapt::capacity_becomes{resource_id(r), bytes_per_second(random.spread(1e5, 6))}});
  }
  const cluster c = test::wired(3, 0, 1e6);
  std::vector<io::policy_history> rows;
  for (int p = 0; p < 5; ++p) {
    adapt::history h;
    h.plans = {two_stages(), one_stage()};
    for (int s = 0; s < 86400; ++s) {
      adapt::stretch x = runs(s, s + 1, random.chance(0.5) ? 1 : 0, 1, random.between(0.1, 3), random.chance(0.4));
      if (p == 0 && s == 40000) x = {adapt::activity::stalled, 40000, 40001, 0, 0, 0, 0, false};
      if (p == 4 && random.chance(0.02)) {
        h.adoptions.push_back(
            {s - 1.0, s + 0.0, s + 0.5, 0, 1, adapt::rung::replanned, "a reason that takes a line of its own in the list", 0.5, 1e6, 1});
      }
      h.stretches.push_back(x);
    }
    rows.push_back({"policy " + std::to_string(p), std::move(h)});
  }
  const std::string svg = draw::adaptation_svg(rows, t, two_layers(), c, {.latency = 1_s});
  CHECK(markup_fault(svg) == "");
  CHECK(svg.size() < 300'000);
  // A second of 86 400 is a hundredth of a pixel; the strip, 15 pixels high, shows it all the same.
  const std::size_t end = svg.find("Z\" fill=\"" + draw::detail::adaptation_colors::stalled.hex() + "\"");
  REQUIRE(end != std::string::npos);
  const std::size_t down = svg.rfind('v', end);
  CHECK(std::stod(svg.substr(down + 1)) >= 3.7);
  const std::string page = draw::adaptation_report_html(rows, t, two_layers(), c, {});
  CHECK(markup_fault(markup_of(page)) == "");
  CHECK(page.size() < 4'000'000);
}

TEST_CASE("the page marks the best of a column where one is better") {
  adapt::history slow, fast;
  slow.plans = fast.plans = {two_stages()};
  slow.iterations = 10, slow.energy_J = 100, slow.violations = 5, slow.stall_s = 7;
  fast.iterations = 20, fast.energy_J = 200, fast.lost = 2, fast.stall_s = 7, fast.missed_deadline = true;
  slow.finished_s = 50;
  std::vector<io::policy_history> rows{{"slow", slow}, {"fast", fast}};
  const cluster c = test::wireless(2);
  job j;
  j.batch = 4;
  const auto row_of = [&](const std::string& name) {
    const std::string page = draw::adaptation_report_html(rows, adapt::timeline{100_s}, two_layers(), c, j);
    const std::size_t from = page.find("<tr><td>" + name);
    REQUIRE(from != std::string::npos);
    return page.substr(from, page.find("</tr>", from) - from);
  };
  const std::string best = "<b title=\"best\">★ ";
  // 10 iterations of 4 samples in 50 s against 20 in 100 s: alike, so nobody is best; 10 J each, too.
  CHECK(row_of("slow") ==
        "<tr><td>slow</td><td class=\"n\">10</td><td class=\"n\">0.8/s</td><td class=\"n\">50 %</td><td class=\"n\">7 s</td>"
        "<td class=\"n\">100 J</td><td class=\"n\">10 J</td><td class=\"n\">0</td><td class=\"n\">0 B</td><td class=\"n\">–</td>"
        "<td class=\"n\">50 s</td>");
  CHECK(row_of("fast") ==
        "<tr><td>fast<br><span class=\"alarm\">missed the deadline</span></td><td class=\"n\">" + best +
            "20</b></td>"
            "<td class=\"n\">0.8/s</td><td class=\"n\">" +
            best +
            "0 %</b></td><td class=\"n\">7 s</td><td class=\"n\">200 J</td>"
            "<td class=\"n\">10 J</td><td class=\"n\">0</td><td class=\"n\">0 B</td><td class=\"n\">–</td><td class=\"n\">–</td>");
  // With the same work, energy has a best as well.
  rows[1].history.iterations = 10;
  rows[1].history.lost = 0;
  CHECK(has(row_of("slow"), "<td class=\"n\">" + best + "100 J</b></td><td class=\"n\">" + best + "10 J</b></td>"));
}

}  // namespace test_adaptation
