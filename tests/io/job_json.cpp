// SPDX-License-Identifier: BSL-1.0
#include <string>

#include <catch2/catch.hpp>

#include <hetplan/io/job_json.hpp>

#include "io/reading.hpp"

namespace test_job_json {

using namespace hetplan;
using test::check_refusals;
using test::document;
using test::with;

namespace {

const std::string good = R"({"format": "hetplan/job/1", "mode": "training", "batch": 32})";
job read(const std::string& text) { return io::read_job(document(text, "j.json")); }

}  // namespace

TEST_CASE("a short job file is the default job") {
  CHECK(read(good) == job{});
  CHECK(read(good).candidate_microbatch_sizes() == std::vector<int>{1, 2, 4, 8, 16, 32});
}

TEST_CASE("a long job file means what it says and is written again") {
  const job j = read(R"({"format": "hetplan/job/1", "mode": "generation", "batch": 12, "microbatch_sizes": [3, 5], "optimizer_factor": 0.5,
    "context": 100, "tokens": 20, "schedule": "gpipe", "objective": "energy",
    "qoe": {"latency": "200 ms", "makespan": "4 s", "ttft": "1 s", "time_between_tokens": "50 ms", "lambda": "2 kW", "deadline": "1 h",
            "iterations": 3000000000}})");
  CHECK(j.workload == workload{mode::generation, 0.5, 100, 20});
  CHECK(j.batch == 12);
  CHECK(j.candidate_microbatch_sizes() == std::vector<int>{3});
  CHECK(j.schedule == schedule_kind::gpipe);
  CHECK(j.objective == objective_kind::energy);
  CHECK(j.qoe == qoe_target{seconds(0.2), seconds(4), seconds(1), seconds(0.05), 2000, seconds(3600), 3000000000});
  CHECK(read(io::write_job(j)) == j);
  CHECK(read(io::write_job(job{})) == job{});
}

TEST_CASE("a job names what planners may save memory with, in training") {
  const job j = read(with(good, "32}", "32, \"memory_savers\": [\"shard_state\", \"recompute\"]}"));
  CHECK(j.memory_savers == memory_savers{true, true});
  CHECK(read(io::write_job(j)) == j);
  CHECK(read(with(good, "32}", "32, \"memory_savers\": []}")) == job{});
  const job one = read(with(good, "32}", "32, \"memory_savers\": [\"recompute\"]}"));
  CHECK(one.memory_savers == memory_savers{true, false});
  CHECK(read(io::write_job(one)) == one);
  job other{.memory_savers = {.recompute = true}};
  other.workload.mode = mode::generation;
  CHECK_THROWS_MATCHES(check_job(other), invalid_input,
                       Catch::Message("job: memory_savers: expected none outside training, got mode generation"));
}

TEST_CASE("a job names its optimizer, or how much state it has") {
  for (const auto& [name, named] : optimizers) {
    const job j = read(with(good, "32}", "32, \"optimizer\": \"" + std::string(name) + "\"}"));
    CHECK(j.workload.optimizer == named);
    CHECK(read(io::write_job(j)) == j);
  }
  CHECK_THROWS_WITH(read(with(good, "32}", "32, \"optimizer\": \"adam\"}")),
                    Catch::StartsWith("j.json: /optimizer: expected \"adamw\", \"adamw-amp\", \"adamw-8bit\", \"sgd\""));
  CHECK_THROWS_WITH(read(with(good, "32}", "32, \"optimizer\": \"sgd\", \"optimizer_factor\": 2}")),
                    "j.json: /optimizer: expected optimizer or optimizer_factor, got both");
}

TEST_CASE("a job may allow devices to share tensors") {
  const job j = read(with(good, "32}", "32, \"split_tensors\": true}"));
  CHECK(j.split_tensors);
  CHECK(read(io::write_job(j)) == j);
  CHECK(read(with(good, "32}", "32, \"split_tensors\": false}")) == job{});
}

TEST_CASE("the objective is qoe where a latency is asked for") {
  CHECK(read(with(good, "32}", "32, \"qoe\": {\"latency\": 2}}")).effective_objective() == objective_kind::qoe);
  CHECK(read(with(good, "32}", "32, \"qoe\": {\"deadline\": 2}}")).effective_objective() == objective_kind::latency);
}

TEST_CASE("a bad job file ends in one message") {
  check_refusals(good, read, "j.json: ", R"(
    "mode": "training", => => /mode: expected "training", "inference" or "generation", got nothing
    training => train => /mode: expected "training", "inference" or "generation", got "train"
    , "batch": 32 => => /batch: expected an integer >= 1, got nothing
    32 => 0 => /batch: expected an integer >= 1, got 0
    32 => "32" => /batch: expected an integer >= 1, got "32"
    32 => 99999999999 => /batch: expected an integer from 1 to 2147483647, got 99999999999
    32 => 32, "memory_savers": ["magic"] => /memory_savers/0: expected "recompute" or "shard_state", got "magic"
    32 => 32, "memory_savers": ["recompute", "recompute"] => /memory_savers/1: expected each memory saver once, got "recompute"
    32 => 32, "memory_savers": "recompute" => /memory_savers: expected an array of...
    training => inference => 32 => 32, "memory_savers": ["recompute"]
      => /memory_savers/0: expected no memory saver outside training, got "recompute"
    32 => 32, "split_tensors": 1 => /split_tensors: expected true or false...
    32 => 32, "microbatch_sizes": [3, 5] => /microbatch_sizes: no microbatch size divides the batch 32
    32 => 32, "microbatch_sizes": [] => /microbatch_sizes: expected at least one microbatch size, got an empty array
    32 => 32, "microbatch_sizes": [1, 0] => /microbatch_sizes/1: expected an integer >= 1, got 0
    32 => 32, "optimizer_factor": -1 => /optimizer_factor: expected a number >= 0, got -1
    32 => 32, "context": -1 => /context: expected an integer >= 0, got -1
    32 => 32, "tokens": 0 => /tokens: expected an integer >= 1, got 0
    32 => 32, "prompt": -1 => /prompt: expected an integer >= 0, got -1
    32 => 32, "prompt_chunk": 0 => /prompt_chunk: expected an integer >= 1, got 0
    32 => 32, "chunks_in_flight": 0 => /chunks_in_flight: expected an integer >= 1, got 0
    32 => 32, "schedule": "explicit" => /schedule: expected one of 1f1b, gpipe, compact, ...
    32 => 32, "schedule": ["1f1b", "1f1b"] => /schedule/1: expected each schedule once, got "1f1b"
    32 => 32, "schedule": ["1f1b", "gpipe"] => /schedule/1: expected one of "1f1b" and "gpipe" at most, got "gpipe"
    32 => 32, "objective": "speed" => /objective: expected "latency", "throughput", "ttft", "time_between_tokens", "energy" or "qoe", got "speed"
    32 => 32, "objective": "qoe" => /objective: expected a time in qoe (latency, makespan, ttft, time_between_tokens) with objective "qoe", got none
    32 => 32, "qoe": {"latency": 0} => /qoe/latency: expected seconds > 0, got 0
    32 => 32, "qoe": {"lambda": -1} => /qoe/lambda: expected watts (J/s) >= 0, got -1
    32 => 32, "qoe": {"iterations": 0} => /qoe/iterations: expected an integer >= 1, got 0
    32 => 32, "qoe": 3 => /qoe: expected an object with latency, makespan, ttft, time_between_tokens, lambda, deadline, iterations, got 3
    32 => 32, "qoe": {"latancy": 1} => /qoe/latancy: expected a known key, got "latancy"; did you mean "latency"?
    32 => 32, "seed": 3 => /seed: expected a known key, got "seed"; known keys: format, mode...
  )");
}

}  // namespace test_job_json
