// SPDX-License-Identifier: BSL-1.0
#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/tasks/expand.hpp>

#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "support/by_hand.hpp"
#include "support/random_instance.hpp"

using namespace hetplan;
using namespace hetplan::test;

namespace {

struct counting_cost {
  long long* asked;
  [[nodiscard]] seconds time(const work& w, const device& d) const {
    ++*asked;
    return roofline{}.time(w, d);
  }
};

/// Returns the microbatch of a stage's sample and the position of its device.
std::pair<long long, std::size_t> owner(const stage& s, int size, long long sample) {
  long long left = sample % size;
  std::size_t i = 0;
  while (left >= s.devices[i].samples) left -= s.devices[i++].samples;
  return {sample / size, i};
}

/// Samples shared by each (producer, consumer), counted sample by sample, without pairs on one device.
using exchange = std::map<std::tuple<int, int, long long, device_id, long long, device_id>, int>;
void add_exchange(exchange& all, const plan& p, stage_id from, stage_id to) {
  const stage &a = p[from], &b = p[to];
  for (long long x = 0; x < p.pipeline_samples(a.pipeline); ++x) {
    const auto [m, i] = owner(a, p.size_of(a), x);
    const auto [n, j] = owner(b, p.size_of(b), x);
    if (a.devices[i].device == b.devices[j].device) continue;
    ++all[{from.value, to.value, m, a.devices[i].device, n, b.devices[j].device}];
  }
}

double sum_of(const exchange& e, int from, int to) {
  double n = 0;
  for (const auto& [key, samples] : e) {
    if (std::get<0>(key) == from && std::get<1>(key) == to) n += samples;
  }
  return n;
}

}  // namespace

TEST_CASE("an expansion has the tasks and transfers that the plan's samples ask for") {
  for_random_instances(60, [](const instance& i) {
    instance x = i;
    x.plan.schedule.transfers.clear();  // chunks are tested elsewhere
    const plan& p = x.plan;
    const planning_graph model = x.model();
    const tasks::task_graph g = tasks::expand(p, model, x.cluster(), roofline{});
    const stage_graph stages = make_stage_graph(p, model);
    const bool training = p.workload.mode == mode::training;
    const int steps = p.workload.mode == mode::generation ? p.workload.tokens : 1;

    std::size_t computes = 0;
    for (std::size_t s = 0; s < p.stages.size(); ++s) {
      for (const assignment& a : p.stages[s].devices) {
        std::size_t phases = training ? 2 : 1;
        if (p.schedule.kind == schedule_kind::explicit_orders) {
          const auto& order = p.schedule.orders[a.device.index()];
          phases += std::any_of(order.begin(), order.end(),
                                [&](const order_entry& e) { return e.stage.index() == s && e.what == phase::backward_weight; });
        }
        computes += phases * static_cast<std::size_t>(stages.nodes[s].microbatches) * static_cast<std::size_t>(steps);
      }
    }
    CHECK(g.computes.size() == computes);

    exchange forward, backward, token;
    for (const stage_edge& e : stages.edges) {
      add_exchange(forward, p, e.from, e.to);
      if (training && e.backward_cut.value() > 0) add_exchange(backward, p, e.to, e.from);
    }
    for (std::size_t t = 0; t < p.stages.size(); ++t) {
      for (std::size_t s = 0; s < p.stages.size(); ++s) {
        if (stages.nodes[t].out.empty() && stages.nodes[s].in.empty() && p.stages[s].pipeline == p.stages[t].pipeline) {
          add_exchange(token, p, stage_id(t), stage_id(s));
        }
      }
    }
    std::map<transfer_kind, std::size_t> count;
    std::map<transfer_kind, double> volume;
    for (const tasks::transfer& t : g.transfers) {
      ++count[t.kind];
      volume[t.kind] += t.volume_bytes;
    }
    CHECK(count[transfer_kind::forward] == forward.size() * static_cast<std::size_t>(steps));
    CHECK(count[transfer_kind::backward] == backward.size());
    CHECK(count[transfer_kind::token] == (steps > 1 ? token.size() * static_cast<std::size_t>(steps - 1) : 0));
    double expected_forward = 0, expected_backward = 0;
    for (const stage_edge& e : stages.edges) {
      expected_forward += e.forward_cut.value() * sum_of(forward, e.from.value, e.to.value) * steps;
      expected_backward += e.backward_cut.value() * sum_of(backward, e.to.value, e.from.value);
    }
    CHECK(volume[transfer_kind::forward] == Approx(expected_forward).epsilon(1e-9));
    CHECK(volume[transfer_kind::backward] == Approx(expected_backward).epsilon(1e-9));

    // Rings: one per stage with several devices and trainable weights, and one per set of stages that share tensors.
    std::size_t rings = 0;
    double reduced = 0;  // a ring of n carries 2 (n - 1) times its bytes, a server's pair of transfers twice
    struct tensor_of {
      double bytes;
      std::vector<std::size_t> stages;
    };
    std::map<std::pair<bool, int>, tensor_of> holders;
    for (std::size_t s = 0; training && s < p.stages.size(); ++s) {
      double own = 0;
      std::set<int> groups;
      for (const layer_id l : p.stages[s].layers) {
        const double bytes = model[l].trainable_weight().value();
        const int group = model[l].weight_group;
        if (bytes <= 0 || (group >= 0 && !groups.insert(group).second)) continue;
        own += bytes;
        tensor_of& t = holders[{group >= 0, group >= 0 ? group : l.value}];
        t.bytes = bytes;
        t.stages.push_back(s);
      }
      const std::size_t n = p.stages[s].devices.size();
      if (own <= 0 || n < 2) continue;
      rings += n;
      reduced += 2 * static_cast<double>(n - 1) * own;
    }
    std::map<std::vector<std::size_t>, double> sets;
    for (const auto& [_, t] : holders) {
      if (t.stages.size() > 1) sets[t.stages] += t.bytes;
    }
    for (const auto& [set, bytes] : sets) {
      std::set<device_id> firsts;
      for (const std::size_t s : set) firsts.insert(p.stages[s].devices.front().device);
      if (firsts.size() < 2) continue;
      const std::size_t transfers = p.parameter_server ? 2 * (firsts.size() - firsts.count(*p.parameter_server)) : firsts.size();
      rings += transfers;
      reduced += bytes * (p.parameter_server ? static_cast<double>(transfers) : 2 * static_cast<double>(firsts.size() - 1));
    }
    CHECK(count[transfer_kind::sync] == rings);
    CHECK(volume[transfer_kind::sync] == Approx(reduced).epsilon(1e-9));
  });
}

TEST_CASE("a straight pipeline has the closed-form number of tasks and transfers") {
  std::vector<layer_spec> layers;
  std::vector<tensor> edges;
  std::vector<stage> stages;
  constexpr int depth = 4, microbatches = 9;
  for (int s = 0; s < depth; ++s) {
    layers.push_back(work_of("l" + std::to_string(s), 1, 1));
    if (s > 0) edges.push_back({s - 1, s, 1, 1});
    stages.push_back(stage_of({s}, {{s, 1}}));
  }
  const planning_graph m = model_of(layers, edges);
  const tasks::task_graph g = tasks::expand(plan_of(mode::training, 1, microbatches, stages), m, wired(depth), roofline{});
  CHECK(g.computes.size() == 2 * depth * microbatches);
  CHECK(g.transfers.size() == 2 * (depth - 1) * microbatches);
  CHECK(g.device_order[0].size() == 2 * microbatches);
  CHECK(g.static_bytes.size() == depth);
  // Tasks are numbered by stage, microbatch and phase.
  CHECK(g.computes[2 * microbatches + 3].stage == stage_id(1));
  CHECK(g.computes[2 * microbatches + 3].microbatch == 1);
  CHECK(g.computes[2 * microbatches + 3].what == phase::backward_input);
}

TEST_CASE("the cost model is asked once per layer, device of its stage and phase, in generation once per context") {
  for_random_instances(20, [](const instance& i) {
    long long asked = 0, expected = 0;
    const auto contexts = static_cast<int>(token_passes(i.plan.workload, i.model()).distinct().size());
    const int phases = i.plan.workload.mode == mode::training ? 3 : contexts;
    for (const stage& s : i.plan.stages) expected += static_cast<long long>(s.layers.size() * s.devices.size()) * phases;
    const tasks::task_graph g = tasks::expand(i.plan, i.model(), i.cluster(), counting_cost{&asked});
    CHECK(asked == expected);
    CHECK(g.computes.size() >= i.plan.stages.size());
  });
}

TEST_CASE("a task has the time of its stage's layers, its samples and its bytes") {
  for_random_instances(30, [](const instance& i) {
    const planning_graph model = i.model();
    const cluster c = i.cluster();
    const tasks::task_graph g = tasks::expand(i.plan, model, c, roofline{});
    const stage_graph stages = make_stage_graph(i.plan, model);
    const token_passes passes(i.plan.workload, model);
    double off = 0;
    std::map<std::tuple<int, int, int>, double> held;  // stage, device, microbatch
    for (const tasks::compute_task& t : g.computes) {
      const stage& s = i.plan[t.stage];
      const auto at = std::find_if(s.devices.begin(), s.devices.end(), [&](const assignment& a) { return a.device == t.device; });
      REQUIRE(at != s.devices.end());
      CHECK(t.last_sample - t.first_sample == at->samples);
      const auto [microbatch, position] = owner(s, i.plan.size_of(s), t.first_sample - stages[t.stage].first_sample);
      CHECK(microbatch == t.microbatch);
      CHECK(s.devices[position].device == t.device);
      const bool split = std::any_of(g.computes.begin(), g.computes.end(), [&](const tasks::compute_task& o) {
        return o.stage == t.stage && o.device == t.device && o.what == phase::backward_weight;
      });
      double expected = 0, activations = 0;
      for (const layer_id l : s.layers) {
        const auto time = [&](phase what) {
          return roofline{}.time(passes[t.pass].asks(what, at->samples, at->tensor_parallel).of(model[l]), c[t.device]).value();
        };
        expected += time(t.what);
        if (t.what == phase::backward_input && !split) expected += time(phase::backward_weight);
        activations += model[l].activation.value() * at->samples;
      }
      off = std::max(off, std::abs(t.duration_s - expected) / std::max(expected, 1e-12));
      held[{t.stage.value, t.device.value, t.microbatch}] += t.takes_bytes - t.releases_bytes;
      if (t.what == phase::forward) CHECK(t.takes_bytes == Approx(activations));
    }
    CHECK(off < 1e-12);
    for (const auto& [_, bytes] : held) REQUIRE(bytes == 0);
  });
}

TEST_CASE("a transfer rule that names no transfer is an error, and a missing route only where it is needed") {
  const planning_graph m = model_of({work_of("a", 1), work_of("b", 1)}, {{0, 1, 3}});
  plan p = plan_of(mode::inference, 1, 1, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})});
  const cluster one_way("one way", workers(3), route_table{{{"w", bytes_per_second(1)}}, {{"d0", "d1", {{}, {{resource_id(0), 1}}}}}});
  CHECK_NOTHROW(tasks::expand(p, m, one_way, roofline{}));
  p.stages[1].devices[0].device = device_id(2);
  CHECK_THROWS_WITH(tasks::expand(p, m, one_way, roofline{}), Catch::Contains("\"d0\" to \"d2\"") && Catch::Contains("no route"));
  p.schedule.transfers = {{.from = device_id(0), .to = device_id(1), .from_stage = stage_id(0), .to_stage = stage_id(1)}};
  CHECK_THROWS_WITH(tasks::expand(p, m, wired(3), roofline{}), Catch::Contains("no forward transfer goes from device \"d0\" to \"d1\""));
}

TEST_CASE("a route that is missing and bytes beyond a double name their stages") {
  planning_graph m = model_of({work_of("a", 1), work_of("b", 1)}, {{0, 1, 3, 3}});
  plan p = plan_of(mode::training, 4, 2, {stage_of({0}, {{0, 4}}), stage_of({1}, {{1, 4}})});
  p.stages[0].name = "front";
  p.stages[1].name = "back";
  const cluster apart("apart", workers(2), route_table{});
  CHECK_THROWS_WITH(tasks::expand(p, m, apart, roofline{}),
                    "plan: stages \"front\" and \"back\" need a transfer from device \"d0\" to \"d1\", but cluster \"apart\" has no route "
                    "for that pair");
  m = model_of({work_of("a", 1), work_of("b", 1)}, {{0, 1, 1e308, 1e308}});
  CHECK_THROWS_WITH(tasks::expand(p, m, wired(2), roofline{}),
                    "plan: stages \"front\" and \"back\" need a transfer from device \"d0\" to \"d1\", of inf bytes; expected a finite "
                    "number of them");
  p = plan_of(mode::training, 4, 2, {stage_of({0, 1}, {{0, 4}, {1, 4}})});
  p.microbatch_size = 4;
  p.stages[0].name = "grid";
  p.stages[0].columns = {1, 1};
  layer_spec weighty = work_of("a", 1), then = work_of("b", 1);
  weighty.weight = 6_B;
  then.weight = 6_B;
  m = model_of({weighty, then}, {{0, 1, 3, 3}});
  CHECK_NOTHROW(tasks::expand(p, m, wired(2), roofline{}));
  CHECK_THROWS_WITH(tasks::expand(p, m, apart, roofline{}), Catch::StartsWith("plan: stage \"grid\" needs a transfer from device \"d0\""));
  m = model_of({weighty, then}, {{0, 1, 1e308, 1e308}});
  CHECK_THROWS_WITH(tasks::expand(p, m, wired(2), roofline{}),
                    Catch::StartsWith("plan: stage \"grid\" needs a transfer") && Catch::Contains("of inf bytes"));
}

TEST_CASE("a rule without a transfer is named by its place, with the reason where grids and fsdp have one") {
  const planning_graph m = model_of({work_of("a", 1), work_of("b", 1)}, {{0, 1, 3, 3}});
  const auto refused = [&](const plan& p, const char* text) {
    CHECK_THROWS_WITH(tasks::expand(p, m, wired(3), roofline{}), "plan: /schedule/flows/" + std::string(text));
  };
  const auto rule = [](transfer_kind kind, int from, int to, int from_stage, int to_stage) {
    return transfer_rule{
        .from = device_id(from), .to = device_id(to), .from_stage = stage_id(from_stage), .to_stage = stage_id(to_stage), .kind = kind};
  };
  plan p = plan_of(mode::training, 2, 1, {stage_of({0}, {{0, 2}, {1, 2}}), stage_of({1}, {{2, 2}})});
  p.stages[0].columns = {1, 1};
  p.schedule.transfers = {rule(transfer_kind::forward, 0, 2, 0, 1), rule(transfer_kind::forward, 1, 2, 0, 1)};
  refused(p,
          "1: no forward transfer goes from device \"d1\" to \"d2\" for stages 0 and 1, microbatch 0; only the first device of a grid's "
          "row sends");
  p.schedule.transfers = {rule(transfer_kind::sync, 0, 1, 0, 0)};
  refused(p,
          "0: no sync transfer goes from device \"d0\" to \"d1\" for stages 0 and 0, microbatch 0; a grid reduces gradients within its "
          "columns");
  p = plan_of(mode::training, 2, 1, {stage_of({0, 1}, {{0, 1}, {1, 1}})});
  p.stages[0].shard = sharding::fsdp;
  p.schedule.transfers = {rule(transfer_kind::sync, 0, 1, 0, 0)};
  refused(p,
          "0: no sync transfer goes from device \"d0\" to \"d1\" for stages 0 and 0, microbatch 0; under fsdp gradients are scattered, and "
          "scatters and gathers have no rules");
}

TEST_CASE("a plan of few passes takes no more for many microbatches") {
  const planning_graph m = model_of({work_of("a", 1), work_of("b", 1)}, {{0, 1, 3, 3}});
  plan p = plan_of(mode::training, 1, 2'000'000'000, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})});
  for (stage& s : p.stages) s.cuts = {.forward = {0, 2'000'000'000}, .backward = {0, 2'000'000'000}};
  CHECK(tasks::expand(p, m, wired(2), roofline{}).computes.size() == 4);
}

TEST_CASE("a cost that is not a time stops the expansion with its place") {
  struct broken {
    [[nodiscard]] seconds time(const work& w, const device&) const { return seconds(w.phase == phase::backward_weight ? -1 : 1); }
  };
  const planning_graph m = model_of({work_of("a", 1)}, {});
  plan p = plan_of(mode::training, 1, 1, {stage_of({0}, {{0, 1}})});
  CHECK_THROWS_WITH(tasks::expand(p, m, wired(1), broken{}), Catch::Contains("layer 0 \"a\", backward_weight") && Catch::Contains("-1 s"));
  p.workload.mode = mode::inference;
  CHECK_NOTHROW(tasks::expand(p, m, wired(1), broken{}));
}

TEST_CASE("a transfer carries the samples that its producer and its consumer have in common") {
  long long seen = 0;
  for_random_instances(60, [&](const instance& x) {
    const tasks::task_graph g = tasks::expand(x.plan, x.model(), x.cluster(), roofline{});
    for (tasks::node_id n = 0; n < g.computes.size(); ++n) {
      for (tasks::node_id t : g.successors_of(n)) {
        if (!g.is_transfer(t)) continue;
        const tasks::transfer& first_chunk = g.transfer_at(t);
        while (g.is_transfer(t)) {
          CHECK(g.transfer_at(t).first_sample == first_chunk.first_sample);
          t = g.successors_of(t).front();
        }
        if (!g.is_compute(t)) continue;  // the barrier after a reduction
        const tasks::compute_task &from = g.computes[n], &to = g.computes[t];
        CHECK(first_chunk.first_sample == std::max(from.first_sample, to.first_sample));
        CHECK(first_chunk.last_sample == std::min(from.last_sample, to.last_sample));
        CHECK(first_chunk.first_sample < first_chunk.last_sample);
        ++seen;
      }
    }
  });
  CHECK(seen > 100);
}

TEST_CASE("a reduction of a shared tensor belongs to the last pass, also where passes are no microbatches") {
  planning_graph_builder b("tied");
  for (int i = 0; i < 2; ++i)
    b.add_layer({.name = "l" + std::to_string(i), .forward_flops = flops(1e9), .weight = bytes(1e6), .weight_group = "tied"});
  b.add_edge(layer_id(0), layer_id(1), bytes(1000));
  const planning_graph model = std::move(b).build();
  std::vector<device> two(2);
  for (std::size_t i = 0; i < two.size(); ++i) {
    two[i].name = "d" + std::to_string(i);
    two[i].compute = flops_per_second(1e12);
    two[i].memory = bytes(1e9);
  }
  const cluster c("two", std::move(two), mesh{bytes_per_second(1e8), seconds(0)});
  plan p{.microbatch_size = 1, .microbatches = 5, .schedule = {.kind = schedule_kind::gpipe}};
  const pass_cuts cuts{.forward = {0, 2, 5}, .backward = {0, 2, 5}};
  p.stages = {{.name = "s0", .layers = {layer_id(0)}, .devices = {{device_id(0), 1}}, .cuts = cuts},
              {.name = "s1", .layers = {layer_id(1)}, .devices = {{device_id(1), 1}}, .cuts = cuts}};
  int reductions = 0;
  for (const tasks::transfer& t : tasks::expand(p, model, c, roofline{}).transfers) {
    if (t.kind != transfer_kind::sync) continue;
    ++reductions;
    CHECK(t.microbatch == 1);
  }
  CHECK(reductions == 2);
}
