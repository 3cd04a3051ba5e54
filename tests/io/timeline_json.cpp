// SPDX-License-Identifier: BSL-1.0
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/io/timeline_json.hpp>

#include "io/reading.hpp"
#include "support/by_hand.hpp"
#include "support/random_history.hpp"
#include "support/random_instance.hpp"

namespace test_timeline_json {

using namespace hetplan;
using test::check_refusals;
using test::document;
using test::message_of;
using test::with;
namespace fs = std::filesystem;

namespace {

cluster home() { return {"home", {test::worker("laptop0"), test::worker("phone0")}, shared_medium{600_Mbit_per_s, 2_ms}}; }
constexpr device_id laptop(0), phone(1);
constexpr resource_id air(0);

adapt::timeline read_in(const fs::path& folder, const std::string& text) {
  return io::read_timeline(document(text, "t.json"), home(), folder);
}
adapt::timeline read(const std::string& text) { return read_in({}, text); }
std::string of_events(const std::string& events) {
  return R"({"format": "hetplan/timeline/1", "duration": 600, "events": [)" + events + "]}";
}
std::string of_traces(const std::string& traces) {
  return R"({"format": "hetplan/timeline/1", "duration": 600, "traces": [)" + traces + "]}";
}
adapt::timeline read_events(const std::string& events) { return read(of_events(events)); }

struct folder {
  fs::path path = fs::temp_directory_path() / ("hetplan_traces_" + std::to_string(reinterpret_cast<std::uintptr_t>(this)));
  folder() { fs::create_directories(path); }
  ~folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  void write(const char* name, const std::string& text) const { std::ofstream(path / name) << text; }
};

}  // namespace

TEST_CASE("a timeline file means what it says") {
  const adapt::timeline t = read(R"({"format": "hetplan/timeline/1", "duration": "10 min",
    "events": [{"at": "60 s", "resource": "shared", "capacity": "300 Mbit/s"}, {"at": "90 s", "device": "laptop0", "speed": 0.5},
               {"at": "200 s", "device": "phone0", "leaves": true}, {"at": "400 s", "device": "phone0", "joins": true},
               {"at": "450 s", "transfer": {"from": "laptop0", "to": "phone0", "bytes": "500 MB", "priority": -2}},
               {"at": "500 s", "qoe": {"latency": "3 s"}}, {"at": "500 s", "qoe": {"deadline": "2 h"}}, {"at": 9000, "qoe": {"latency": 1, "deadline": 2}}]})");
  CHECK(t == adapt::timeline{600_s,
                             {{60_s, adapt::capacity_becomes{air, 300_Mbit_per_s}},
                              {90_s, adapt::speed_becomes{laptop, 0.5}},
                              {200_s, adapt::device_leaves{phone}},
                              {400_s, adapt::device_joins{phone}},
                              {450_s, adapt::transfer_begins{laptop, phone, 500_MB, -2}},
                              {500_s, adapt::qoe_becomes{3_s, {}}},
                              {500_s, adapt::qoe_becomes{{}, 7200_s}},
                              {9000_s, adapt::qoe_becomes{1_s, 2_s}}}});
  CHECK(read(io::write_timeline(t, home())) == t);
  const adapt::timeline calm = read(R"({"format": "hetplan/timeline/1", "duration": 1})");
  CHECK(calm == adapt::timeline{1_s});
  CHECK(read(io::write_timeline(calm, home())) == calm);
}

TEST_CASE("random timelines are written and read again unchanged") {
  const std::uint64_t seed = test::first_seed();
  test::random_source random(seed);
  test::for_random_instances(60, [&](const test::instance& i) {
    const cluster c = i.cluster();
    const adapt::timeline t = test::random_timeline(random, c);
    INFO("seed " << seed);
    check_timeline(t, c);
    CHECK(io::read_timeline(document(io::write_timeline(t, c)), c) == t);
  });
}

TEST_CASE("traces and events become one list in time order, of one instant the traces first") {
  const folder f;
  f.write("up", "0 8\n60 16\n120 24\n");
  f.write("flat", "60 1\n");
  const std::string text = R"({"format": "hetplan/timeline/1", "duration": 200,
    "events": [{"at": 0, "device": "phone0", "speed": 2}, {"at": 60, "resource": "A->B", "capacity": 0}, {"at": 60, "resource": "A->B", "capacity": 1}],
    "traces": [{"resource": "B->A", "file": "flat"}, {"resource": "A->B", "file": "up", "repeat": true, "mean": "32 Mbit/s"}]})";
  const cluster c("c", {test::worker("A"), test::worker("phone0")}, route_table{{{"A->B", 1_MB_per_s}, {"B->A", 1_MB_per_s}}, {}});
  const adapt::timeline t = io::read_timeline(document(text, (f.path / "t.json").string()), c);
  const auto to = [](int at, int r, double rate) {
    return adapt::event{seconds(at), adapt::capacity_becomes{resource_id(r), bytes_per_second(rate)}};
  };
  const std::vector<adapt::event> expected{to(0, 0, 2e6),      {0_s, adapt::speed_becomes{phone, 2}},
                                           to(60, 1, 125'000), to(60, 0, 4e6),
                                           to(60, 0, 0),       to(60, 0, 1),
                                           to(120, 0, 6e6),    to(180, 0, 2e6)};
  CHECK(t.events == expected);
  // Paths relative to another folder, and an absolute one.
  const std::string elsewhere = with(with(text, "\"flat\"", "\"" + (f.path / "flat").string() + "\""), "\"up\"", "\"./up\"");
  CHECK(io::read_timeline(document(elsewhere, "t.json"), c, f.path).events == expected);
}

TEST_CASE("a bad timeline file ends in one message that points at the event") {
  check_refusals("", read, "t.json: ", R"(
    {"format": "hetplan/timeline/2", "duration": 1} => /format: expected "hetplan/timeline/1", got "hetplan/timeline/2"
    {"format": "hetplan/timeline/1"} => /duration: expected seconds > 0, got nothing
    {"format": "hetplan/timeline/1", "duration": "0 s"} => /duration: expected seconds > 0, got "0 s"
    {"format": "hetplan/timeline/1", "duration": "1e20 h"} => /duration: expected seconds > 0, at most 1e+09 (30 years), got "1e20 h"
    {"format": "hetplan/timeline/1", "duration": 1, "event": []} => /event: expected a known key, got "event"; did you mean "events"?
    {"format": "hetplan/timeline/1", "duration": 1, "events": {}} => /events: expected an array of events, got an empty object
  )");
  check_refusals("", read_events, "t.json: ", R"(
    3 => /events/0: expected an event, got 3
    {"resource": "shared", "capacity": 1} => /events/0/at: expected seconds >= 0, got nothing
    {"at": -1, "resource": "shared", "capacity": 1} => /events/0/at: expected seconds >= 0, got -1
    {"at": 5, "qoe": {"latency": 1}}, {"at": 4, "qoe": {"latency": 1}}
      => /events/1/at: expected seconds >= 5, the time of the event before, got 4
    {"at": 1} => /events/0: expected one of: resource with capacity; device with speed, leaves or joins; transfer; qoe; got none of them
    {"at": 1, "resource": "shared", "capacity": 1, "qoe": {"latency": 1}}
      => /events/0/qoe: expected one change per event, got "resource" and "qoe"
    {"at": 1, "device": "phone0", "leaves": true, "speed": 1} => /events/0/leaves: expected one change per event, got "speed" and "leaves"
    {"at": 1, "device": "phone0", "capacity": 1} => /events/0/capacity: expected no "capacity" beside "device"
    {"at": 1, "resource": "shared", "capacity": 1, "speed": 1} => /events/0/speed: expected no "speed" beside "resource"
    {"at": 1, "qoe": {"latency": 1}, "joins": true} => /events/0/joins: expected no "joins" beside "qoe"
    {"at": 1, "speed": 1} => /events/0/speed: expected "device" beside it, got nothing
    {"at": 1, "capacity": 1} => /events/0/capacity: expected "resource" beside it, got nothing
    {"at": 1, "device": "phone0"} => /events/0: expected speed, leaves or joins beside device, got none of them
    {"at": 1, "device": "phone0", "leaves": false} => /events/0/leaves: expected true, got false
    {"at": 1, "device": "phone0", "leaves": 1} => /events/0/leaves: expected true or false, got 1
    {"at": 1, "device": "phone", "speed": 1}
      => /events/0/device: expected the name of a device of cluster "home", got "phone"; did you mean "phone0"?
    {"at": 1, "device": "phone0", "speed": "half"} => /events/0/speed: expected a number >= 0, got "half"
    {"at": 1, "device": "phone0", "speed": -1} => /events/0/speed: expected a number >= 0, got -1
    {"at": 1, "resource": "share", "capacity": 1}
      => /events/0/resource: expected the name of a resource of cluster "home", got "share"; did you mean "shared"?
    {"at": 1, "resource": "shared"} => /events/0/capacity: expected bytes/s >= 0, got nothing
    {"at": 1, "resource": "shared", "capacity": "300 Mb/s"}
      => /events/0/capacity: expected bytes/s >= 0, got "300 Mb/s"; did you mean "300 Mbit/s"?
    {"at": 1, "qoe": {}} => /events/0/qoe: expected latency or deadline, got an empty object
    {"at": 1, "qoe": {"latency": 0}} => /events/0/qoe/latency: expected seconds > 0, got 0
    {"at": 1, "qoe": {"lambda": 3}} => /events/0/qoe/lambda: expected a known key, got "lambda"; known keys: latency, deadline
    {"at": 1, "transfer": {"from": "laptop0", "bytes": 1}} => /events/0/transfer/to: expected the name of a device, got nothing
    {"at": 1, "transfer": {"from": "laptop0", "to": "phone0", "bytes": -1}} => /events/0/transfer/bytes: expected bytes >= 0, got -1
    {"at": 1, "transfer": {"from": "laptop0", "to": "phone0", "bytes": 1, "priority": 0.5}}
      => /events/0/transfer/priority: expected an integer >= -2147483648, got 0.5
    {"at": 1, "transfer": {"from": "laptop0", "to": "laptop0", "bytes": 1}}
      => /events/0: transfer from "laptop0" to "laptop0", but the cluster has no route for that pair
  )");
}

TEST_CASE("what only the whole timeline shows is told at the event that shows it") {
  const std::string gone = R"({"at": 1, "device": "phone0", "leaves": true}, )";
  const auto read_then = [&](const std::string& events) { return read_events(gone + events); };
  check_refusals("", read_then, "t.json: ", R"(
    {"at": 2, "device": "phone0", "leaves": true} => /events/1: device "phone0" leaves, but is not there
    {"at": 2, "device": "phone0", "joins": true}, {"at": 2, "device": "phone0", "joins": true}
      => /events/2: device "phone0" joins, but is there already
    {"at": 2, "qoe": {"latency": 1}}, {"at": 2, "device": "laptop0", "leaves": true}
      => /events/2: device "laptop0" leaves, and no device is left; expected at least one
  )");
  CHECK_NOTHROW(read_events(gone + R"({"at": 2, "device": "phone0", "joins": true}, {"at": 2, "device": "laptop0", "leaves": true})"));
  // Traces do not shift the event's pointer.
  const folder f;
  f.write("flat", "0 1\n1 2\n2 3\n");
  const std::string text =
      with(of_events(R"({"at": 2, "device": "phone0", "joins": true})"), "]}", R"(], "traces": [{"resource": "shared", "file": "flat"}]})");
  CHECK(message_of([&] { return read_in(f.path, text); }) == "t.json: /events/0: device \"phone0\" joins, but is there already");
}

TEST_CASE("a bad trace is told at the key that names it, with the line of its file") {
  const folder f;
  const auto read_traces = [&](const std::string& traces) { return read_in(f.path, of_traces(traces)); };
  const auto path = [&](const char* name) { return (f.path / name).string(); };
  f.write("back", "0 1\n2 1\n1 1\n");
  f.write("negative", "0 -1\n");
  f.write("dead", "0 0\n5 0\n");
  f.write("fine", "0 1\n0.000001 2\n");
  CHECK(message_of([&] { return read_traces(R"({"resource": "shared", "file": "back"})"); }) ==
        "t.json: /traces/0/file: " + path("back") + ": line 3: expected seconds > 2, the time of the line before, got 1");
  CHECK(message_of([&] { return read_traces(R"({"resource": "shared", "file": "negative"})"); }) ==
        "t.json: /traces/0/file: " + path("negative") + ": line 1: expected Mbit/s >= 0, got \"-1\"");
  CHECK(message_of([&] { return read_traces(R"({"resource": "shared", "file": "none"})"); }) ==
        "t.json: /traces/0/file: " + path("none") + ": cannot read: No such file or directory");
  check_refusals("", read_traces, "t.json: ", R"(
    {"resource": "shared", "file": ""} => /traces/0/file: expected the name of a file, got ""
    {"resource": "shared"} => /traces/0/file: expected the name of a file, got nothing
    {"resource": "sharde", "file": "dead"}
      => /traces/0/resource: expected the name of a resource of cluster "home", got "sharde"; did you mean "shared"?
    {"resource": "shared", "file": "dead", "mean": "1 Mbit/s"} => /traces/0/mean: its mean is 0 and cannot become 125000 bytes/s
    {"resource": "shared", "file": "dead", "mean": -1} => /traces/0/mean: expected bytes/s >= 0, got -1
    {"resource": "shared", "file": "dead", "repeat": 1} => /traces/0/repeat: expected true or false, got 1
    {"resource": "shared", "file": "dead", "loop": true} => /traces/0/loop: expected a known key, got "loop"...
    {"resource": "shared", "file": "dead"}, {"resource": "shared", "file": "dead"}
      => /traces/1/resource: expected a resource that no other trace has, got "shared"
    {"resource": "shared", "file": "fine", "repeat": true} => /traces/0: expected at most 2000000 steps in 600 s, got more
  )");
}

TEST_CASE("a timeline that a program makes is checked with the index of its event") {
  using list = std::vector<adapt::event>;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto fault = [](double duration, list events) {
    return message_of([&] { check_timeline(adapt::timeline{seconds(duration), std::move(events)}, home()); });
  };
  CHECK(fault(0, {}) == "timeline: duration = 0 s; expected seconds > 0, at most 1e+09 (30 years)");
  CHECK(fault(nan, {}) == "timeline: duration = nan s; expected seconds > 0, at most 1e+09 (30 years)");
  CHECK(fault(3.6e23, {}) == "timeline: duration = 3.6e+23 s; expected seconds > 0, at most 1e+09 (30 years)");
  CHECK(fault(9, {{1_s, adapt::speed_becomes{laptop, 1}}, {seconds(0.5), adapt::speed_becomes{laptop, 1}}}) ==
        "timeline: event 1 at 0.5 s: expected a time >= 1 s, that of the event before it");
  CHECK(fault(9, {{seconds(nan), adapt::speed_becomes{laptop, 1}}}) == "timeline: event 0 at nan s: expected a finite time >= 0");
  CHECK(fault(9, {{1_s, adapt::speed_becomes{device_id(2), 1}}}) == "timeline: event 0 at 1 s: names no device of cluster \"home\"");
  CHECK(fault(9, {{1_s, adapt::speed_becomes{laptop, nan}}}) == "timeline: event 0 at 1 s: speed = nan; expected a finite factor >= 0");
  CHECK(fault(9, {{1_s, adapt::capacity_becomes{resource_id(1), {}}}}) ==
        "timeline: event 0 at 1 s: names no resource of cluster \"home\"");
  CHECK(fault(9, {{1_s, adapt::capacity_becomes{air, bytes_per_second(-1)}}}) ==
        "timeline: event 0 at 1 s: capacity = -1; expected a finite rate >= 0");
  CHECK(fault(9, {{1_s, adapt::transfer_begins{laptop, phone, bytes(nan)}}}) ==
        "timeline: event 0 at 1 s: transfer of nan B; expected finite bytes >= 0");
  CHECK(fault(9, {{1_s, adapt::qoe_becomes{}}}) == "timeline: event 0 at 1 s: qoe without latency or deadline");
  CHECK(fault(9, {{1_s, adapt::qoe_becomes{{}, seconds(-3)}}}) == "timeline: event 0 at 1 s: qoe.deadline = -3; expected seconds > 0");
}

}  // namespace test_timeline_json
