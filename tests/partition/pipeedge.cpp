// SPDX-License-Identifier: BSL-1.0
// PipeEdge's problem through the public interface, against exact optima of an independent recurrence.

#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/coarsen/decomposition.hpp>
#include <hetplan/estimate/estimate.hpp>
#include <hetplan/exchange/pipeedge_yaml.hpp>
#include <hetplan/partition/two_substate_dp.hpp>

#include "support/shared_data.hpp"

using namespace hetplan;

namespace {

constexpr int batch = 8;

/// User-defined cost model: PipeEdge's measured table. A stage processes the whole batch.
struct board_times {
  std::map<std::string, std::vector<double>> batch_s;  ///< [device type][layer]

  [[nodiscard]] seconds time(const work& w, const device& d) const {
    if (w.phase != phase::forward) return 0_s;
    return seconds(batch_s.at(d.kind)[w.layer.id.index()] * w.batch / batch);
  }
};
static_assert(check_cost_model<board_times>());

board_times times_of(const std::string& model, const std::vector<exchange::pipeedge_device_type>& types) {
  board_times t;
  for (const exchange::pipeedge_device_type& type : types) {
    for (const exchange::pipeedge_profile& p : type.profiles) {
      if (p.model == model && p.batch == batch) t.batch_s[type.name] = p.time_s;
    }
  }
  return t;
}

/// Returns a blank inference plan of one microbatch, the whole batch: the slowest step of the pipeline decides.
plan one_batch_at_a_time() {
  plan p;
  p.workload.mode = mode::inference;
  p.microbatch_size = batch;
  p.microbatches = 1;
  return p;
}

struct inputs {
  std::vector<exchange::pipeedge_model> models;
  std::vector<exchange::pipeedge_device_type> types;
};

planning_graph chain_of(const inputs& in, const std::string& model) {
  const auto it = std::find_if(in.models.begin(), in.models.end(), [&](const exchange::pipeedge_model& m) { return m.name == model; });
  REQUIRE(it != in.models.end());
  return exchange::pipeedge_graph(*it, in.types);
}

/// Returns the least bottleneck step, independently of the search: tries every next stage for all counts of boards left. A stage's step is
/// its work and the transfer of its output, the larger of the two or, with `add_transfers`, their sum.
double exact_s(const planning_graph& model, const board_times& cost, int boards, bool add_transfers) {
  const std::size_t layers = model.size();
  std::vector<const std::vector<double>*> types;
  for (const auto& [name, times] : cost.batch_s) types.push_back(&times);
  REQUIRE(types.size() == 2);
  const auto left = static_cast<std::size_t>(boards + 1);
  std::vector<double> best(layers * left * left, -1);
  const std::function<double(std::size_t, std::size_t, std::size_t)> from = [&](std::size_t first, std::size_t a, std::size_t b) -> double {
    if (first == layers) return 0;
    double& known = best[(first * left + a) * left + b];
    if (known >= 0) return known;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t type = 0; type < 2; ++type) {
      if ((type == 0 ? a : b) == 0) continue;
      double work_s = 0;
      for (std::size_t last = first; last < layers; ++last) {
        work_s += (*types[type])[last];
        const double transfer_s = last + 1 < layers ? model.edges()[last].forward.value() * batch / 125e6 : 0;
        const double step_s = add_transfers ? work_s + transfer_s : std::max(work_s, transfer_s);
        least = std::min(least, std::max(step_s, from(last + 1, a - (type == 0 ? 1 : 0), b - (type == 1 ? 1 : 0))));
      }
    }
    return known = least;
  };
  return from(0, left - 1, left - 1);
}

}  // namespace

TEST_CASE("PipeEdge's boards: the search over counts per device type reaches the exact optimum of every row") {
  const auto there = test::shared_data("data/pipeedge");
  if (!there) return;
  const std::filesystem::path& folder = *there;
  const inputs in{exchange::read_pipeedge_models((folder / "models.yml").string()),
                  exchange::read_pipeedge_device_types((folder / "device_types.yml").string())};
  // ../shared/reference/planners.md, "PipeEdge boards": `boards` boards of each of the two types. `optimum_s` takes the larger of work and
  // transfer as a step, `added_s` their sum. `theirs_s` exceeds the optimum for several boards because PipeEdge's scheduler looks up a
  // type's times by the type's number among the boards: it uses those of the first type for both.
  struct row {
    std::string size;  ///< size of the vision transformer
    int boards;
    double optimum_s, theirs_s, added_s;
  };
  const std::vector<row> rows{{"base", 1, 5.8440, 5.8440, 5.9297},  {"base", 4, 1.5488, 1.7262, 1.6262},
                              {"base", 8, 0.8008, 0.9943, 0.8754},  {"large", 1, 19.9085, 19.9085, 20.0118},
                              {"large", 4, 5.0428, 5.7033, 5.1461}, {"large", 8, 2.5732, 2.9962, 2.6765}};
  for (const row& r : rows) {
    INFO(r.size << ", " << r.boards << " + " << r.boards << " boards");
    const planning_graph model = chain_of(in, "google/vit-" + r.size + "-patch16-224");
    const std::vector<exchange::pipeedge_count> counts{{"Minnowboard-E3845", r.boards}, {"RCC-VE-C2000", r.boards}};
    const cluster boards = exchange::pipeedge_cluster("boards", in.types, counts);
    const board_times cost = times_of(model.name(), in.types);
    const layer_sequence sequence = decompose::serial(model);
    const plan blank = one_batch_at_a_time();
    const partition::search_tables tables(model, sequence, boards, cost, plain_memory{}, linear_power{}, blank.workload, batch);
    REQUIRE(tables.classes.size() == 2);
    const partition::search_options options{.plans = 1, .law = largest_step{}};
    const partition::search_result found = partition::two_substate_dp(tables, partition::every_order(tables.classes, 1), blank,
                                                                      minimize_latency{}, partition::dominance{}, options);
    REQUIRE(found.plans.size() == 1);
    const plan& best = found.plans.front().plan;
    CHECK(found.plans.front().score == Approx(r.optimum_s).margin(0.00005).epsilon(0));
    CHECK(found.plans.front().score <= r.theirs_s + 0.00005);
    CHECK(found.plans.front().score == Approx(exact_s(model, cost, r.boards, false)).epsilon(1e-12));
    CHECK(exact_s(model, cost, r.boards, true) == Approx(r.added_s).margin(0.00005).epsilon(0));
    // The plan uses single boards, each at most once, and its score is its largest step by the table.
    double largest_s = 0;
    std::vector<int> used(boards.size(), 0);
    for (const stage& s : best.stages) {
      REQUIRE(s.devices.size() == 1);
      ++used[s.devices.front().device.index()];
      double stage_s = 0;
      for (const layer_id l : s.layers) stage_s += cost.batch_s.at(boards[s.devices.front().device].kind)[l.index()];
      largest_s = std::max(largest_s, stage_s);
      if (&s == &best.stages.back()) continue;
      largest_s = std::max(largest_s, model.edges()[s.layers.back().index()].forward.value() * batch / 125e6);
    }
    CHECK(*std::max_element(used.begin(), used.end()) == 1);
    CHECK(largest_s == Approx(found.plans.front().score).epsilon(1e-9));
  }
}
