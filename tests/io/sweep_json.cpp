// SPDX-License-Identifier: BSL-1.0
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/io/results_json.hpp>

#include "io/reading.hpp"

namespace test_sweep_json {

using namespace hetplan;
using test::check_refusals;
using test::document;

namespace {

const std::vector<std::string> known{"asteroid", "dora"};
const std::string good = R"({"format": "hetplan/sweep/1", "models": ["a"], "clusters": ["b"], "jobs": ["c"]})";
io::sweep read(const std::string& text) { return io::read_sweep(document(text, "s.json"), known); }

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
    "planners": ["dora"], "tokens": 64, "dtype": "bf16", "weights": "q8_0"})");
  CHECK(s.models == std::vector<std::string>{"a", "b"});
  REQUIRE(s.jobs.size() == 2);
  CHECK(s.jobs[0].name == "j");
  CHECK(s.jobs[0].job == job{.workload = {mode::inference}, .batch = 4, .qoe = {.lambda_J_per_s = 5}});
  CHECK(s.jobs[1].name == "k.json");
  CHECK(s.latencies == std::vector<seconds>{seconds(1), seconds(0.5)});
  CHECK(s.planners == std::vector<std::string>{"dora"});
  CHECK(s.tokens == 64);
  CHECK(s.dtype == "bf16");
  CHECK(s.weights == "q8_0");
}

TEST_CASE("a bad sweep file ends in one message") {
  check_refusals(good, read, "s.json: ", R"(
    {"format": "hetplan/sweep/2"} => /format: expected "hetplan/sweep/1", got "hetplan/sweep/2"
    "models": ["a"], => => /models: expected an array of models, got nothing
    ["a"] => [] => /models: expected an array with a model file or a built-in name, got an empty array
    ["a"] => [3] => /models/0: expected a model file or a built-in name, got 3
    ["b"] => ["b", "b"] => /clusters/1: expected every name once, got "b" again
    ["c"] => [] => /jobs: expected an array with at least one job, got an empty array
    ["c"] => [4] => /jobs/0: expected the name of a job file, or a job with a name, got 4
    ["c"] => ["c", {"name": "c", "mode": "training", "batch": 1}] => /jobs/1: expected every name once, got "c" again
    ["c"] => [{"mode": "training", "batch": 1}] => /jobs/0/name: expected a name, got nothing
    ["c"] => [{"name": "c", "mode": "training"}] => /jobs/0/batch: expected an integer >= 1, got nothing
    ["c"] => [{"name": "c", "mode": "training", "batch": 1, "format": "hetplan/job/1"}] => /jobs/0/format: expected a known key...
    ["c"] => [{"name": "c", "mode": "training", "batch": 1, "objective": "qoe"}]
      => /jobs/0/objective: expected a time in qoe (latency, makespan, ttft, time_between_tokens) with objective "qoe", got none
    ["c"] => ["c"], "latencies": [] => /latencies: expected an array with at least one latency, got an empty array
    ["c"] => ["c"], "latencies": [0] => /latencies/0: expected seconds > 0, got 0
    ["c"] => ["c"], "latencies": [1, "1000 ms"] => /latencies/1: expected every latency once, got "1000 ms"
    ["c"] => ["c"], "planners": ["dra"] => /planners/0: expected the name of a planner, got "dra"; did you mean "dora"?
    ["c"] => ["c"], "planners": ["dora", "dora"] => /planners/1: expected every name once, got "dora" again
    ["c"] => ["c"], "tokens": 0 => /tokens: expected an integer >= 1, got 0
    ["c"] => ["c"], "dtype": "fp16" => /dtype: expected "fp32" or "bf16", got "fp16"
    ["c"] => ["c"], "weights": 4 => /weights: expected the name of a weight format, got 4
    ["c"] => ["c"], "model": [] => /model: expected a known key, got "model"; did you mean "models"?
  )");
}

}  // namespace test_sweep_json
