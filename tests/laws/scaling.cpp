// SPDX-License-Identifier: BSL-1.0
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/simulate/simulator.hpp>
#include <hetplan/tasks/task_graph.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <catch2/catch.hpp>

#include "support/random_instance.hpp"

namespace test_scaling {

using namespace hetplan;
using namespace hetplan::test;

namespace {

judgement run(const instance& i) { return evaluate(i.plan, i.model(), i.cluster(), roofline{}); }

Approx about(double x) { return Approx(x).epsilon(1e-9).margin(1e-12); }

void scale_times(instance& i, double k) {
  for (device& d : i.devices) {
    d.compute = d.compute / k;
    d.memory_bandwidth = d.memory_bandwidth / k;
    d.launch = d.launch * k;
    if (d.interconnect) *d.interconnect = *d.interconnect / k;
  }
  i.capacity /= k;
  i.latency_s *= k;
  for (transfer_rule& r : i.plan.schedule.transfers) r.release = r.release * k;
}

void scale_bytes(instance& i, double k) {
  for (layer_spec& l : i.layers) {
    l.weight *= k;
    l.activation *= k;
    l.kv_bytes_per_token *= k;
    if (l.weight_traffic) *l.weight_traffic *= k;
  }
  for (instance::edge& e : i.edges) {
    e.forward *= k;
    e.gradient *= k;
  }
  for (device& d : i.devices) {
    d.memory_bandwidth *= k;
    if (d.interconnect) *d.interconnect *= k;
    d.power.send = d.power.send / k;
    d.power.receive = d.power.receive / k;
  }
  i.capacity *= k;
}

/// Checks equality up to rounding; device d of `a` is device at[d] of `b`.
void check_same(const evaluation& a, const evaluation& b, const std::vector<std::size_t>& at) {
  CHECK(b.latency.value() == about(a.latency.value()));
  CHECK(b.bound.value() == about(a.bound.value()));
  CHECK(b.schedule_bound.value() == about(a.schedule_bound.value()));
  CHECK(b.time_between_tokens.has_value() == a.time_between_tokens.has_value());
  CHECK(b.response().value() == about(a.response().value()));
  for (std::size_t d = 0; d < a.devices.size(); ++d) {
    const device_evaluation &x = a.devices[d], &y = b.devices[at[d]];
    CHECK(x.used == y.used);
    CHECK(y.energy.value() == about(x.energy.value()));
    CHECK(y.peak_memory.value() == about(x.peak_memory.value()));
    CHECK(y.busy.value() == about(x.busy.value()));
  }
}

std::vector<std::size_t> unmoved(std::size_t n) {
  std::vector<std::size_t> at(n);
  std::iota(at.begin(), at.end(), 0U);
  return at;
}

}  // namespace

TEST_CASE("four times slower devices and networks take four times as long, to the last bit") {
  for_random_instances(120, [](const instance& i) {
    const judgement a = run(i);
    instance slow = i;
    scale_times(slow, 4);
    const judgement b = run(slow);
    REQUIRE(b.evaluation.latency.value() == 4 * a.evaluation.latency.value());
    REQUIRE(b.evaluation.schedule_bound.value() == 4 * a.evaluation.schedule_bound.value());
    REQUIRE(b.evaluation.bound.value() == 4 * a.evaluation.bound.value());
    REQUIRE(b.evaluation.response().value() == 4 * a.evaluation.response().value());
    for (std::size_t n = 0; n < a.trace.transfers.size(); ++n) REQUIRE(b.trace.transfers[n].end_s == 4 * a.trace.transfers[n].end_s);
    REQUIRE(b.trace.peak_bytes == a.trace.peak_bytes);
    REQUIRE(b.trace.resource_bytes == a.trace.resource_bytes);
  });
}

TEST_CASE("three times slower devices and networks take three times as long") {
  for_random_instances(60, [](const instance& i) {
    // With exclusive ports, rounding errors may decide which transfer starts first.
    if (i.plan.sharing_policy == sharing::exclusive) return;
    instance slow = i;
    scale_times(slow, 3);
    REQUIRE(run(slow).evaluation.latency.value() == about(3 * run(i).evaluation.latency.value()));
  });
}

TEST_CASE("twice the bytes on twice the bandwidth take as long and hold and carry twice as much") {
  for_random_instances(60, [](const instance& i) {
    if (i.plan.workload.mode == mode::generation) return;  // a token has four bytes
    instance big = i;
    scale_bytes(big, 2);
    const judgement a = run(i), b = run(big);
    REQUIRE(b.evaluation.latency == a.evaluation.latency);
    REQUIRE(b.trace.computes == a.trace.computes);
    for (std::size_t d = 0; d < a.trace.peak_bytes.size(); ++d) {
      REQUIRE(b.trace.peak_bytes[d] == 2 * a.trace.peak_bytes[d]);
      REQUIRE(b.evaluation.devices[d].energy.value() == about(a.evaluation.devices[d].energy.value()));
    }
    for (std::size_t r = 0; r < a.trace.resource_bytes.size(); ++r) REQUIRE(b.trace.resource_bytes[r] == 2 * a.trace.resource_bytes[r]);
  });
}

TEST_CASE("names mean nothing") {
  for_random_instances(60, [](const instance& i) {
    instance renamed = i;
    for (std::size_t n = 0; n < i.layers.size(); ++n) {
      renamed.layers[n].name = std::to_string(1000 - n) + "?";
      if (!i.layers[n].weight_group.empty()) renamed.layers[n].weight_group = "another";
    }
    for (std::size_t d = 0; d < i.devices.size(); ++d) renamed.devices[d].name = std::string(d + 1, 'z');
    for (std::size_t s = 0; s < i.plan.stages.size(); ++s) renamed.plan.stages[s].name = std::string(20 - s, 'y');
    const judgement a = run(i), b = run(renamed);
    REQUIRE(a.trace == b.trace);
    REQUIRE(a.evaluation == b.evaluation);
  });
}

TEST_CASE("the order of the devices in the cluster means nothing on a mesh or a shared medium") {
  for_random_instances(100, [](const instance& original) {
    instance i = original;
    if (i.plan.sharing_policy == sharing::exclusive) i.plan.sharing_policy = sharing::fair_share;  // ties are broken by device
    i.net = i.devices.size() % 2 == 0 ? net_kind::mesh : net_kind::shared;
    std::vector<std::size_t> at = unmoved(i.devices.size());
    random_source random(i.devices.size() + i.layers.size());
    random.shuffle(at);
    instance moved = i;
    const auto where = [&](device_id d) { return device_id(at[d.index()]); };
    for (std::size_t d = 0; d < at.size(); ++d) moved.devices[at[d]] = i.devices[d];
    for (stage& s : moved.plan.stages) {
      for (assignment& a : s.devices) a.device = where(a.device);
    }
    if (moved.plan.parameter_server) moved.plan.parameter_server = where(*moved.plan.parameter_server);
    for (std::size_t d = 0; d < i.plan.schedule.orders.size(); ++d) moved.plan.schedule.orders[at[d]] = i.plan.schedule.orders[d];
    for (transfer_rule& r : moved.plan.schedule.transfers) {
      r.from = where(r.from);
      r.to = where(r.to);
    }
    check_same(run(i).evaluation, run(moved).evaluation, at);
  });
}

TEST_CASE("the order in which a plan lists its stages means nothing") {
  int moved_cases = 0;
  for_random_instances(60, [&](const instance& i) {
    // Reductions of shared tensors follow stage order, and exclusive ports break ties by stage.
    if (!i.plan.pipelines.empty() || i.plan.sharing_policy == sharing::exclusive || i.plan.stages.size() < 2) return;
    if (std::any_of(i.layers.begin(), i.layers.end(), [](const layer_spec& l) { return !l.weight_group.empty(); })) return;
    std::vector<std::size_t> at = unmoved(i.plan.stages.size());
    random_source random(i.layers.size() + 7 * i.plan.stages.size());
    random.shuffle(at);
    instance moved = i;
    plan& p = moved.plan;
    const auto where = [&](stage_id s) { return stage_id(at[s.index()]); };
    for (std::size_t s = 0; s < at.size(); ++s) p.stages[at[s]] = i.plan.stages[s];
    for (std::size_t s = 0; s < i.plan.schedule.warmup.size(); ++s) p.schedule.warmup[at[s]] = i.plan.schedule.warmup[s];
    for (auto& order : p.schedule.orders) {
      for (order_entry& e : order) e.stage = where(e.stage);
    }
    for (transfer_rule& r : p.schedule.transfers) {
      r.from_stage = where(r.from_stage);
      r.to_stage = where(r.to_stage);
    }
    check_same(run(i).evaluation, run(moved).evaluation, unmoved(i.devices.size()));
    ++moved_cases;
  });
  CHECK(moved_cases > 100);
}

TEST_CASE("a device that the plan leaves alone changes nothing but the bound") {
  for_random_instances(60, [](const instance& original) {
    instance i = original;
    i.net = i.layers.size() % 3 == 0 ? net_kind::mesh : i.layers.size() % 3 == 1 ? net_kind::shared : net_kind::star;
    instance more = i;
    more.devices.push_back(i.devices.front());
    more.devices.back().name = "spectator";
    const judgement a = run(i), b = run(more);
    REQUIRE(b.evaluation.latency.value() == about(a.evaluation.latency.value()));
    REQUIRE_FALSE(b.evaluation.devices.back().used);
    REQUIRE(b.evaluation.devices.back().energy.value() == 0);
    REQUIRE(b.evaluation.devices.back().peak_memory.value() == 0);
    REQUIRE(b.evaluation.energy().value() == about(a.evaluation.energy().value()));
    REQUIRE(b.evaluation.bound <= a.evaluation.bound * (1 + 1e-12));
  });
}

TEST_CASE("chunks without release times change nothing under fair share") {
  int chunked_cases = 0;
  for_random_instances(60, [&](const instance& original) {
    instance whole = original;
    whole.plan.sharing_policy = sharing::fair_share;
    for (transfer_rule& r : whole.plan.schedule.transfers) r.release = {};
    instance plain = whole;
    plain.plan.schedule.transfers.clear();
    if (whole.plan.schedule.transfers.empty()) return;
    ++chunked_cases;
    REQUIRE(run(whole).evaluation.latency.value() == about(run(plain).evaluation.latency.value()));
  });
  CHECK(chunked_cases > 50);
}

TEST_CASE("devices at half speed from the start take twice the time for everything they compute") {
  for_random_instances(40, [](const instance& i) {
    const cluster c = i.cluster();
    tasks::task_graph g = tasks::expand(i.plan, i.model(), c, roofline{});
    simulator_options half;
    for (std::size_t d = 0; d < i.devices.size(); ++d) half.speeds.push_back({seconds(0), device_id(d), 0.5});
    const policy_of_plan policy{i.plan.sharing_policy};
    const trace slow = simulate(g, c.network(), policy, half);
    for (tasks::compute_task& t : g.computes) t.duration_s *= 2;
    REQUIRE(simulate(g, c.network(), policy) == slow);
  });
}

TEST_CASE("changes that change nothing change nothing") {
  for_random_instances(40, [](const instance& i) {
    const cluster c = i.cluster();
    const tasks::task_graph g = tasks::expand(i.plan, i.model(), c, roofline{});
    const policy_of_plan policy{i.plan.sharing_policy};
    if (i.plan.sharing_policy == sharing::exclusive) return;  // rounding errors may decide the order
    const trace plain = simulate(g, c.network(), policy);
    simulator_options same;
    random_source random(g.size());
    for (std::size_t d = 0; d < i.devices.size(); ++d) same.speeds.push_back({plain.latency * random.unit(), device_id(d), 1});
    for (std::size_t r = 0; r < c.network().resources().size(); ++r) {
      same.capacities.push_back({plain.latency * random.unit(), resource_id(r), c.network().resources()[r].capacity});
    }
    REQUIRE(simulate(g, c.network(), policy, same).latency.value() == about(plain.latency.value()));
  });
}

}  // namespace test_scaling
