// SPDX-License-Identifier: BSL-1.0
// The preemptive one-machine bound against enumeration of all sets of jobs.

#include <hetplan/solve/preemptive_machine.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include <catch2/catch.hpp>

#include "support/by_hand.hpp"
#include "support/random_source.hpp"

namespace test_preemptive_machine {

using namespace hetplan;
using namespace hetplan::test;

double bound_of(std::vector<machine_job> jobs) { return preemptive_machine_bound(jobs); }

/// Returns the maximum over all sets of jobs of least head + total work + least tail.
double by_all_sets(const std::vector<machine_job>& jobs) {
  double most = 0;
  for (std::size_t set = 1; set < (std::size_t{1} << jobs.size()); ++set) {
    double head = std::numeric_limits<double>::infinity(), work = 0, tail = head;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if ((set >> i & 1) == 0) continue;
      head = std::min(head, jobs[i].head_s);
      work += jobs[i].work_s;
      tail = std::min(tail, jobs[i].tail_s);
    }
    most = std::max(most, head + work + tail);
  }
  return most;
}

TEST_CASE("one machine's bound by hand: a long tail that comes late interrupts") {
  CHECK(bound_of({}) == 0);
  CHECK(bound_of({{1, 2, 3}}) == near(6));
  // First job 0-1, second 1-2 (with its tail of 5: 7), rest of the first 2-5. Without preemption: 4 + 1 + 5 = 10.
  CHECK(bound_of({{0, 4, 0}, {1, 1, 5}}) == near(7));
  // The set of both jobs: 0 + 5 + 2 = 7. Each job alone: 6.
  CHECK(bound_of({{0, 4, 2}, {0, 1, 5}}) == near(7));
  // The machine idles between the jobs: the later one alone determines the bound.
  CHECK(bound_of({{0, 1, 0}, {10, 1, 1}}) == near(12));
}

TEST_CASE("one machine's bound is that of the worst set of its jobs") {
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 500; ++seed) {
    INFO("seed " << seed);
    random_source random(seed * 7919);
    const bool whole_numbers = random.chance(0.4);  // ties
    const auto draw = [&](double most) {
      return whole_numbers ? random.integer(0, static_cast<int>(most)) : random.chance(0.1) ? 0 : random.between(0, most);
    };
    std::vector<machine_job> jobs;
    for (int n = random.integer(1, 10); n > 0; --n) jobs.push_back({draw(10), draw(4), draw(10)});
    const double by_sets = by_all_sets(jobs);
    REQUIRE(bound_of(jobs) == Approx(by_sets).epsilon(1e-12));
    random.shuffle(jobs);
    REQUIRE(bound_of(jobs) == Approx(by_sets).epsilon(1e-12));
  }
}

}  // namespace test_preemptive_machine
