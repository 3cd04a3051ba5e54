// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include <hetplan/search/draft_search.hpp>
#include <hetplan/search/ranking.hpp>

#include "support/random_draft.hpp"

namespace test_draft_search {

using namespace hetplan;
using partition::pipeline_draft;

namespace {

/// Calls use(draft) for every draft: cuts, devices with repetition, recomputation where allowed, sizes, rules and network policies.
template <class Use>
void every_draft(const planning_problem& problem, std::size_t blocks, int slots, const Use& use) {
  const job& j = problem.job;
  const bool training = j.workload.mode == mode::training;
  std::vector<std::vector<int>> all_sizes;
  if (j.workload.mode == mode::generation) {
    for (const int size : j.candidate_microbatch_sizes()) all_sizes.emplace_back(static_cast<std::size_t>(j.batch / size), size);
  } else {
    std::vector<int> sizes;
    const auto part = [&](auto&& self, int left) -> void {
      if (left == 0) all_sizes.push_back(sizes);
      for (int size = 1; size <= std::min(left, j.largest_share()); ++size) {
        sizes.push_back(size);
        self(self, left - size);
        sizes.pop_back();
      }
    };
    part(part, j.batch);
  }
  pipeline_draft d;
  d.rules.assign(problem.cluster.size(), partition::ready_rule::path);
  const auto rules = [&](auto&& self, std::size_t device) -> void {
    if (device == d.rules.size()) {
      for (const sharing policy : {sharing::fair_share, sharing::exclusive, sharing::per_link}) {
        d.policy = policy;
        use(d);
      }
      return;
    }
    const bool works = std::ranges::count(d.stages, device_id(device), &pipeline_draft::part::device) > 0;
    for (const partition::ready_rule rule : partition::ready_rules) {
      if (!works && rule != partition::ready_rule::path) continue;
      d.rules[device] = rule;
      self(self, device + 1);
      d.rules[device] = partition::ready_rule::path;
    }
  };
  const auto grow = [&](auto&& self) -> void {
    if (!d.stages.empty()) {
      for (const auto& sizes : all_sizes) {
        d.sizes = sizes;
        rules(rules, 0);
      }
    }
    const std::size_t from = d.stages.empty() ? 0 : d.stages.back().first + 1, until = d.stages.empty() ? 1 : blocks;
    for (std::size_t first = from; first < until; ++first) {
      for (const device& x : problem.cluster.devices()) {
        if (!d.stages.empty() && d.stages.back().device == x.id) continue;
        if (training && std::ranges::count(d.stages, x.id, &pipeline_draft::part::device) >= slots) continue;
        for (const bool recompute : {false, true}) {
          if (recompute && !(training && j.memory_savers.recompute)) continue;
          d.stages.push_back({first, x.id, recompute});
          self(self);
          d.stages.pop_back();
        }
      }
    }
  };
  grow(grow);
}

struct best_drafts {
  int found = 0, folded = 0, unequal = 0, recomputing = 0;
};

/// Compares search_drafts with all drafts of so many small problems.
best_drafts compare(std::uint64_t seeds) {
  best_drafts n;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + seeds; ++seed) {
    test::random_source random(seed);
    test::draft_problem x =
        test::random_draft_problem(random, {.most_layers = seed % 4 == 0 ? 4 : 3, .most_devices = seed % 4 == 0 ? 3 : 2});
    x.job.batch = random.integer(1, seed % 4 == 0 ? 3 : 4);
    if (x.job.workload.mode == mode::training) x.job.memory_savers.recompute = random.chance(0.5);
    const planning_problem problem = x.problem();
    const layer_sequence row = light_blocks(problem.model, 200);
    const partition::search_tables tables(problem.model, row, problem.cluster, problem.cost, problem.models.memory, problem.models.energy,
                                          problem.job.workload, problem.job.largest_share());
    INFO("seed " << seed << ", " << to_string(x.job.workload.mode) << ", batch " << x.job.batch << ", " << row.size() << " blocks, "
                 << x.devices.size() << " devices");
    partition::draft_replay replay(problem, tables);
    double least = std::numeric_limits<double>::infinity();
    every_draft(problem, row.size(), 2, [&](const pipeline_draft& d) {
      const partition::draft_estimate e = replay(d);
      if (e.too_much <= 0) least = std::min(least, e.times.makespan.value());
    });
    step_budget budget(1'000'000);
    const auto found = search_drafts(problem, minimize_latency{}, tables, {}, budget, 20'000);
    REQUIRE(found.empty() == (least == std::numeric_limits<double>::infinity()));
    if (found.empty()) continue;
    ++n.found;
    const pipeline_draft& best = found.front();
    const partition::draft_estimate e = replay(best);
    REQUIRE(e.too_much <= 0);
    REQUIRE(e.times.makespan.value() == Approx(least).epsilon(1e-9));
    n.folded += std::ranges::any_of(
        best.stages, [&](const auto& s) { return std::ranges::count(best.stages, s.device, &pipeline_draft::part::device) > 1; });
    n.unequal += std::ranges::adjacent_find(best.sizes, std::not_equal_to<>()) != best.sizes.end();
    n.recomputing += std::ranges::any_of(best.stages, &pipeline_draft::part::recompute);
  }
  return n;
}

}  // namespace

TEST_CASE("search_drafts finds the best of all drafts of small problems") {
  const best_drafts n = compare(200);
  CHECK(n.found > 140);
  CHECK(n.folded > 3);
  CHECK(n.unequal > 3);
  CHECK(n.recomputing > 1);
}

TEST_CASE("search_drafts finds the best of all drafts of many small problems", "[long]") { CHECK(compare(1000).found > 700); }

}  // namespace test_draft_search
