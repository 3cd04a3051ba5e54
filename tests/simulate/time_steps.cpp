// SPDX-License-Identifier: BSL-1.0
// The event-driven simulator against a naive one with fixed time steps of dt.

#include <hetplan/simulate/simulator.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <catch2/catch.hpp>

#include "support/random_instance.hpp"

using namespace hetplan;
using namespace hetplan::test;

namespace {

/// Returns the ends of all nodes, each late by up to the number of steps on its longest path.
std::vector<double> ends_by_steps(const tasks::task_graph& g, const network& net, bool tiers, double dt) {
  const std::size_t n = g.size();
  std::vector<int> waiting(g.predecessors.begin(), g.predecessors.end());
  std::vector<double> left(n, 0), latency(n, 0), end(n, -1);
  std::vector<char> started(n, 0);
  std::vector<std::size_t> next(g.device_order.size(), 0);
  std::vector<long long> running(g.device_order.size(), -1);
  for (std::size_t i = 0; i < n; ++i) {
    const auto node = static_cast<tasks::node_id>(i);
    if (g.is_compute(node)) left[i] = g.computes[i].duration_s;
    if (g.is_transfer(node)) {
      left[i] = g.transfer_at(node).volume_bytes;
      latency[i] = g.transfer_at(node).latency_s;
      if (g.routes[g.transfer_at(node).route].via.empty()) left[i] = 0;
    }
  }
  std::size_t done = 0;
  for (long long step = 0; done < n; ++step) {
    const double now = static_cast<double>(step) * dt;
    const auto finish = [&](std::size_t i) {
      end[i] = now;
      ++done;
      for (const tasks::node_id m : g.successors_of(static_cast<tasks::node_id>(i))) --waiting[m];
    };
    // Ends finished work and starts ready work until nothing changes.
    for (bool again = true; again;) {
      again = false;
      for (std::size_t d = 0; d < running.size(); ++d) {
        if (running[d] >= 0 && left[static_cast<std::size_t>(running[d])] <= 0) {
          finish(static_cast<std::size_t>(running[d]));
          running[d] = -1;
          again = true;
        }
        if (running[d] < 0 && next[d] < g.device_order[d].size() && waiting[g.device_order[d][next[d]]] == 0) {
          running[d] = g.device_order[d][next[d]++];
          again = true;
        }
      }
      for (std::size_t i = g.computes.size(); i < n; ++i) {
        if (waiting[i] > 0 || end[i] >= 0) continue;
        if (!g.is_transfer(static_cast<tasks::node_id>(i))) {
          finish(i);
          again = true;
          continue;
        }
        if (now < g.transfer_at(static_cast<tasks::node_id>(i)).release_s) continue;
        started[i] = 1;
        if (latency[i] <= 0 && left[i] <= 0) {
          finish(i);
          again = true;
        }
      }
    }
    // One time step. Rates of all transfers rise together until a resource is full, tier by tier.
    for (const long long t : running) {
      if (t >= 0) left[static_cast<std::size_t>(t)] -= dt;
    }
    std::vector<std::size_t> flows;
    std::vector<int> levels;
    for (std::size_t i = g.computes.size(); i < n; ++i) {
      if (started[i] == 0 || end[i] >= 0) continue;
      if (latency[i] > 0) {
        latency[i] -= dt;
        continue;
      }
      flows.push_back(i);
      levels.push_back(tiers ? g.transfers[i - g.computes.size()].priority : 0);
    }
    std::sort(levels.begin(), levels.end());
    levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
    std::vector<double> free;
    for (const resource& r : net.resources()) free.push_back(r.capacity.value());
    for (const int level : levels) {
      std::vector<std::size_t> growing;
      for (const std::size_t i : flows) {
        if (!tiers || g.transfers[i - g.computes.size()].priority == level) growing.push_back(i);
      }
      const auto via = [&](std::size_t i) -> const std::vector<resource_use>& {
        return g.routes[g.transfers[i - g.computes.size()].route].via;
      };
      double rate = 0;
      while (!growing.empty()) {
        std::vector<double> weight(free.size(), 0);
        for (const std::size_t i : growing) {
          for (const resource_use& u : via(i)) weight[u.resource.index()] += u.weight;
        }
        double growth = std::numeric_limits<double>::infinity();
        for (std::size_t r = 0; r < free.size(); ++r) {
          if (weight[r] > 0) growth = std::min(growth, free[r] / weight[r]);
        }
        rate += growth;
        for (std::size_t r = 0; r < free.size(); ++r) free[r] -= growth * weight[r];
        std::erase_if(growing, [&](std::size_t i) {
          const bool stops = std::any_of(via(i).begin(), via(i).end(), [&](const resource_use& u) {
            return free[u.resource.index()] <= 1e-9 * net[u.resource].capacity.value();
          });
          if (stops) left[i] -= rate * dt;
          return stops;
        });
      }
    }
  }
  return end;
}

double ended(const tasks::task_graph& g, const trace& t, std::size_t i) {
  return i < g.computes.size() ? t.computes[i].end_s : t.transfers[i - g.computes.size()].end_s;
}

}  // namespace

TEST_CASE("small time steps agree with the simulator, and half the step makes half the error") {
  double error = 0, half = 0;
  int cases = 0;
  for (const plan_kind kind : {plan_kind::chain, plan_kind::dag, plan_kind::several_stages, plan_kind::pipelines, plan_kind::tied,
                               plan_kind::generation, plan_kind::chunks}) {
    for (std::uint64_t seed = first_seed(); seed < first_seed() + 40; ++seed) {
      const instance i = random_instance(seed, kind);
      const tasks::task_graph g = tasks::expand(i.plan, i.model(), i.cluster(), roofline{});
      if (g.size() > 60 || g.transfers.empty()) continue;
      INFO("random_instance(" << seed << ", plan_kind(" << static_cast<int>(kind) << "))");
      const cluster c = i.cluster();
      const trace t = simulate(g, c.network(), policy_of_plan{i.plan.sharing_policy});
      const double dt = t.latency.value() / 2000;
      const auto at = [&](double step) {
        const auto ends = ends_by_steps(g, c.network(), i.plan.sharing_policy == sharing::priority, step);
        double sum = 0, worst = 0;
        for (std::size_t n = 0; n < g.computes.size() + g.transfers.size(); ++n) {
          sum += std::abs(ends[n] - ended(g, t, n));
          worst = std::max(worst, std::abs(ends[n] - ended(g, t, n)));
        }
        // A late start also shifts shares, but an end is late by few steps per node.
        CHECK(worst <= 3 * step * static_cast<double>(g.size()));
        return sum / (dt * static_cast<double>(g.computes.size() + g.transfers.size()));
      };
      error += at(dt);
      half += at(dt / 2);
      ++cases;
    }
  }
  CAPTURE(cases, error / cases, half / cases);
  CHECK(cases >= 40);
  CHECK(error / half == Approx(2).margin(0.3));
}
