// SPDX-License-Identifier: BSL-1.0
#pragma once
/// DeepCEE's page: schedules at equal memory, and a cluster of many regions.

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/schedule/automatic_orders.hpp>
#include <hetplan/schedule/order_rules.hpp>
#include <hetplan/schedule/partial_orders.hpp>

#include "reproduce/plot_svg.hpp"
#include "reproduce/sections.hpp"
#include "support/random_source.hpp"
#include "support/zero_bubble_rows.hpp"

namespace bench {

/// Regions of equal size: GPUs of three kinds, 1 Gbit/s inside, 100 to 500 Mbit/s to the others.
inline hetplan::cluster many_regions(int regions, int each) {
  using namespace hetplan;
  std::vector<device> devices;
  std::vector<hierarchical::group> groups;
  constexpr std::array rates{41.2e12, 35.58e12, 29.77e12};
  constexpr std::array memory{24e9, 24e9, 10e9};
  for (int r = 0; r < regions; ++r) {
    hierarchical::group g{.name = "r" + std::to_string(r), .devices = {}, .capacity = bytes_per_second(1e9 / 8), .latency = seconds(1e-4)};
    for (int d = 0; d < each; ++d) {
      const auto kind = static_cast<std::size_t>((r + d) % 3);
      device x;
      x.name = g.name + "." + std::to_string(d);
      x.kind = "gpu" + std::to_string(kind);
      x.compute = flops_per_second(rates[kind]);
      x.memory = bytes(memory[kind]);
      x.memory_bandwidth = bytes_per_second(9e11);
      x.launch = seconds(1e-5);
      g.devices.push_back(x.name);
      devices.push_back(std::move(x));
    }
    groups.push_back(std::move(g));
  }
  return {"many regions", devices, hierarchical{.capacity = bytes_per_second(2e8 / 8), .latency = seconds(5e-3), .groups = groups}};
}

/// 500 seeded pipelines at equal memory: by how much each rule is above the best, over the ratio of communication to computation; and
/// the published configurations.
inline void add_schedules(const sections& page) {
  using namespace hetplan;
  using namespace hetplan::schedule;
  constexpr std::array names{"compact", "eager", "original", "automatic"};
  constexpr int groups = 10;
  struct group {
    int pipelines = 0, proven = 0;
    std::array<double, 4> above = {};
    std::array<int, 4> alone = {};
    double gap = 0, worst = 0;
  };
  std::array<group, groups> by_ratio;
  group all;
  test::random_source random(1);
  const int count = page.quick() ? 20 : 500;
  for (int i = 0; i < count; ++i) {
    const int stages = random.integer(2, 8), microbatches = random.integer(stages, 4 * stages), g = i % groups;
    const double skew = random.between(0, 0.8), ratio = 0.02 * std::pow(10.0, (g + random.unit()) * 0.3);
    std::vector<phase_times> s;
    double forward = 0;
    for (int k = 0; k < stages; ++k) {
      const double size = random.between(1 - skew, 1 + skew), f = random.between(0.8, 1.2), b = random.between(0.8, 1.5),
                   w = random.between(0.5, 1.2);
      s.push_back({.device = static_cast<std::size_t>(k), .forward = size * f, .backward_input = size * b, .backward_weight = size * w});
      forward += s.back().forward / stages;
    }
    const double memory = stages * random.between(1, 2);
    const pipeline_times p =
        chain_of(std::move(s), ratio * forward, microbatches, std::vector<double>(static_cast<std::size_t>(stages), memory));
    const auto makespan = [&](const orders_by_device& orders) { return replay_orders(p, orders).makespan; };
    const found_by_search found = automatic_orders(p, {.goal = order_goal::makespan});
    const std::array values{makespan(dispatched_orders(p, dispatch_rule::compact)), makespan(dispatched_orders(p, dispatch_rule::eager)),
                            makespan(zero_bubble_orders(p, order_goal::makespan)), makespan(found.orders)};
    const double best = *std::min_element(values.begin(), values.end());
    for (group* x : {&all, &by_ratio[static_cast<std::size_t>(g)]}) {
      ++x->pipelines;
      x->proven += found.optimal ? 1 : 0;
      x->gap += best / found.bound - 1;
      x->worst = std::max(x->worst, best / found.bound - 1);
      for (std::size_t k = 0; k < 4; ++k) {
        x->above[k] += values[k] / best - 1;
        bool alone = true;
        for (std::size_t o = 0; o < 4; ++o) alone = alone && (o == k || values[k] < values[o] * (1 - 1e-9));
        x->alone[k] += alone ? 1 : 0;
      }
    }
  }
  std::vector<row> csv{{"transfer / forward up to", "pipelines", "compact above best", "eager above best", "original above best",
                        "compact alone best", "eager alone best", "original alone best", "automatic alone best", "proven",
                        "mean gap to bound", "worst gap"}};
  const auto line = [&](const std::string& name, const group& g) {
    const double n = std::max(1, g.pipelines);
    const auto part = [&](double x) { return number("%.2f %%", 100 * x / n); };
    csv.push_back({name, std::to_string(g.pipelines), part(g.above[0]), part(g.above[1]), part(g.above[2]), part(g.alone[0]),
                   part(g.alone[1]), part(g.alone[2]), part(g.alone[3]), part(g.proven), part(g.gap), number("%.2f %%", 100 * g.worst)});
  };
  curve_panel panel{
      .title = "makespan above the best of the four", .x_axis = "log10 of transfer of a boundary / forward of a stage", .curves = {}};
  for (std::size_t k = 0; k < 3; ++k) {
    panel.curves.emplace_back();
    for (int g = 0; g < groups; ++g) {
      const double n = std::max(1, by_ratio[static_cast<std::size_t>(g)].pipelines);
      panel.curves.back().emplace_back(std::log10(0.02) + (g + 0.5) * 0.3, 100 * by_ratio[static_cast<std::size_t>(g)].above[k] / n);
    }
  }
  for (int g = 0; g < groups; ++g) line(number("%.3g", 0.02 * std::pow(10.0, (g + 1) * 0.3)), by_ratio[static_cast<std::size_t>(g)]);
  line("all", all);
  page.add_csv("deepcee.schedules.csv", csv);
  page.add_image("reproduction.deepcee.schedules.svg",
                 curves_svg({.title = "Schedules at equal memory",
                             .note = std::to_string(count) + " drawn pipelines of 2 to 8 stages",
                             .unit = "%",
                             .logarithmic = false},
                            {{names[0], plot_color(0)}, {names[1], plot_own}, {names[2], plot_color(2)}}, {panel}));
  const double n = std::max(1, all.pipelines);
  std::vector<row> rows{{"500 drawn pipelines, equal memory", "compact", "eager", "original", "automatic"}};
  rows.push_back({"alone the best", number("%.1f %%", 100 * all.alone[0] / n), number("%.1f %%", 100 * all.alone[1] / n),
                  number("%.1f %%", 100 * all.alone[2] / n), number("%.1f %%", 100 * all.alone[3] / n)});
  rows.push_back({"above the best, mean", number("%.2f %%", 100 * all.above[0] / n), number("%.2f %%", 100 * all.above[1] / n),
                  number("%.2f %%", 100 * all.above[2] / n), number("%.2f %%", 100 * all.above[3] / n)});
  page.add("schedules", markdown_table(rows, 1) + "\nThe best is " + number("%.2f %%", 100 * all.gap / n) +
                            " above the bound in the mean, " + number("%.1f %%", 100 * all.worst) + " at worst, and proven in " +
                            number("%.0f %%", 100 * all.proven / n) + ".\n");

  // The published configurations: cost is the longest span of a device.
  std::vector<row> published{
      {"F B W c", "stages", "microbatches", "memory", "published span", "ours", "bound", "proven", "makespan", "by"}};
  for (const test::zero_bubble_row& r : test::zero_bubble_rows()) {
    if (page.quick() && r.microbatches > 8) continue;
    const bool uneven = r.forward.front() != r.forward.back() || r.forward[0] != r.forward[1];
    const std::string name =
        (uneven ? "uneven" : to_text(r.forward[0]) + " " + to_text(r.backward_input[0]) + " " + to_text(r.backward_weight[0])) + " " +
        to_text(r.delay);
    const auto add = [&](const std::string& memory, const pipeline_times& p, double theirs, double bound) {
      const found_by_search f = automatic_orders(p, {.steps = page.quick() ? 100'000 : 60'000'000});
      published.push_back({name, std::to_string(r.devices), std::to_string(r.microbatches), memory, to_text(theirs),
                           number("%.9g", f.value), number("%.9g", std::max(bound, f.bound)), f.optimal ? "yes" : "no",
                           number("%.9g", replay_orders(p, f.orders).makespan), f.by});
    };
    constexpr std::array memories{"p", "1.5 p", "2 p", "none"};
    for (std::size_t c = 0; c < memories.size(); ++c) add(memories[c], r.pipeline(c), r.cost[c], r.bound[c]);
    constexpr std::array shapes{"ZB-V", "V-half", "V-min"};
    for (std::size_t v = 0; v < shapes.size(); ++v) {
      if (r.v_cost[v] != 0)
        add(shapes[v], r.v_pipeline(static_cast<double>(held_by(static_cast<v_schedule>(v), r.forward.size()))), r.v_cost[v], 0);
    }
  }
  page.add_csv("deepcee.published.csv", published);
}

}  // namespace bench
