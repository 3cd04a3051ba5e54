// SPDX-License-Identifier: BSL-1.0
// The incremental fluid_network against filling from scratch and against the definition of max-min fairness.

#include <hetplan/simulate/fluid_sharing.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "support/random_source.hpp"

using namespace hetplan;
using namespace hetplan::test;

namespace {

struct open_flow {
  std::vector<resource_use> via;
  int tier = 0;
  double volume = 0;
};

/// Returns the rates of progressive filling: all rates of a tier grow together until a resource is full.
std::map<std::uint32_t, double> filled(const std::vector<double>& capacity, const std::map<std::uint32_t, open_flow>& flows) {
  std::vector<double> left = capacity;
  std::map<std::uint32_t, double> rate;
  std::set<int> tiers;
  for (const auto& [_, f] : flows) tiers.insert(f.tier);
  for (const int tier : tiers) {
    std::map<std::uint32_t, const open_flow*> growing;
    for (const auto& [tag, f] : flows) {
      if (f.tier == tier) growing[tag] = &f;
    }
    double level = 0;
    while (!growing.empty()) {
      std::vector<double> demand(left.size(), 0);
      for (const auto& [_, f] : growing) {
        for (const resource_use& u : f->via) demand[u.resource.index()] += u.weight;
      }
      double growth = std::numeric_limits<double>::infinity();
      for (std::size_t r = 0; r < left.size(); ++r) {
        if (demand[r] > 0) growth = std::min(growth, left[r] / demand[r]);
      }
      level += growth;
      std::vector<bool> full(left.size(), false);
      for (std::size_t r = 0; r < left.size(); ++r) {
        if (demand[r] <= 0) continue;
        full[r] = left[r] / demand[r] <= growth * (1 + 1e-12);
        left[r] = full[r] ? 0 : left[r] - growth * demand[r];
      }
      for (auto it = growing.begin(); it != growing.end();) {
        const auto& via = it->second->via;
        if (std::any_of(via.begin(), via.end(), [&](const resource_use& u) { return full[u.resource.index()]; })) {
          rate[it->first] = level;
          it = growing.erase(it);
        } else {
          ++it;
        }
      }
    }
  }
  return rate;
}

/// Returns the violation of the definition, or "": no resource is overfull, and each flow has a full resource on which no flow of its tier
/// is faster. Full counts only flows of its own and earlier tiers.
std::string not_max_min(const std::vector<double>& capacity, const std::map<std::uint32_t, open_flow>& flows,
                        const std::map<std::uint32_t, double>& rate) {
  std::ostringstream wrong;
  for (const auto& [tag, f] : flows) {
    bool bottleneck = false;
    for (const resource_use& u : f.via) {
      double used = 0, all = 0, fastest = 0;
      for (const auto& [other, g] : flows) {
        for (const resource_use& v : g.via) {
          if (v.resource != u.resource) continue;
          all += v.weight * rate.at(other);
          if (g.tier > f.tier) continue;
          used += v.weight * rate.at(other);
          if (g.tier == f.tier) fastest = std::max(fastest, rate.at(other));
        }
      }
      const double c = capacity[u.resource.index()];
      if (all > c * (1 + 1e-9)) wrong << "resource " << u.resource.index() << " carries " << all << " of " << c << "; ";
      bottleneck = bottleneck || (used >= c * (1 - 1e-9) && rate.at(tag) >= fastest * (1 - 1e-9) - 1e-12 * c);
    }
    if (!bottleneck) wrong << "flow " << tag << " at " << rate.at(tag) << " could be faster; ";
  }
  return wrong.str();
}

}  // namespace

TEST_CASE("the reference filling meets the definition of max-min and the definition rejects others") {
  const std::vector<double> capacity{3, 0.5};
  std::map<std::uint32_t, open_flow> flows{
      {0, {{{resource_id(0), 2}}}}, {1, {{{resource_id(0), 1}}}}, {2, {{{resource_id(0), 1}, {resource_id(1), 1}}}}};
  auto rate = filled(capacity, flows);
  CHECK(rate[0] == Approx(2.5 / 3));
  CHECK(rate[2] == Approx(0.5));
  CHECK(not_max_min(capacity, flows, rate).empty());
  rate[0] -= 0.1;
  rate[1] += 0.2;
  CHECK_FALSE(not_max_min(capacity, flows, rate).empty());
}

TEST_CASE("rates are max-min fair after any sequence of starts, stops and changes of capacity") {
  int instances = 0, compared = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 3000; ++seed) {
    INFO("seed " << seed);
    random_source random(seed);
    std::vector<resource> resources;
    std::vector<double> capacity;
    const int n = random.integer(1, 8), tiers = random.chance(0.5) ? 1 : random.integer(2, 4);
    for (int r = 0; r < n; ++r) {
      capacity.push_back(random.chance(0.3) ? 1 : random.spread(0.125, 8));
      resources.push_back({"r", bytes_per_second(capacity.back())});
    }
    fluid_network net{std::span<const resource>(resources)};
    std::map<std::uint32_t, open_flow> flows;
    std::map<std::uint32_t, fluid_network::flow_id> handle;
    std::map<std::uint32_t, double> told;  // rates reported by the callback
    std::map<std::uint32_t, std::vector<resource_use>> routes;
    double now = 0;
    std::string wrong;
    const int steps = random.integer(3, 14);
    for (std::uint32_t step = 0; step < static_cast<std::uint32_t>(steps); ++step) {
      now += random.unit();
      for (int changes = random.integer(1, 3); changes > 0; --changes) {
        const double what = random.unit();
        if (what < 0.6 || flows.empty()) {
          const std::uint32_t tag = step * 8 + static_cast<std::uint32_t>(changes);
          std::set<int> on;
          for (int k = random.integer(1, 3); k > 0; --k) on.insert(random.integer(0, n - 1));
          open_flow f;
          for (const int r : on) f.via.push_back({resource_id(r), random.chance(0.5) ? 1 : random.between(0.1, 3)});
          f.tier = random.integer(0, tiers - 1);
          f.volume = 1e9;
          flows[tag] = f;
          routes[tag] = f.via;
          handle[tag] = net.start(now, f.volume, routes[tag], f.tier, tag);
          told[tag] = 0;
        } else if (what < 0.9) {
          auto it = flows.begin();
          std::advance(it, static_cast<std::ptrdiff_t>(random.index(flows.size())));
          net.stop(handle[it->first]);
          handle.erase(it->first);
          told.erase(it->first);
          flows.erase(it);
        } else {
          const std::size_t r = random.index(capacity.size());
          capacity[r] = random.chance(0.1) ? 0 : random.spread(0.125, 8);
          net.set_capacity(r, capacity[r]);
        }
      }
      net.update(now, [&](std::uint32_t tag, double rate) { told[tag] = rate; });
      ++instances;
      std::map<std::uint32_t, double> rate;
      for (const auto& [tag, f] : handle) rate[tag] = net.rate(f);
      if (rate != told) wrong += "the callback told other rates; ";
      wrong += not_max_min(capacity, flows, rate);
      for (const auto& [tag, expected] : filled(capacity, flows)) {
        ++compared;
        if (std::abs(rate[tag] - expected) > 1e-9 * std::max(1.0, expected)) {
          wrong +=
              "flow " + std::to_string(tag) + " has " + std::to_string(rate[tag]) + ", filling gives " + std::to_string(expected) + "; ";
        }
      }
      if (net.active() != flows.size()) wrong += "active() is wrong; ";
      if (!wrong.empty()) break;
    }
    REQUIRE(wrong == "");
  }
  CHECK(instances > 10000);
  CHECK(compared > 50000);
}

TEST_CASE("rates that nothing can reach keep every bit, and nobody is told") {
  const std::vector<resource> resources{{"a", bytes_per_second(1)}, {"b", bytes_per_second(1)}};
  const std::vector<resource_use> a{{resource_id(0), 3}}, b{{resource_id(1), 1}};
  fluid_network net{std::span<const resource>(resources)};
  const auto ignore = [](std::uint32_t, double) {};
  net.start(0, 1, a, 0, 0);
  net.update(0, ignore);
  CHECK(net.next_end() == 3);
  net.start(0.1, 10, b, 0, 1);
  std::vector<std::uint32_t> changed;
  net.update(0.1, [&](std::uint32_t tag, double) { changed.push_back(tag); });
  CHECK(changed == std::vector<std::uint32_t>{1});
  CHECK(net.next_end() == 3);
  // Due ends are reported in the order of tags.
  std::vector<std::uint32_t> ended;
  net.finish_until(20, [&](std::uint32_t tag) { ended.push_back(tag); });
  CHECK(ended == std::vector<std::uint32_t>{0, 1});
  CHECK(net.active() == 0);
}

TEST_CASE("flows end when their bytes have gone through, however often the rates change") {
  // Volumes are integrated from the reported rates.
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 500; ++seed) {
    INFO("seed " << seed);
    random_source random(seed);
    std::vector<resource> resources;
    const int n = random.integer(1, 5);
    for (int r = 0; r < n; ++r) resources.push_back({"r", bytes_per_second(random.spread(0.25, 4))});
    fluid_network net{std::span<const resource>(resources)};
    std::map<std::uint32_t, double> rate, moved, volume;
    std::map<std::uint32_t, std::vector<resource_use>> routes;
    double now = 0;
    bool good = true;
    const auto advance = [&](double to) {
      for (auto& [tag, m] : moved) m += rate[tag] * (to - now);
      now = to;
    };
    const auto update = [&] { net.update(now, [&](std::uint32_t tag, double x) { rate[tag] = x; }); };
    std::uint32_t tag = 0;
    const std::uint32_t flows = 30;
    double next_start = 0;
    while (tag < flows || net.active() > 0) {
      const double end = net.next_end();
      if (tag < flows && next_start <= end) {
        advance(next_start);
        volume[tag] = random.between(0.1, 2);
        moved[tag] = 0;
        std::set<int> on;
        for (int k = random.integer(1, 3); k > 0; --k) on.insert(random.integer(0, n - 1));
        for (const int r : on) routes[tag].push_back({resource_id(r), random.between(0.5, 2)});
        net.start(now, volume[tag], routes[tag], random.integer(0, 1), tag);
        ++tag;
        next_start += random.between(0, 0.5);
      } else {
        advance(end);
        net.finish_until(end, [&](std::uint32_t ended) {
          good = good && std::abs(moved[ended] - volume[ended]) <= 1e-9 * volume[ended];
          moved.erase(ended);
        });
      }
      update();
    }
    REQUIRE(good);
    REQUIRE(moved.empty());
  }
}
