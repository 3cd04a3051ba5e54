// SPDX-License-Identifier: BSL-1.0
#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/simulate/simulator.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "support/random_instance.hpp"

using namespace hetplan;
using namespace hetplan::test;

namespace {

bool close(double a, double b, double relative = 1e-9) { return std::abs(a - b) <= relative * std::max(std::abs(a), std::abs(b)) + 1e-15; }

/// Violations of the rules; empty if there are none.
struct findings {
  std::ostringstream text;
  template <class... Parts>
  void expect(bool ok, const Parts&... parts) {
    if (!ok) {
      (text << ... << parts);
      text << "\n";
    }
  }
};

double start_of(const tasks::task_graph& g, const trace& t, tasks::node_id n) {
  return g.is_compute(n) ? t.computes[n].start_s : t.transfers[n - g.computes.size()].start_s;
}

/// Returns the latest end of each node's predecessors; barriers pass on that of theirs.
std::vector<double> ready_times(const tasks::task_graph& g, const trace& t) {
  std::vector<double> ready(g.size(), 0);
  std::vector<std::uint32_t> waiting = g.predecessors;
  std::vector<tasks::node_id> stack;
  for (tasks::node_id n = 0; n < g.size(); ++n) {
    if (waiting[n] == 0) stack.push_back(n);
  }
  while (!stack.empty()) {
    const tasks::node_id n = stack.back();
    stack.pop_back();
    const double end = g.is_compute(n) ? t.computes[n].end_s : g.is_transfer(n) ? t.transfers[n - g.computes.size()].end_s : ready[n];
    for (const tasks::node_id m : g.successors_of(n)) {
      ready[m] = std::max(ready[m], end);
      if (--waiting[m] == 0) stack.push_back(m);
    }
  }
  return ready;
}

/// Checks that tasks run in order, one at a time, as soon as possible, for as long as they take.
void check_computing(findings& f, const tasks::task_graph& g, const trace& t, const std::vector<double>& ready) {
  for (std::size_t d = 0; d < g.device_order.size(); ++d) {
    double free = 0, busy = 0, held = g.static_bytes[d], peak = held;
    for (const tasks::node_id n : g.device_order[d]) {
      const tasks::compute_task& task = g.computes[n];
      const interval& x = t.computes[n];
      f.expect(close(x.start_s, std::max(free, ready[n]), 1e-11), "task ", n, " starts at ", x.start_s, ", could at ",
               std::max(free, ready[n]));
      f.expect(x.start_s >= free && x.start_s >= ready[n], "task ", n, " starts too early");
      f.expect(std::abs(x.end_s - x.start_s - task.duration_s) <= 1e-11 * x.end_s, "task ", n, " takes ", x.end_s - x.start_s,
               " instead of ", task.duration_s);
      free = x.end_s;
      busy += x.end_s - x.start_s;
      held += task.takes_bytes;
      peak = std::max(peak, held);
      held -= task.releases_bytes;
    }
    f.expect(close(busy, t.busy_s[d]), "device ", d, " is busy ", t.busy_s[d], ", its tasks ", busy);
    f.expect(t.busy_s[d] <= t.latency.value() * (1 + 1e-12), "device ", d, " is busier than the run is long");
    f.expect(close(peak, t.peak_bytes[d], 1e-12), "device ", d, " peaks at ", t.peak_bytes[d], ", its order at ", peak);
    f.expect(t.peak_bytes[d] >= g.static_bytes[d], "device ", d, " holds less than its static bytes");
  }
}

/// Checks that transfers start when allowed, take at least their time alone, and count all that they carry.
void check_communicating(findings& f, const tasks::task_graph& g, const trace& t, const network& net, const std::vector<double>& ready,
                         sharing how) {
  const bool granted = how == sharing::exclusive || how == sharing::per_link;
  std::vector<double> carried(net.resources().size(), 0), sent(g.device_order.size(), 0), received(sent);
  std::vector<std::vector<interval>> out(sent.size()), in(sent.size()), carrying(carried.size());
  for (std::size_t i = 0; i < g.transfers.size(); ++i) {
    const tasks::transfer& x = g.transfers[i];
    const interval& when = t.transfers[i];
    const double may = std::max(ready[g.node_of_transfer(i)], x.release_s);
    f.expect(when.start_s >= may * (1 - 1e-11), "transfer ", i, " starts at ", when.start_s, " before ", may);
    if (!granted) f.expect(close(when.start_s, may, 1e-11), "transfer ", i, " starts at ", when.start_s, ", could at ", may);
    double alone = x.latency_s;
    for (const resource_use& u : g.routes[x.route].via) {
      alone = std::max(alone, x.latency_s + x.volume_bytes * u.weight / net[u.resource].capacity.value());
      carried[u.resource.index()] += x.volume_bytes * u.weight;
    }
    f.expect(when.end_s - when.start_s >= alone * (1 - 1e-9) - 1e-11 * when.end_s, "transfer ", i, " takes ", when.end_s - when.start_s,
             ", alone ", alone);
    if (how == sharing::per_link || how == sharing::unlimited) {
      f.expect(close(when.end_s, when.start_s + alone, 1e-11), "transfer ", i, " takes ", when.end_s - when.start_s, ", not its peak's ",
               alone);
    }
    sent[x.from.index()] += x.volume_bytes;
    received[x.to.index()] += x.volume_bytes;
    if (when.end_s > when.start_s) {
      out[x.from.index()].push_back(when);
      in[x.to.index()].push_back(when);
      for (const resource_use& u : g.routes[x.route].via) carrying[u.resource.index()].push_back(when);
    }
  }
  for (std::size_t r = 0; r < carried.size(); ++r)
    f.expect(close(carried[r], t.resource_bytes[r]), "resource ", r, " carries ", t.resource_bytes[r], " of ", carried[r]);
  for (std::size_t d = 0; d < sent.size(); ++d) {
    f.expect(close(sent[d], t.sent_bytes[d]) && close(received[d], t.received_bytes[d]), "device ", d, " sends or receives something else");
  }
  if (!granted) return;
  for (auto* held : how == sharing::exclusive ? std::vector{&out, &in} : std::vector{&carrying}) {
    for (auto& port : *held) {
      std::sort(port.begin(), port.end(), [](const interval& a, const interval& b) { return a.start_s < b.start_s; });
      for (std::size_t i = 1; i < port.size(); ++i)
        f.expect(port[i].start_s >= port[i - 1].end_s * (1 - 1e-11), "two transfers hold one port or resource");
    }
  }
}

/// Checks that recorded rates are max-min fair at any time and integrate to the volumes.
void check_rates(findings& f, const tasks::task_graph& g, const trace& t, const network& net, bool tiers) {
  std::vector<double> rate(g.transfers.size(), 0), since(rate), moved(rate);
  const auto via = [&](std::size_t i) -> const std::vector<resource_use>& { return g.routes[g.transfers[i].route].via; };
  const auto level = [&](std::size_t i) { return tiers ? g.transfers[i].priority : 0; };
  for (std::size_t c = 0; c < t.rates.size();) {
    const double first = t.rates[c].at_s;
    double now = first;
    for (; c < t.rates.size() && t.rates[c].at_s <= first * (1 + 1e-11); ++c) {
      const rate_change& x = t.rates[c];
      f.expect(x.at_s >= now, "rates are not in time order");
      now = x.at_s;
      moved[x.transfer] += rate[x.transfer] * (now - since[x.transfer]);
      since[x.transfer] = now;
      rate[x.transfer] = x.rate;
    }
    std::vector<std::size_t> active;
    for (std::size_t i = 0; i < g.transfers.size(); ++i) {
      const bool on = g.transfers[i].volume_bytes > 0 && !via(i).empty() && t.transfers[i].end_s > now * (1 + 1e-11) &&
                      t.transfers[i].start_s + g.transfers[i].latency_s <= now * (1 + 1e-11);
      if (on) active.push_back(i);
      if (!on && !via(i).empty()) f.expect(rate[i] == 0 || t.transfers[i].end_s > now, "transfer ", i, " has a rate after its end");
    }
    for (const std::size_t i : active) {
      bool bottleneck = false;
      for (const resource_use& u : via(i)) {
        double used = 0, all = 0, fastest = 0;
        for (const std::size_t k : active) {
          for (const resource_use& v : via(k)) {
            if (v.resource != u.resource) continue;
            all += v.weight * rate[k];
            if (level(k) <= level(i)) used += v.weight * rate[k];
            if (level(k) == level(i)) fastest = std::max(fastest, rate[k]);
          }
        }
        const double capacity = net[u.resource].capacity.value();
        f.expect(all <= capacity * (1 + 1e-9), "resource ", u.resource.value, " is overfull at ", now);
        bottleneck = bottleneck || (used >= capacity * (1 - 1e-9) && rate[i] >= fastest * (1 - 1e-9) - 1e-11 * capacity);
      }
      f.expect(bottleneck, "transfer ", i, " could be faster at ", now);
    }
  }
  for (std::size_t i = 0; i < g.transfers.size(); ++i) {
    if (!via(i).empty())
      f.expect(std::abs(moved[i] - g.transfers[i].volume_bytes) <= 1e-6 * g.transfers[i].volume_bytes, "transfer ", i, " moves ", moved[i],
               " of ", g.transfers[i].volume_bytes);
  }
}

std::string everything_wrong(const tasks::task_graph& g, const trace& t, const network& net, const sharing how) {
  findings f;
  const std::vector<double> ready = ready_times(g, t);
  check_computing(f, g, t, ready);
  check_communicating(f, g, t, net, ready, how);
  if (!t.rates.empty() && how != sharing::unlimited) check_rates(f, g, t, net, how == sharing::priority);
  double last = 0;
  for (const auto* all : {&t.computes, &t.transfers}) {
    for (const interval& x : *all) last = std::max(last, x.end_s);
  }
  f.expect(t.latency.value() == last, "latency ", t.latency.value(), " is not the last end ", last);
  for (tasks::node_id n = 0; n < g.computes.size() + g.transfers.size(); ++n)
    f.expect(start_of(g, t, n) <= last, "node ", n, " starts after the end");
  return f.text.str();
}

}  // namespace

TEST_CASE("every trace keeps the rules of execution") {
  for_random_instances(250, [](const instance& i) {
    const cluster c = i.cluster();
    const tasks::task_graph g = tasks::expand(i.plan, i.model(), c, roofline{});
    const trace t = simulate(g, c.network(), policy_of_plan{i.plan.sharing_policy}, {.record = true});
    REQUIRE(everything_wrong(g, t, c.network(), i.plan.sharing_policy) == "");
  });
}

TEST_CASE("every trace keeps the rules of every network policy") {
  for_random_instances(60, [](const instance& i) {
    const cluster c = i.cluster();
    const tasks::task_graph g = tasks::expand(i.plan, i.model(), c, roofline{});
    for (const sharing how : all_sharings) {
      INFO(to_string(how));
      const trace t = simulate(g, c.network(), policy_of_plan{how}, {.record = true});
      REQUIRE(everything_wrong(g, t, c.network(), how) == "");
      REQUIRE(simulate(g, c.network(), policy_of_plan{sharing::unlimited}).latency.value() <= t.latency.value() * (1 + 1e-9));
    }
  });
}

TEST_CASE("the same run twice gives the same bytes, recorded or not") {
  for_random_instances(40, [](const instance& i) {
    const cluster c = i.cluster();
    const planning_graph m = i.model();
    const judgement a = evaluate(i.plan, m, c, roofline{}), b = evaluate(i.plan, m, c, roofline{});
    REQUIRE(a.trace == b.trace);
    REQUIRE(a.evaluation == b.evaluation);
    trace recorded = simulate(a.graph, c.network(), policy_of_plan{i.plan.sharing_policy}, {.record = true});
    recorded.rates.clear();
    recorded.memory.clear();
    REQUIRE(recorded == a.trace);
  });
}

TEST_CASE("a run that an observer stops is the beginning of the whole run") {
  for_random_instances(60, [](const instance& i) {
    const cluster c = i.cluster();
    const tasks::task_graph g = tasks::expand(i.plan, i.model(), c, roofline{});
    const policy_of_plan policy{i.plan.sharing_policy};
    const trace whole = simulate(g, c.network(), policy);
    random_source random(g.size());
    const std::size_t stop_at = random.index(g.computes.size() + g.transfers.size()) + 1;
    std::size_t seen = 0;
    std::vector<const tasks::compute_task*> tasks_done;
    std::vector<const tasks::transfer*> transfers_done;
    const auto stop = [&] { return ++seen == stop_at ? control::stop : control::go; };
    const auto tasks_end = [&](const task_ended& e) {
      tasks_done.push_back(&e.task);
      return stop();
    };
    const auto transfers_end = [&](const transfer_ended& e) {
      transfers_done.push_back(&e.transfer);
      return stop();
    };
    const trace part = simulate(g, c.network(), policy, {}, tasks_end, transfers_end);
    REQUIRE(part.status.result == outcome::stopped);
    REQUIRE_FALSE(part.status.reason.empty());
    REQUIRE(part.latency <= whole.latency);
    // Reported tasks and transfers end as in the whole run.
    for (const tasks::compute_task* p : tasks_done) {
      const auto at = static_cast<std::size_t>(p - g.computes.data());
      REQUIRE(part.computes[at] == whole.computes[at]);
    }
    for (const tasks::transfer* p : transfers_done) {
      const auto at = static_cast<std::size_t>(p - g.transfers.data());
      REQUIRE(part.transfers[at] == whole.transfers[at]);
    }
  });
}

TEST_CASE("recorded memory rises and falls as the tasks say and peaks where the trace says") {
  for_random_instances(60, [](const instance& i) {
    const cluster c = i.cluster();
    const tasks::task_graph g = tasks::expand(i.plan, i.model(), c, roofline{});
    const trace t = simulate(g, c.network(), policy_of_plan{i.plan.sharing_policy}, {.record = true});
    std::vector<double> peak = g.static_bytes, held = g.static_bytes;
    double before = 0;
    bool ordered = true;
    for (const memory_change& m : t.memory) {
      ordered = ordered && m.at_s >= before;
      before = m.at_s;
      held[m.device] = m.held_bytes;
      peak[m.device] = std::max(peak[m.device], m.held_bytes);
    }
    REQUIRE(ordered);
    REQUIRE(peak == t.peak_bytes);
    for (std::size_t d = 0; d < held.size(); ++d) REQUIRE(std::abs(held[d] - g.static_bytes[d]) <= 1e-12 * peak[d]);  // all released
  });
}
