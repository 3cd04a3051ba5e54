// SPDX-License-Identifier: BSL-1.0
#include <string>

#include <catch2/catch.hpp>

#include <hetplan/io/job_json.hpp>

#include "io/reading.hpp"

namespace test_job_json {

using namespace hetplan;
using test::document;
using test::message_of;
using test::with;

namespace {

const std::string good = R"({"format": "hetplan/job/1", "mode": "training", "batch": 32})";
job read(const std::string& text) { return io::read_job(document(text, "j.json")); }
std::string error(const std::string& more) {
  return message_of([&] { return read(with(good, "32}", "32, " + more + "}")); });
}

}  // namespace

TEST_CASE("a short job file is the default job") {
  CHECK(read(good) == job{});
  CHECK(read(good).candidate_microbatch_sizes() == std::vector<int>{1, 2, 4, 8, 16, 32});
}

TEST_CASE("a long job file means what it says and is written again") {
  const job j = read(R"({"format": "hetplan/job/1", "mode": "generation", "batch": 12, "microbatch_sizes": [3, 5], "optimizer_factor": 0.5,
    "context": 100, "tokens": 20, "schedule": "gpipe", "objective": "energy",
    "qoe": {"latency": "200 ms", "lambda": "2 kW", "deadline": "1 h", "iterations": 3000000000}})");
  CHECK(j.workload == workload{mode::generation, 0.5, 100, 20});
  CHECK(j.batch == 12);
  CHECK(j.candidate_microbatch_sizes() == std::vector<int>{3});
  CHECK(j.schedule == schedule_kind::gpipe);
  CHECK(j.objective == objective_kind::energy);
  CHECK(j.qoe == qoe_target{seconds(0.2), 2000, seconds(3600), 3000000000});
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
  CHECK(error("\"memory_savers\": [\"magic\"]") == "j.json: /memory_savers/0: expected \"recompute\" or \"shard_state\", got \"magic\"");
  CHECK(error("\"memory_savers\": [\"recompute\", \"recompute\"]") ==
        "j.json: /memory_savers/1: expected each memory saver once, got \"recompute\"");
  CHECK(error("\"memory_savers\": \"recompute\"").starts_with("j.json: /memory_savers: expected an array of"));
  CHECK(message_of([&] { return read(with(with(good, "training", "inference"), "32}", "32, \"memory_savers\": [\"recompute\"]}")); }) ==
        "j.json: /memory_savers/0: expected no memory saver outside training, got \"recompute\"");
  job other{.memory_savers = {.recompute = true}};
  other.workload.mode = mode::generation;
  CHECK_THROWS_MATCHES(check_job(other), invalid_input,
                       Catch::Message("job: memory_savers: expected none outside training, got mode generation"));
}

TEST_CASE("a job may allow devices to share tensors") {
  const job j = read(with(good, "32}", "32, \"split_tensors\": true}"));
  CHECK(j.split_tensors);
  CHECK(read(io::write_job(j)) == j);
  CHECK(read(with(good, "32}", "32, \"split_tensors\": false}")) == job{});
  CHECK(error("\"split_tensors\": 1").starts_with("j.json: /split_tensors: expected true or false"));
}

TEST_CASE("the objective is qoe where a latency is asked for") {
  CHECK(read(with(good, "32}", "32, \"qoe\": {\"latency\": 2}}")).effective_objective() == objective_kind::qoe);
  CHECK(read(with(good, "32}", "32, \"qoe\": {\"deadline\": 2}}")).effective_objective() == objective_kind::latency);
}

TEST_CASE("a bad job file ends in one message") {
  CHECK(message_of([] { return read(R"({"format": "hetplan/job/1", "batch": 1})"); }) ==
        "j.json: /mode: expected \"training\", \"inference\" or \"generation\", got nothing");
  CHECK(message_of([] { return read(R"({"format": "hetplan/job/1", "mode": "train", "batch": 1})"); }) ==
        "j.json: /mode: expected \"training\", \"inference\" or \"generation\", got \"train\"");
  CHECK(message_of([] { return read(R"({"format": "hetplan/job/1", "mode": "training"})"); }) ==
        "j.json: /batch: expected an integer >= 1, got nothing");
  CHECK(message_of([] { return read(with(good, "32", "0")); }) == "j.json: /batch: expected an integer >= 1, got 0");
  CHECK(message_of([] { return read(with(good, "32", "\"32\"")); }) == "j.json: /batch: expected an integer >= 1, got \"32\"");
  CHECK(message_of([] { return read(with(good, "32", "99999999999")); }) ==
        "j.json: /batch: expected an integer from 1 to 2147483647, got 99999999999");
  CHECK(error("\"microbatch_sizes\": [3, 5]") == "j.json: /microbatch_sizes: no microbatch size divides the batch 32");
  CHECK(error("\"microbatch_sizes\": []") == "j.json: /microbatch_sizes: expected at least one microbatch size, got an empty array");
  CHECK(error("\"microbatch_sizes\": [1, 0]") == "j.json: /microbatch_sizes/1: expected an integer >= 1, got 0");
  CHECK(error("\"optimizer_factor\": -1") == "j.json: /optimizer_factor: expected a number >= 0, got -1");
  CHECK(error("\"context\": -1") == "j.json: /context: expected an integer >= 0, got -1");
  CHECK(error("\"tokens\": 1") == "j.json: /tokens: expected an integer >= 2, got 1");
  CHECK(error("\"schedule\": \"explicit\"").starts_with("j.json: /schedule: expected one of 1f1b, gpipe, compact, "));
  CHECK(error("\"schedule\": [\"1f1b\", \"1f1b\"]") == "j.json: /schedule/1: expected each schedule once, got \"1f1b\"");
  CHECK(error("\"schedule\": [\"1f1b\", \"gpipe\"]") ==
        "j.json: /schedule/1: expected one of \"1f1b\" and \"gpipe\" at most, got \"gpipe\"");
  CHECK(error("\"objective\": \"speed\"") ==
        "j.json: /objective: expected \"latency\", \"throughput\", \"energy\" or \"qoe\", got \"speed\"");
  CHECK(error("\"objective\": \"qoe\"") == "j.json: /objective: expected qoe.latency with objective \"qoe\", got nothing");
  CHECK(error("\"qoe\": {\"latency\": 0}") == "j.json: /qoe/latency: expected seconds > 0, got 0");
  CHECK(error("\"qoe\": {\"lambda\": -1}") == "j.json: /qoe/lambda: expected watts (J/s) >= 0, got -1");
  CHECK(error("\"qoe\": {\"iterations\": 0}") == "j.json: /qoe/iterations: expected an integer >= 1, got 0");
  CHECK(error("\"qoe\": 3") == "j.json: /qoe: expected an object with latency, lambda, deadline, iterations, got 3");
  CHECK(error("\"qoe\": {\"latancy\": 1}") == "j.json: /qoe/latancy: expected a known key, got \"latancy\"; did you mean \"latency\"?");
  CHECK(error("\"seed\": 3").starts_with("j.json: /seed: expected a known key, got \"seed\"; known keys: format, mode"));
}

}  // namespace test_job_json
