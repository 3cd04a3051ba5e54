// SPDX-License-Identifier: BSL-1.0
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/io/results_json.hpp>

#include "io/reading.hpp"

namespace test_sweep_json {

using namespace hetplan;
using test::document;
using test::message_of;
using test::with;

namespace {

const std::vector<std::string> known{"asteroid", "dora"};
const std::string good = R"({"format": "hetplan/sweep/1", "models": ["a"], "clusters": ["b"], "jobs": ["c"]})";
io::sweep read(const std::string& text) { return io::read_sweep(document(text, "s.json"), known); }
std::string error(const std::string& more) {
  return message_of([&] { return read(with(good, "[\"c\"]}", "[\"c\"], " + more + "}")); });
}
std::string job_error(const std::string& jobs) {
  return message_of([&] { return read(with(good, "[\"c\"]", jobs)); });
}

}  // namespace

TEST_CASE("a short sweep file has every planner and the jobs' own latencies") {
  const io::sweep s = read(good);
  CHECK(s.models == std::vector<std::string>{"a"});
  CHECK(s.clusters == std::vector<std::string>{"b"});
  REQUIRE(s.jobs.size() == 1);
  CHECK(s.jobs[0].name == "c");
  CHECK_FALSE(s.jobs[0].job);
  CHECK(s.latencies.empty());
  CHECK(s.planners.empty());
  CHECK_FALSE(s.tokens);
  CHECK(s.dtype.empty());
}

TEST_CASE("a long sweep file means what it says") {
  const io::sweep s = read(R"({"format": "hetplan/sweep/1", "models": ["a", "b"], "clusters": ["c"],
    "jobs": [{"name": "j", "mode": "inference", "batch": 4, "qoe": {"lambda": 5}}, "k.json"], "latencies": ["1 s", 0.5],
    "planners": ["dora"], "tokens": 64, "dtype": "bf16"})");
  CHECK(s.models == std::vector<std::string>{"a", "b"});
  REQUIRE(s.jobs.size() == 2);
  CHECK(s.jobs[0].name == "j");
  CHECK(s.jobs[0].job == job{.workload = {mode::inference}, .batch = 4, .qoe = {.lambda_J_per_s = 5}});
  CHECK(s.jobs[1].name == "k.json");
  CHECK(s.latencies == std::vector<seconds>{seconds(1), seconds(0.5)});
  CHECK(s.planners == std::vector<std::string>{"dora"});
  CHECK(s.tokens == 64);
  CHECK(s.dtype == "bf16");
}

TEST_CASE("a bad sweep file ends in one message") {
  CHECK(message_of([] { return read(R"({"format": "hetplan/sweep/2"})"); }) ==
        "s.json: /format: expected \"hetplan/sweep/1\", got \"hetplan/sweep/2\"");
  CHECK(message_of([] { return read(with(good, "\"models\": [\"a\"], ", "")); }) ==
        "s.json: /models: expected an array of models, got nothing");
  CHECK(message_of([] { return read(with(good, "[\"a\"]", "[]")); }) ==
        "s.json: /models: expected an array with a model file or a built-in name, got an empty array");
  CHECK(message_of([] { return read(with(good, "[\"a\"]", "[3]")); }) ==
        "s.json: /models/0: expected a model file or a built-in name, got 3");
  CHECK(message_of([] { return read(with(good, "[\"b\"]", "[\"b\", \"b\"]")); }) ==
        "s.json: /clusters/1: expected every name once, got \"b\" again");
  CHECK(job_error("[]") == "s.json: /jobs: expected an array with at least one job, got an empty array");
  CHECK(job_error("[4]") == "s.json: /jobs/0: expected the name of a job file, or a job with a name, got 4");
  CHECK(job_error("[\"c\", {\"name\": \"c\", \"mode\": \"training\", \"batch\": 1}]") ==
        "s.json: /jobs/1: expected every name once, got \"c\" again");
  CHECK(job_error("[{\"mode\": \"training\", \"batch\": 1}]") == "s.json: /jobs/0/name: expected a name, got nothing");
  CHECK(job_error("[{\"name\": \"c\", \"mode\": \"training\"}]") == "s.json: /jobs/0/batch: expected an integer >= 1, got nothing");
  CHECK(job_error("[{\"name\": \"c\", \"mode\": \"training\", \"batch\": 1, \"format\": \"hetplan/job/1\"}]")
            .starts_with("s.json: /jobs/0/format: expected a known key"));
  CHECK(job_error("[{\"name\": \"c\", \"mode\": \"training\", \"batch\": 1, \"objective\": \"qoe\"}]") ==
        "s.json: /jobs/0/objective: expected qoe.latency with objective \"qoe\", got nothing");
  CHECK(error("\"latencies\": []") == "s.json: /latencies: expected an array with at least one latency, got an empty array");
  CHECK(error("\"latencies\": [0]") == "s.json: /latencies/0: expected seconds > 0, got 0");
  CHECK(error("\"latencies\": [1, \"1000 ms\"]") == "s.json: /latencies/1: expected every latency once, got \"1000 ms\"");
  CHECK(error("\"planners\": [\"dra\"]") == "s.json: /planners/0: expected the name of a planner, got \"dra\"; did you mean \"dora\"?");
  CHECK(error("\"planners\": [\"dora\", \"dora\"]") == "s.json: /planners/1: expected every name once, got \"dora\" again");
  CHECK(error("\"tokens\": 0") == "s.json: /tokens: expected an integer >= 1, got 0");
  CHECK(error("\"dtype\": \"fp16\"") == "s.json: /dtype: expected \"fp32\" or \"bf16\", got \"fp16\"");
  CHECK(error("\"model\": []") == "s.json: /model: expected a known key, got \"model\"; did you mean \"models\"?");
}

}  // namespace test_sweep_json
