// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/plan/describe.hpp>
#include <hetplan/plan/expansion_size.hpp>
#include <hetplan/plan/plan_result.hpp>
#include "support.hpp"
#include "support/message_of.hpp"

namespace test_objectives_and_limits {

using namespace plan_tests;

namespace {

/// Returns an evaluation of 4 s: d0 busy 3 s with 10 J, d1 busy 1 s with 20 J, d2 unused.
evaluation two_used() { return {.latency = 4_s, .devices = {{true, 10_J, 600_MB, 3_s}, {true, 20_J, 400_MB, 1_s}, {}}}; }

cluster limited(const std::function<void(std::vector<device>&)>& change) {
  std::vector<device> all;
  for (const char* name : {"d0", "d1", "d2"}) all.push_back({.name = name, .memory = 3_GB});
  change(all);
  return {"c", all, shared_medium{1_MB_per_s}};
}
std::string broken(const evaluation& e, const std::function<void(std::vector<device>&)>& change) {
  const cluster c = limited(change);
  const auto b = find_broken_limit(e, c);
  return b ? to_string(*b, c) : "none";
}

std::string refusal(const std::function<void(job&)>& change) {
  job j;
  change(j);
  return test::message_of([&] { check_job(j); });
}

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("an evaluation adds up energy, takes the largest memory, and answers with its own response") {
  evaluation e = two_used();
  CHECK(e.energy() == 30_J);
  CHECK(e.peak_memory() == 600_MB);
  CHECK(e.response() == 4_s);
  e.time_between_tokens = 0.5_s;
  CHECK(e.response() == 0.5_s);
  CHECK(evaluation{}.energy() == 0_J);
}

TEST_CASE("times of generation have objectives and limits of their own") {
  evaluation e = two_used();  // T = 4 s, 30 J
  e.ttft = 1_s;
  e.time_between_tokens = 0.5_s;
  job j{.workload = {.mode = mode::generation, .tokens = 7}};
  const auto score_of = [&](auto change) {
    job wanted = j;
    change(wanted);
    check_job(wanted);
    return score(objective_of_job(wanted), e);
  };
  CHECK(score_of([](job&) {}) == 4);
  CHECK(score_of([](job& w) { w.objective = objective_kind::ttft; }) == 1);
  CHECK(score_of([](job& w) { w.objective = objective_kind::time_between_tokens; }) == 0.5);
  CHECK(score_of([](job& w) { w.qoe.ttft = 0.75_s; }) == 30 + 250);
  CHECK(score_of([](job& w) { w.qoe.time_between_tokens = 0.25_s, w.qoe.makespan = 3.5_s; }) == 30 + 250 + 500);
  CHECK(score_of([](job& w) { w.qoe.latency = 0.25_s; }) == 30 + 250);
  // Under any other objective plans that keep the limits come first; of those that do not, the one that is over by the least.
  const auto over = [&](seconds limit) { return score_of([&](job& w) { w.objective = objective_kind::throughput, w.qoe.ttft = limit; }); };
  CHECK(over(1_s) == 4.0 / 32);
  CHECK(over(0.9_s) > 1e20);
  CHECK(over(0.5_s) > over(0.9_s));
  // Outside generation all times are T.
  evaluation plain = two_used();
  CHECK(plain.times() == run_times(4_s));
  CHECK(score(minimize_ttft{}, plain) == 4);
  CHECK(score(keep_qoe{.ttft = 3_s}, plain) == 1030);
  CHECK(refusal([](job& w) { w.objective = objective_kind::ttft; }) == "job: objective ttft: expected mode generation, got mode training");
  CHECK(refusal([](job& w) { w.qoe.ttft = 1_s; }) == "job: qoe.ttft: expected mode generation, got mode training");
  CHECK(refusal([](job& w) { w.workload.mode = mode::generation, w.workload.tokens = 1, w.qoe.time_between_tokens = 1_s; }) ==
        "job: qoe.time_between_tokens: expected mode generation and tokens > 1, got tokens = 1");
  CHECK(refusal([](job& w) { w.qoe.makespan = seconds(-1); }) == "job: qoe.makespan = -1; expected seconds > 0");
}

TEST_CASE("objectives score latency, seconds per sample, energy, and energy with a price for lateness") {
  evaluation e = two_used();
  CHECK(score(minimize_latency{}, e) == 4);
  CHECK(score(maximize_throughput{8}, e) == 0.5);
  CHECK(score(minimize_energy{}, e) == 30);
  CHECK(score(keep_qoe{5_s, 100}, e) == 30);  // earlier than the deadline earns nothing
  CHECK(score(keep_qoe{4_s, 100}, e) == 30);
  CHECK(score(keep_qoe{1_s, 100}, e) == 330);
}

TEST_CASE("in generation latency and throughput score the last end, qoe and response the time between tokens") {
  evaluation e = two_used();
  e.time_between_tokens = 2_s;
  CHECK(score(minimize_latency{}, e) == 4);
  CHECK(score(maximize_throughput{8}, e) == 0.5);
  CHECK(score(minimize_response{}, e) == 2);
  CHECK(score(keep_qoe{1_s, 100}, e) == 130);
  CHECK(score(objective_of_job({.objective = objective_kind::latency}), e) == 4);
  CHECK(score(objective_of_job({.batch = 8, .objective = objective_kind::throughput}), e) == 0.5);
  CHECK(score(objective_of_job({.qoe = {.latency = 1_s, .lambda_J_per_s = 100}}), e) == 130);
}

TEST_CASE("a job's objective is what it names, else qoe where it has a latency to keep, else latency") {
  const evaluation e = two_used();
  CHECK(score(objective_of_job({}), e) == 4);
  CHECK(score(objective_of_job({.qoe = {.latency = 3_s}}), e) == 1030);
  CHECK(score(objective_of_job({.qoe = {.latency = 3_s, .lambda_J_per_s = 7}}), e) == 37);
  CHECK(score(objective_of_job({.objective = objective_kind::energy, .qoe = {.latency = 3_s}}), e) == 30);
  CHECK(score(objective_of_job({.batch = 16, .objective = objective_kind::throughput}), e) == 0.25);
  CHECK(score(objective_of_job({.objective = objective_kind::latency, .qoe = {.latency = 3_s}}), e) == 4);
  CHECK_THROWS_MATCHES(objective_of_job({.objective = objective_kind::qoe}), invalid_input,
                       Catch::Message("objective_of_job: objective qoe needs a time in qoe"));
  CHECK(to_string(job{}.effective_objective()) == "latency");
  CHECK(to_string(job{.qoe = {.latency = 3_s}}.effective_objective()) == "qoe");
  CHECK(to_string(objective_kind::throughput) == "throughput");
  CHECK(to_string(objective_kind::energy) == "energy");
}

TEST_CASE("a job tries the sizes that divide its batch, ascending; if it names none, up to the batch") {
  CHECK(job{.batch = 32}.candidate_microbatch_sizes() == std::vector<int>{1, 2, 4, 8, 16, 32});
  CHECK(job{.batch = 96}.candidate_microbatch_sizes() == std::vector<int>{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 96});
  CHECK(job{.batch = 250}.candidate_microbatch_sizes() == std::vector<int>{1, 2, 5, 10, 125, 250});
  CHECK(job{.batch = 1009}.candidate_microbatch_sizes() == std::vector<int>{1, 1009});
  CHECK(job{.batch = 17}.candidate_microbatch_sizes() == std::vector<int>{1, 17});
  for (const mode how : {mode::training, mode::inference, mode::generation}) {
    const job large{.workload = {.mode = how}, .batch = 4096};
    CHECK(large.candidate_microbatch_sizes() == std::vector<int>{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096});
  }
  CHECK(job{.batch = 12}.candidate_microbatch_sizes() == std::vector<int>{1, 2, 3, 4, 6, 12});
  CHECK(job{.batch = 12, .microbatch_sizes = {6, 5, 3, 6, 24}}.candidate_microbatch_sizes() == std::vector<int>{3, 6});
  CHECK_THROWS_MATCHES((job{.batch = 12, .microbatch_sizes = {5}}.candidate_microbatch_sizes()), invalid_input,
                       Catch::Message("job: no microbatch size divides the batch 12"));
}

TEST_CASE("microbatches too small to be simulated are skipped, and a batch that leaves none is named") {
  const int batch = 32'000'000;  // microbatches of 16 samples make 4e6 tasks in training
  const auto sizes = job{.batch = batch, .microbatch_sizes = {1, 16, 1000}}.candidate_microbatch_sizes();
  CHECK(std::find(sizes.begin(), sizes.end(), 1) == sizes.end());
  CHECK(std::find(sizes.begin(), sizes.end(), 1000) != sizes.end());
  CHECK(refusal([](job& j) {
          j.batch = 1'000'000'000, j.microbatch_sizes = {2, 16};
        }) == "job: batch = 1000000000 in microbatches of at most 16 makes 1.25e+08 tasks or more; expected at most " +
                  to_text(max_expansion) + ": a smaller batch, or larger microbatch_sizes");
  CHECK(refusal([](job& j) { j.batch = 1'000'000'000, j.microbatch_sizes = {1'000'000}; }) == "no error");
}

TEST_CASE("a job's fields are checked one by one") {
  CHECK(refusal([](job&) {}) == "no error");
  CHECK(refusal([](job& j) { j.batch = 0; }) == "job: batch = 0; expected an integer >= 1");
  CHECK(refusal([](job& j) { j.microbatch_sizes = {4, 0}; }) == "job: microbatch_sizes = 0; expected integers >= 1");
  CHECK(refusal([](job& j) { j.microbatch_sizes = {5}; }) == "job: no microbatch size divides the batch 32");
  CHECK(refusal([](job& j) { j.workload.optimizer_factor = not_a_number; }) ==
        "job: optimizer_factor = nan; expected a finite number >= 0");
  CHECK(refusal([](job& j) { j.workload.context = -1; }) == "job: context = -1; expected an integer >= 0");
  CHECK(refusal([](job& j) { j.workload.tokens = 0; }) == "job: tokens = 0; expected an integer >= 1");
  CHECK(refusal([](job& j) { j.qoe.lambda_J_per_s = -1; }) == "job: qoe.lambda = -1; expected a finite number >= 0");
  CHECK(refusal([](job& j) { j.qoe.latency = 0_s; }) == "job: qoe.latency = 0; expected seconds > 0");
  CHECK(refusal([](job& j) { j.qoe.latency = seconds(not_a_number); }) == "job: qoe.latency = nan; expected seconds > 0");
  CHECK(refusal([](job& j) { j.qoe.deadline = seconds(-1); }) == "job: qoe.deadline = -1; expected seconds > 0");
  CHECK(refusal([](job& j) { j.qoe.iterations = 0; }) == "job: qoe.iterations = 0; expected an integer >= 1");
  CHECK(refusal([](job& j) { j.objective = objective_kind::qoe; }) ==
        "job: objective qoe needs one of qoe.latency, qoe.makespan, qoe.ttft, qoe.time_between_tokens");
}

TEST_CASE("a plan within all limits breaks none, a hair of rounding included") {
  CHECK(broken(two_used(), [](auto&) {}) == "none");
  CHECK(broken(two_used(), [](auto& d) {
          d[0].memory_budget = 600_MB;
          d[0].energy_budget = 10_J;
          d[0].max_busy = 0.75;
        }) == "none");
  CHECK(broken(two_used(), [](auto& d) { d[0].energy_budget = joules(10 * (1 - 0.9e-9)); }) == "none");
  CHECK(broken(two_used(), [](auto& d) { d[0].energy_budget = joules(10 * (1 - 1e-8)); }) != "none");
}

TEST_CASE("a broken limit says which, where, how much is needed, allowed and too much") {
  CHECK(broken(two_used(), [](auto& d) { d[1].memory_budget = 250_MB; }) == "memory: d1 needs 400 MB and may use 250 MB: 150 MB too much");
  CHECK(broken(two_used(), [](auto& d) { d[0].energy_budget = 7.5_J; }) == "energy: d0 needs 10 J and may use 7.5 J: 2.5 J too much");
  CHECK(broken(two_used(), [](auto& d) { d[0].max_busy = 0.5; }) == "busy share: d0 needs 75 % and may use 50 %: 25 % too much");
  evaluation big = two_used();
  big.devices[0].peak_memory = 13.9_GB;
  CHECK(broken(big, [](auto& d) { d[0].memory = 8_GB; }) == "memory: d0 needs 13.9 GB and may use 8 GB: 5.9 GB too much");
}

TEST_CASE("the limit with the largest relative overflow binds; memory, energy, busy share and the smaller device on a tie") {
  CHECK(broken(two_used(), [](auto& d) {
          d[0].memory_budget = 500_MB;  // 20 % over
          d[0].max_busy = 0.5;          // 50 % over
          d[1].energy_budget = 15_J;    // 33 % over
        }).starts_with("busy share: d0"));
  CHECK(broken(two_used(), [](auto& d) {
          d[0].max_busy = 0.375;  // each limit below is half of the need
          d[1].energy_budget = 10_J;
          d[1].memory_budget = 200_MB;
        }).starts_with("memory: d1"));
  CHECK(broken(two_used(), [](auto& d) {
          d[1].energy_budget = 10_J;
          d[0].max_busy = 0.375;
        }).starts_with("energy: d1"));
  CHECK(broken(two_used(), [](auto& d) {
          d[1].memory_budget = 200_MB;
          d[0].memory_budget = 300_MB;
        }).starts_with("memory: d0"));
  CHECK(broken(two_used(),
               [](auto& d) {  // a budget of zero counts as infinitely over
                 d[1].energy_budget = 0_J;
                 d[0].memory_budget = 1_MB;
               })
            .starts_with("energy: d1"));
}

TEST_CASE("a device that the plan leaves alone breaks nothing, and a run of no time is never busy") {
  evaluation e = two_used();
  e.devices[0].used = false;
  CHECK(broken(e, [](auto& d) { d[0].memory_budget = 1_MB; }) == "none");
  CHECK(broken({.latency = 0_s, .devices = {{.used = true}, {}, {}}}, [](auto& d) { d[0].max_busy = 0.1; }) == "none");
}

TEST_CASE("memory is kept up to rounding, by the devices that are used") {
  const auto kept = [](const evaluation& e, bytes budget) {
    return within_memory(e, limited([&](auto& d) { d[0].memory_budget = budget; }));
  };
  evaluation e = two_used();
  CHECK(kept(e, 600_MB));
  CHECK(kept(e, 600_MB * (1 - 0.9e-9)));
  CHECK_FALSE(kept(e, 600_MB * (1 - 1e-8)));
  e.devices[0].used = false;
  CHECK(kept(e, 1_MB));
}

TEST_CASE("amounts read with the unit that fits") {
  CHECK(readable(1.934_s) == "1.934 s");
  CHECK(readable(0_s) == "0 s");
  CHECK(readable(214_ms) == "214 ms");
  CHECK(readable(40_us) == "40 us");
  CHECK(readable(4.1_GB) == "4.1 GB");
  CHECK(readable(12_MB) == "12 MB");
  CHECK(readable(12_kB) == "12 kB");
  CHECK(readable(88.1_J) == "88.1 J");
  CHECK(readable(20000_J) == "20 kJ");
}

TEST_CASE("a description has a line per stage, and per used device once the plan was judged") {
  plan p = stage_per_device({{0}, {1, 2}}, 2, 4);
  p.stages[0].devices = {{device_id(0), 1}, {device_id(2), 1}};
  const std::string before = describe(p, chain(3), devices(3));
  CHECK(before.find("chain on cluster, given: training, 4 microbatches of 2\n") == 0);
  CHECK(before.find("s0        1 layers  a .. a  on d0 (1) d2 (1)\n") != std::string::npos);
  CHECK(before.find("s1        2 layers  b .. c  on d1\n") != std::string::npos);
  CHECK(before.find("latency") == std::string::npos);
  ranked_plan judged{p, two_used()};
  const std::string after = describe(judged, chain(3), devices(3));
  CHECK(after.find("d0           busy  75.0 %   memory    600 MB of      1 GB   energy      10 J\n") != std::string::npos);
  CHECK(after.find("d1           busy  25.0 %") != std::string::npos);
  CHECK(after.find("d2           busy") == std::string::npos);
  CHECK(after.find("latency 4 s, energy 30 J") != std::string::npos);
  CHECK(after.find("slower than the best plan") == std::string::npos);  // no claim without a bound
  judged.evaluation.bound = 2_s;
  judged.evaluation.gap = 1;
  CHECK(describe(judged, chain(3), devices(3)).find("at most 100 % slower than the best plan") != std::string::npos);
  for (const double rounding : {2.22e-16, -2.22e-16, 0.0}) {
    judged.evaluation.gap = judged.evaluation.schedule_gap = rounding;
    const std::string text = describe(judged, chain(3), devices(3));
    CHECK(text.find("at most 0 % slower than the best plan, 0 % slower than this plan's own bound\n") != std::string::npos);
  }
}

}  // namespace test_objectives_and_limits
