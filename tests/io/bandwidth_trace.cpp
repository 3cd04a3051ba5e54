// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/io/timeline_json.hpp>

#include "io/reading.hpp"
#include "support/by_hand.hpp"
#include "support/random_source.hpp"
#include "support/shared_data.hpp"

namespace test_bandwidth_trace {

using namespace hetplan;
using test::message_of;
using test::near;
using test::with;
namespace fs = std::filesystem;

namespace {

adapt::bandwidth_trace read(const std::string& text) { return io::parse_bandwidth_trace(text, "t"); }
std::string error(const std::string& text) {
  return message_of([&] { return read(text); });
}

/// Returns the capacity over time after events, one sample in the middle of every `step_s`; -1 before the first event.
std::vector<double> sampled(const std::vector<adapt::event>& events, double duration_s, double step_s) {
  std::vector<double> values;
  for (double t = step_s / 2; t < duration_s; t += step_s) {
    double now = -1;
    for (const adapt::event& e : events) {
      if (e.at.value() <= t) now = std::get<adapt::capacity_becomes>(e.what).capacity.value();
    }
    values.push_back(now);
  }
  return values;
}

}  // namespace

TEST_CASE("a trace says when which rate begins, in bytes per second") {
  const adapt::bandwidth_trace t = read("0 8\n0.5\t600 \r\n\n  2e0   0\n");
  REQUIRE(t.steps.size() == 3);
  CHECK(t.steps[0] == adapt::bandwidth_trace::step{seconds(0), bytes_per_second(1e6)});
  CHECK(t.steps[1] == adapt::bandwidth_trace::step{seconds(0.5), bytes_per_second(600e6 / 8)});
  CHECK(t.steps[2] == adapt::bandwidth_trace::step{seconds(2), bytes_per_second(0)});
  CHECK(read("0 8\n0.5 600\n2 0") == t);
}

TEST_CASE("the mean weighs each rate by how long it holds, the last as long as the one before it") {
  // 1 B/s for 1 s, 4 B/s for 3 s, 2 B/s for 3 s again: 19 / 7.
  const adapt::bandwidth_trace t{{{seconds(2), bytes_per_second(1)}, {seconds(3), bytes_per_second(4)}, {seconds(6), bytes_per_second(2)}}};
  CHECK(length(t) == seconds(7));
  CHECK(mean(t).value() == near(19.0 / 7));
  const adapt::bandwidth_trace doubled = scaled(t, bytes_per_second(38.0 / 7));
  CHECK(doubled.steps[1].rate.value() == near(8));
  CHECK(doubled.steps[1].at == seconds(3));
  const adapt::bandwidth_trace alone{{{seconds(5), bytes_per_second(3)}}};
  CHECK(mean(alone) == bytes_per_second(3));
  CHECK(scaled(alone, bytes_per_second(6)).steps.front() == adapt::bandwidth_trace::step{seconds(5), bytes_per_second(6)});
}

TEST_CASE("a trace becomes events before the end, once or again and again") {
  const adapt::bandwidth_trace t{{{seconds(1), bytes_per_second(5)}, {seconds(2), bytes_per_second(7)}}};
  using samples = std::vector<double>;
  CHECK(sampled(events_of(t, resource_id(0), seconds(6)), 6, 1) == samples{-1, 5, 7, 7, 7, 7});
  CHECK(sampled(events_of(t, resource_id(0), seconds(6), adapt::past_the_end::repeats), 6, 1) == samples{-1, 5, 7, 5, 7, 5});
  CHECK(events_of(t, resource_id(0), seconds(2)).size() == 1);
  CHECK(events_of(t, resource_id(0), seconds(1)).empty());
  const adapt::bandwidth_trace alone{{{seconds(0), bytes_per_second(3)}}};
  CHECK(events_of(alone, resource_id(4), seconds(9), adapt::past_the_end::repeats) ==
        std::vector<adapt::event>{{seconds(0), adapt::capacity_becomes{resource_id(4), bytes_per_second(3)}}});
}

TEST_CASE("repeated steps never turn time back and are not without number") {
  test::random_source random(test::first_seed());
  for (int i = 0; i < 200; ++i) {
    adapt::bandwidth_trace t;
    double at = random.between(0, 3);
    for (int n = random.integer(1, 6); n > 0; --n, at += random.spread(1e-9, 34)) t.steps.push_back({seconds(at), bytes_per_second(1)});
    const auto events = events_of(t, resource_id(0), length(t) * 7.3, adapt::past_the_end::repeats);
    INFO("seed " << test::first_seed() << ", trace " << i);
    CHECK(std::is_sorted(events.begin(), events.end(), [](const auto& a, const auto& b) { return a.at < b.at; }));
    // Seven whole rounds end before the duration, unless the first step is late.
    if (t.steps.size() > 1 && t.steps.front().at < length(t) * 0.2) CHECK(events.size() >= 7 * t.steps.size());
  }
  // The last step is far below the precision of times after many rounds.
  const double long_s = 1e10 / 3;
  const adapt::bandwidth_trace short_end{{{seconds(0), bytes_per_second(1)},
                                          {seconds(long_s), bytes_per_second(2)},
                                          {seconds(std::nextafter(long_s, 1e99)), bytes_per_second(3)}}};
  const auto rounds = events_of(short_end, resource_id(0), seconds(2000 * long_s), adapt::past_the_end::repeats);
  CHECK(rounds.size() >= 3 * 1999);
  CHECK(std::is_sorted(rounds.begin(), rounds.end(), [](const auto& a, const auto& b) { return a.at < b.at; }));
  const adapt::bandwidth_trace fine{{{seconds(0), bytes_per_second(1)}, {seconds(1e-9), bytes_per_second(2)}}};
  CHECK(message_of([&] { return events_of(fine, resource_id(0), seconds(600), adapt::past_the_end::repeats); }) ==
        "bandwidth trace: expected at most 2000000 steps in 600 s, got more");
  const adapt::bandwidth_trace endless{{{seconds(0), bytes_per_second(1)}, {seconds(1e308), bytes_per_second(2)}}};
  CHECK(events_of(endless, resource_id(0), seconds(10), adapt::past_the_end::repeats).size() == 1);
}

TEST_CASE("a bad trace names its line") {
  CHECK(error("") == "t: expected a line with seconds and Mbit/s, got nothing");
  CHECK(error("\n \n") == "t: expected a line with seconds and Mbit/s, got nothing");
  CHECK(error("0 1\n2 1\n1 1\n") == "t: line 3: expected seconds > 2, the time of the line before, got 1");
  CHECK(error("0 1\n\n0 1\n") == "t: line 3: expected seconds > 0, the time of the line before, got 0");
  CHECK(error("0 1\n1 -2\n") == "t: line 2: expected Mbit/s >= 0, got \"-2\"");
  CHECK(error("-1 2\n") == "t: line 1: expected seconds >= 0, got \"-1\"");
  CHECK(error("0 nan\n") == "t: line 1: expected Mbit/s >= 0, got \"nan\"");
  CHECK(error("inf 1\n") == "t: line 1: expected seconds >= 0, got \"inf\"");
  CHECK(error("0 1e999\n") == "t: line 1: expected Mbit/s >= 0, got \"1e999\"");
  CHECK(error("0 1e308\n") == "t: line 1: expected Mbit/s >= 0, got 1e+308");
  CHECK(error("0 1,5\n") == "t: line 1: expected Mbit/s >= 0, got \"1,5\"");
  CHECK(error("0 0x10\n") == "t: line 1: expected Mbit/s >= 0, got \"0x10\"");
  CHECK(error("0\n") == "t: line 1: expected 2 columns, seconds and Mbit/s, got 1");
  CHECK(error("0 1\n1 2 3\n") == "t: line 2: expected 2 columns, seconds and Mbit/s, got 3");
  CHECK(error("0 1 # start\n") == "t: line 1: expected 2 columns, seconds and Mbit/s, got 4");
  CHECK(error(std::string("0 \x1b[2J\n")) == "t: line 1: expected Mbit/s >= 0, got \"\\u001B[2J\"");
  CHECK(error(std::string("0 1\0 2\n", 7)).starts_with("t: line 1: expected "));
}

TEST_CASE("what cannot be scaled says why") {
  const adapt::bandwidth_trace dead = read("0 0\n1 0\n");
  CHECK(message_of([&] { return scaled(dead, bytes_per_second(1)); }) == "bandwidth trace: its mean is 0 and cannot become 1 bytes/s");
  CHECK(scaled(dead, bytes_per_second(0)) == dead);
  const adapt::bandwidth_trace one = read("0 8\n");
  CHECK(message_of([&] { return scaled(one, bytes_per_second(-1)); }) == "bandwidth trace: mean = -1; expected finite bytes/s >= 0");
  CHECK(message_of([&] { return scaled(one, bytes_per_second(std::numeric_limits<double>::infinity())); }) ==
        "bandwidth trace: mean = inf; expected finite bytes/s >= 0");
  const adapt::bandwidth_trace peaked{
      {{seconds(0), bytes_per_second(1)}, {seconds(1000), bytes_per_second(1e6)}, {seconds(1001), bytes_per_second(0)}}};
  CHECK(message_of([&] { return scaled(peaked, bytes_per_second(1e308)); }) ==
        "bandwidth trace: its mean cannot become 1e+308 bytes/s, a rate would not be finite");
  CHECK(message_of([&] { return adapt::scaled({}, bytes_per_second(1)); }) == "bandwidth trace: expected at least one step");
  CHECK(message_of([&] {
          return adapt::events_of({{{seconds(1), {}}, {seconds(1), {}}}}, resource_id(0), seconds(1));
        }) == "bandwidth trace: step 1: at = 1; expected a time after 1 s");
}

TEST_CASE("every trace of the collection is read, and its mean is what summing its lines gives") {
  const auto there = test::shared_data("data/bandwidth");
  if (!there) return;
  const fs::path& folder = *there;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with("norway")) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  REQUIRE(files.size() >= 50);
  for (const fs::path& file : files) {
    INFO(file.string());
    const adapt::bandwidth_trace t = io::read_bandwidth_trace(file.string());
    // Independent of the reader: rows read by streams, summed as megabits between lines.
    std::ifstream lines(file);
    std::vector<std::pair<double, double>> rows;
    for (double at = 0, rate = 0; lines >> at >> rate;) rows.emplace_back(at, rate);
    REQUIRE(t.steps.size() == rows.size());
    long double megabits = 0;
    for (std::size_t i = 0; i + 1 < rows.size(); ++i)
      megabits += static_cast<long double>(rows[i].second) * (rows[i + 1].first - rows[i].first);
    const double last = rows[rows.size() - 1].first - rows[rows.size() - 2].first;
    megabits += static_cast<long double>(rows.back().second) * last;
    const auto expected = static_cast<double>(megabits / (static_cast<long double>(rows.back().first) - rows.front().first + last));
    CHECK(8e-6 * mean(t).value() == Approx(expected).epsilon(1e-9));
    const adapt::bandwidth_trace fast = scaled(t, 600_Mbit_per_s);
    CHECK(mean(fast).value() == Approx(75e6).epsilon(1e-9));
    for (std::size_t i = 0; i < rows.size(); ++i)
      CHECK(fast.steps[i].rate.value() == Approx(75e6 * rows[i].second / expected).epsilon(1e-9));
    // Over ten whole repetitions, the events have the mean of the trace.
    const double length_s = length(t).value(), first_s = t.steps.front().at.value(), end_s = first_s + 10 * length_s;
    const auto events = events_of(fast, resource_id(0), seconds(end_s), adapt::past_the_end::repeats);
    double sum = 0;
    for (std::size_t i = 0; i < events.size(); ++i) {
      const double until = i + 1 < events.size() ? events[i + 1].at.value() : end_s;
      sum += std::get<adapt::capacity_becomes>(events[i].what).capacity.value() * (until - events[i].at.value());
    }
    CHECK(sum / (10 * length_s) == Approx(75e6).epsilon(1e-6));
  }
}

}  // namespace test_bandwidth_trace
