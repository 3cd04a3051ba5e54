// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include <hetplan/partition/folded_dp.hpp>

#include "support/random_draft.hpp"

namespace test_folded_dp {

using namespace hetplan;
using namespace hetplan::partition;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

/// The folded step law as its documentation defines it, from layers and models alone.
class by_definition {
 public:
  by_definition(const test::draft_problem& x, const std::vector<int>& sizes)
      : x_(x), sizes_(sizes), training_(x.job.workload.mode == mode::training) {}

  /// Returns T; nothing if the draft does not fit.
  [[nodiscard]] std::optional<double> time_s(const std::vector<pipeline_draft::part>& stages) const {
    const std::size_t count = stages.size();
    if (!fits(stages)) return {};
    // Steps: stage, boundary, stage, boundary, ..., stage.
    std::vector<double> work, fill;
    std::vector<std::size_t> owner;  // device of a stage, or none of a boundary
    for (std::size_t i = 0; i < count; ++i) {
      if (i > 0) {
        const auto [own, once] = boundary(stages[i - 1].device, stages[i].device, stages[i].first);
        work.push_back(own);
        fill.push_back(once);
        owner.push_back(x_.devices.size());
      }
      double all = 0;
      for (const int b : sizes_) all += forward_s(stages, i, b) + backward_s(stages, i, b);
      work.push_back(all);
      fill.push_back(forward_s(stages, i, sizes_.front()) + backward_s(stages, i, sizes_.back()));
      owner.push_back(stages[i].device.index());
    }
    const std::size_t steps = work.size();
    const auto sum = [&](std::size_t from, std::size_t to) {
      return std::accumulate(fill.begin() + static_cast<std::ptrdiff_t>(from), fill.begin() + static_cast<std::ptrdiff_t>(to), 0.0);
    };
    double t = 0;
    if (x_.job.workload.mode == mode::generation) t = sum(0, steps);
    for (std::size_t i = 0; i < steps; ++i) {
      double alone = work[i], device = work[i];
      std::size_t last = i;
      for (std::size_t j = i + 1; j < steps; ++j) {
        if (owner[i] < x_.devices.size() && owner[j] == owner[i]) device += work[j], last = j;
      }
      const bool first = std::find(owner.begin(), owner.begin() + static_cast<std::ptrdiff_t>(i), owner[i]) ==
                             owner.begin() + static_cast<std::ptrdiff_t>(i) ||
                         owner[i] == x_.devices.size();
      if (x_.job.workload.mode != mode::generation) {
        alone += sum(0, i) + (training_ ? 0 : sum(i + 1, steps));
        device += sum(0, i) + (training_ ? 0 : sum(last + 1, steps));
      }
      t = std::max(t, alone);
      if (first) t = std::max(t, device);
    }
    return t + reduction(stages);
  }

 private:
  [[nodiscard]] std::size_t end(const std::vector<pipeline_draft::part>& stages, std::size_t i) const {
    return i + 1 < stages.size() ? stages[i + 1].first : x_.model.size();
  }
  [[nodiscard]] double phase_s(const std::vector<pipeline_draft::part>& stages, std::size_t i, int b, phase what) const {
    double s = 0;
    for (std::size_t l = stages[i].first; l < end(stages, i); ++l) {
      const layer& x = x_.model[layer_id(l)];
      s += roofline{}.time({.layer = x, .phase = what, .batch = static_cast<double>(b)}, x_.devices[stages[i].device]).value();
    }
    return s;
  }
  [[nodiscard]] double forward_s(const std::vector<pipeline_draft::part>& stages, std::size_t i, int b) const {
    return phase_s(stages, i, b, phase::forward);
  }
  [[nodiscard]] double backward_s(const std::vector<pipeline_draft::part>& stages, std::size_t i, int b) const {
    if (!training_) return 0;
    return phase_s(stages, i, b, phase::backward_input) + phase_s(stages, i, b, phase::backward_weight) +
           (stages[i].recompute ? forward_s(stages, i, b) : 0);
  }
  /// Returns the bytes per sample that cross into layers from `first` on, each tensor once, and the gradients that return.
  [[nodiscard]] std::pair<double, double> crossing(std::size_t first, std::size_t last) const {
    double forward = 0, gradient = 0;
    for (std::size_t from = 0; from < first; ++from) {
      double most = 0, most_back = 0;
      for (const layer_edge& e : x_.model.edges()) {
        if (e.from.index() != from || e.to.index() < first || e.to.index() >= last) continue;
        most = std::max(most, e.forward.value());
        most_back = std::max(most_back, e.gradient.value());
      }
      forward += most;
      gradient += most_back;
    }
    return {forward, gradient};
  }
  [[nodiscard]] std::pair<double, double> boundary(device_id a, device_id b, std::size_t first) const {
    const auto [forward, gradient] = crossing(first, x_.model.size());
    const bool back = training_ && gradient > 0;
    const auto passes = static_cast<double>(sizes_.size());
    const route &there = *x_.devices.network().find(a, b), &return_ = *x_.devices.network().find(b, a);
    const auto bytes_s = [&](double volume, device_id from, device_id to) {
      return volume / x_.devices.network().peak_bandwidth(from, to).value();
    };
    const double all = x_.job.batch;
    const double there_s = passes * there.latency.value() + bytes_s(all * forward, a, b);
    const double back_s = back ? passes * return_.latency.value() + bytes_s(all * gradient, b, a) : 0;
    const bool one_wire = std::ranges::any_of(there.via, [&](const resource_use& u) {
      return std::ranges::any_of(return_.via, [&](const resource_use& v) { return v.resource == u.resource; });
    });
    double once = there.latency.value() + bytes_s(sizes_.front() * forward, a, b);
    if (back) once += return_.latency.value() + bytes_s(sizes_.back() * gradient, b, a);
    return {one_wire ? there_s + back_s : std::max(there_s, back_s), once};
  }
  [[nodiscard]] bool fits(const std::vector<pipeline_draft::part>& stages) const {
    const int most = *std::ranges::max_element(sizes_);
    for (const device& d : x_.devices.devices()) {
      double held = 0, recomputed = 0;
      bool tied = false;
      for (std::size_t i = 0; i < stages.size(); ++i) {
        if (stages[i].device != d.id) continue;
        double activation = 0;
        bool tied_here = false;
        for (std::size_t l = stages[i].first; l < end(stages, i); ++l) {
          const layer& x = x_.model[layer_id(l)];
          activation += plain_memory{}.activations(x, x_.job.workload).value();
          if (x.weight_group >= 0 && tied_here) continue;
          tied_here = tied_here || x.weight_group >= 0;
          if (x.weight_group >= 0 && tied) continue;
          tied = tied || x.weight_group >= 0;
          held += plain_memory{}.state(x, x_.job.workload).value();
        }
        const double input = crossing(stages[i].first, end(stages, i)).first;
        held += most * (stages[i].recompute ? input : activation);
        if (stages[i].recompute) recomputed = std::max(recomputed, most * activation);
        if (x_.job.workload.mode == mode::generation) {
          for (std::size_t l = stages[i].first; l < end(stages, i); ++l)
            held += x_.job.batch * plain_memory{}.cache(x_.model[layer_id(l)], x_.job.workload).value();
        }
      }
      if (held + recomputed > d.memory.value() * (1 + 1e-9)) return false;
    }
    return true;
  }
  [[nodiscard]] double reduction(const std::vector<pipeline_draft::part>& stages) const {
    if (!training_) return 0;
    std::vector<device_id> holders;
    double weight = 0;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      for (std::size_t l = stages[i].first; l < end(stages, i); ++l) {
        if (x_.model[layer_id(l)].weight_group < 0) continue;
        weight = x_.model[layer_id(l)].weight.value();
        if (std::ranges::find(holders, stages[i].device) == holders.end()) holders.push_back(stages[i].device);
      }
    }
    std::ranges::sort(holders);
    return holders.size() < 2 || weight == 0 ? 0 : ring_reduction(x_.devices.network(), holders).time_s(weight);
  }

  const test::draft_problem& x_;
  const std::vector<int>& sizes_;
  bool training_;
};

/// Returns the least T over all cuts, devices with repetition, and choices of recomputation.
double least_of_all(const test::draft_problem& x, const std::vector<int>& sizes, int slots, bool recompute) {
  const by_definition law(x, sizes);
  double least = inf;
  std::vector<pipeline_draft::part> stages;
  const auto grow = [&](auto&& self) -> void {
    if (!stages.empty()) {
      if (const auto t = law.time_s(stages)) least = std::min(least, *t);
    }
    const std::size_t from = stages.empty() ? 0 : stages.back().first + 1;
    for (std::size_t first = from; first < (stages.empty() ? 1 : x.model.size()); ++first) {
      for (const device& d : x.devices.devices()) {
        if (!stages.empty() && stages.back().device == d.id) continue;
        if (std::ranges::count(stages, d.id, &pipeline_draft::part::device) >= slots) continue;
        for (const bool again : {false, true}) {
          if (again && !recompute) continue;
          stages.push_back({first, d.id, again});
          self(self);
          stages.pop_back();
        }
      }
    }
  };
  grow(grow);
  return least;
}

}  // namespace

TEST_CASE("the folded search is exact: all cuts, devices with repetition, unequal sizes and recomputation", "[unsanitized]") {
  int fitting = 0, folded = 0, recomputing = 0, tied = 0, uneven = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 1200; ++seed) {
    test::random_source random(seed);
    const bool large = seed % 60 == 0;  // eight layers on four devices, as many stages
    const test::draft_problem x = test::random_draft_problem(random, {.most_layers = large ? 8 : 5, .most_devices = large ? 4 : 3});
    const std::vector<int> sizes = test::random_sizes(random, x.job);
    const int slots = random.integer(1, 2);
    const bool recompute = !large && random.chance(0.5) && x.job.workload.mode == mode::training;
    CAPTURE(seed, slots, recompute);
    const planning_problem problem = x.problem();
    const layer_sequence row = sequence_of(x.model);
    const search_tables tables(x.model, row, x.devices, problem.cost, problem.models.memory, problem.models.energy, x.job.workload,
                               x.job.largest_share());
    const auto found = folded_dp(problem, tables, sizes, {.slots = slots, .recompute = recompute, .labels = 0});
    const double least = least_of_all(x, sizes, slots, recompute);
    REQUIRE(found.empty() == (least == inf));
    if (found.empty()) continue;
    CHECK(found.front().response_s == Approx(least).epsilon(1e-9).margin(1e-15));
    const by_definition law(x, sizes);
    for (const folded_draft& f : found) {
      const auto t = law.time_s(f.draft.stages);
      REQUIRE(t);
      CHECK(f.response_s == Approx(*t).epsilon(1e-9).margin(1e-15));
    }
    const auto& best = found.front().draft.stages;
    ++fitting;
    folded +=
        std::ranges::any_of(best, [&](const auto& s) { return std::ranges::count(best, s.device, &pipeline_draft::part::device) > 1; });
    recomputing += std::ranges::any_of(best, &pipeline_draft::part::recompute);
    tied += !x.model.weight_groups().empty();
    uneven += std::ranges::adjacent_find(sizes, std::not_equal_to<>()) != sizes.end();
    // Few labels give a draft of the same space.
    const auto quick = folded_dp(problem, tables, sizes, {.slots = slots, .recompute = recompute, .labels = 1});
    if (!quick.empty()) CHECK(quick.front().response_s >= least * (1 - 1e-9));
  }
  CAPTURE(fitting, folded, recomputing, tied, uneven);
  CHECK(fitting > 900);
  CHECK(folded > 80);
  CHECK(recomputing > 2);
  CHECK(tied > 200);
  CHECK(uneven > 250);
}

TEST_CASE("limits of the folded search are limits") {
  const auto six_layers_on_three = [] {
    for (test::random_source random(test::first_seed());;) {
      test::draft_problem x = test::random_draft_problem(random, {.most_layers = 8, .tight_memory = false});
      if (x.model.size() >= 6 && x.devices.size() >= 3) return x;
    }
  };
  const test::draft_problem x = six_layers_on_three();
  const planning_problem problem = x.problem();
  const layer_sequence row = sequence_of(x.model);
  const search_tables tables(x.model, row, x.devices, problem.cost, problem.models.memory, problem.models.energy, x.job.workload,
                             x.job.largest_share());
  const std::vector<int> sizes(static_cast<std::size_t>(x.job.batch), 1);
  for (const folded_draft& f : folded_dp(problem, tables, sizes, {.stages = 2, .labels = 0})) CHECK(f.draft.stages.size() <= 2);
  for (const folded_draft& f : folded_dp(problem, tables, sizes, {.labels = 0, .devices = {device_id(1)}})) {
    REQUIRE(f.draft.stages.size() == 1);
    CHECK(f.draft.stages.front().device == device_id(1));
  }
  for (const folded_draft& f : folded_dp(problem, tables, sizes, {.labels = 0, .boundaries = {3}}))
    CHECK((f.draft.stages.size() == 1 || (f.draft.stages.size() == 2 && f.draft.stages[1].first == 3)));
  CHECK(folded_dp(problem, tables, sizes, {.labels = 0, .drafts = 3}).size() == 3);
  CHECK(folded_dp(problem, tables, sizes, {.labels = 0, .most_extensions = 3}).size() <= 4);
  CHECK(folded_dp(problem, tables, {}, {}).empty());
}

}  // namespace test_folded_dp
