// SPDX-License-Identifier: BSL-1.0
#pragma once
/// EPARA's parts: the allocator (sections 4.3 and 5.3.4, Figs 16 and 20), the handler, placement and synchronisation (Fig 17).

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/recipes/epara.hpp>
#include <hetplan/serve/fluid_goodput.hpp>

#include "epara_setting.hpp"
#include "epara_systems.hpp"
#include "sections.hpp"

namespace bench {

/// Tokens a second of section 4.3, by the zoo's roofline: what a step reads is what decides.
inline void add_token_rates(const sections& page) {
  using namespace hetplan;
  struct model {
    const char *name, *how;
    double paper, read_GB, gflop, operators;
    int stages;
  };
  const std::array<model, 6> models{
      {{"Qwen2.5-1.5B, BS2", "16 bits", 87, 3.08, 3.08, 280, 1},
       {"Llama3-8B, BS2", "16 bits", 24, 16.06, 16.06, 320, 1},
       {"DeepSeekV2-16B, BS2+PP2", "16 bits, all experts (the zoo's)", 46, 31.4, 4.8, 400, 2},
       {"DeepSeekV2-16B, BS2+PP2", "16 bits, the experts of two tokens", 46, 9.6, 4.8, 400, 2},
       {"Qwen2.5-32B, BS2+PP2", "16 bits (the zoo's): 65 GB, which two P100s do not hold", 24, 65, 65, 640, 2},
       {"Qwen2.5-32B, BS2+PP2", "4 bits", 24, 16.25, 65, 640, 2}}};
  std::vector<row> rows{{"model", "weights that a step reads", "paper, tokens/s", "ours"}};
  for (const auto& m : models) {
    const serve::gpu_speed p100{.compute = flops_per_second(0.5 * 18.7e12),
                                .memory = bytes_per_second(0.55 * 732e9),
                                .launch = 8_us,
                                .link = bytes_per_second(10e9),
                                .network = 10_Gbit_per_s,
                                .network_latency = 30_us};
    const serve::roofline_service_time times({{"P100", p100}}, {{.per_token = flops(1e9 * m.gflop),
                                                                 .weights = bytes(1e9 * m.read_GB),
                                                                 .exchanged = 10_kB,
                                                                 .operators = static_cast<int>(m.operators)}});
    const serve::service s{.name = m.name, .latency = 1_s, .generates = true, .tokens = {512, 64}};
    const serve::service_variant v{.name = "v", .gpu_kind = "P100", .pipeline_parallel = m.stages, .memory = 16_GB};
    rows.push_back({m.name, m.how, number("%g", m.paper), number("%.0f", 1 / times.step({s, v, service_id(0), 0}, 2).value())});
  }
  page.add_csv("epara.token-rates.csv", rows);
}

inline std::string operators_of(const hetplan::serve::service& s, const hetplan::serve::allocation& a) {
  const auto& v = s.variants[static_cast<std::size_t>(a.variant)];
  std::string text = "BS" + std::to_string(a.batch);
  if (v.tensor_parallel > 1) text += "+TP" + std::to_string(v.tensor_parallel);
  if (v.pipeline_parallel > 1) text += "+PP" + std::to_string(v.pipeline_parallel);
  if (a.frames > 1) text += "+MF" + std::to_string(a.frames);
  if (a.groups > 1) text += "+DP" + std::to_string(a.groups);
  if (a.replicas > 1) text += "+MT" + std::to_string(a.replicas);
  return text;
}

/// On one P100 where that is enough, else on the four of the testbed.
inline hetplan::serve::allocation on_testbed(const workload& w, std::size_t l, const hetplan::serve::parallelism_operators& o = {}) {
  const auto unit = testbed().servers[0].gpus[0];
  const auto one = hetplan::serve::allocate(service_id(l), w.services()[l], {unit, 1}, w.of.times, o);
  if (one && one->meets_slo) return *one;
  const auto four = hetplan::serve::allocate(service_id(l), w.services()[l], {unit, 4, true}, w.of.times, o);
  return four ? *four : *hetplan::serve::allocate(service_id(l), w.services()[l], {unit, 8}, w.of.times, o);
}

inline void add_configurations(const sections& page) {
  const std::array<std::array<const char*, 2>, 14> printed{{{"llama3-8b.chat", "BS4+TP2"},
                                                            {"deepseekv2-16b.chat", "BS4+TP2"},
                                                            {"qwen2.5-32b.chat", "BS4+TP2+PP2"},
                                                            {"qwen2.5-1.5b.talk", "BS2+MF1+MT2"},
                                                            {"llama3-8b.talk", "BS2+DP2"},
                                                            {"deepseekv2-16b.talk", "BS4+PP2 or BS2+PP2, DP2"},
                                                            {"unet.picture", "BS8"},
                                                            {"deeplabv3plus.picture", "BS4"},
                                                            {"sctnet.picture", "BS4"},
                                                            {"maskformer.picture", "BS8+TP2"},
                                                            {"omg-seg.picture", "BS4+TP2"},
                                                            {"unet.video", "BS8+MF4"},
                                                            {"deeplabv3plus.video", "BS4+MF4+DP2"},
                                                            {"sctnet.video", "BS4+MF4+DP2"}}};
  std::vector<std::string_view> names;
  for (const auto& p : printed) names.push_back(p[0]);
  const workload w("", names);
  std::vector<row> rows{{"service", "paper", "on the testbed", "on a server with eight P100s", "a GPU a second", "without operators"}};
  const auto unit = testbed().servers[0].gpus[0];
  for (std::size_t l = 0; l < names.size(); ++l) {
    const auto& s = w.services()[l];
    const auto four = on_testbed(w, l);
    const auto eight = *hetplan::serve::allocate(service_id(l), s, {unit, 8}, w.of.times);
    const auto none = hetplan::serve::allocate(service_id(l), s, {unit, 8}, w.of.times, without_operators(s));
    rows.push_back({s.name, printed.at(l)[1], operators_of(s, four) + (four.meets_slo ? "" : ", misses its SLO"), operators_of(s, eight),
                    number("%.3g", eight.capacity / eight.gpus), number("%.3g", none->capacity / none->gpus)});
  }
  page.add_csv("epara.configurations.csv", rows);
}

/// Fig 16: requests (frames) a second and GPU.
inline void add_allocator(const sections& page) {
  const std::array<const char*, 4> printed = {"5.9-12.4", "2.3-9.1", "1.3-2.5", "2.9-4.5"};
  const auto unit = testbed().servers[0].gpus[0];
  std::vector<row> rows{{"category", "paper", "least", "geometric mean", "most", "of them as needed to fit or be in time"}};
  const auto all = table_1();
  for (std::size_t n = 1; n < all.size(); ++n) {
    const auto& w = all[n];
    double least = 1e9, most = 0, log_sum = 0;
    std::size_t which_most = 0, cut = 0;
    for (std::size_t l = 0; l < w.services().size(); ++l) {
      const auto& s = w.services()[l];
      const auto with = *hetplan::serve::allocate(service_id(l), s, {unit, 8}, w.of.times);
      const auto none = *hetplan::serve::allocate(service_id(l), s, {unit, 8}, w.of.times, without_operators(s));
      if (none.gpu_count(s) > 1) ++cut;
      const double gain = with.capacity / with.gpus * none.gpus / none.capacity;
      if (gain > most) which_most = l;
      least = std::min(least, gain);
      most = std::max(most, gain);
      log_sum += std::log(gain);
    }
    rows.push_back(
        {w.name, printed.at(n - 1), number("%.2f", least), number("%.2f", std::exp(log_sum / static_cast<double>(w.services().size()))),
         number("%.1f (", most) + w.services()[which_most].name + ")", std::to_string(cut) + " of " + std::to_string(w.services().size())});
  }
  page.add("allocator", markdown_table(rows));
}

/// Fig 17a: all where they enter, and passed on.
inline void add_handling(const sections& page) {
  const auto cloud = hetplan::zoo::p100_cloud(page.quick() ? 2 : 10);
  const std::array<const char*, 4> printed = {"2.2-2.4", "2.2-2.4", "2.9-3.1", "2.9-3.1"};
  std::vector<row> rows{{"category", "paper", "load 0.5", "load 1", "load 2", "placed for the first hop: load 1"}};
  const auto all = table_1();
  for (std::size_t n = 1; n < all.size(); ++n) {
    const auto& w = all[n];
    rows.push_back({w.name, printed.at(n - 1)});
    std::string placed_for_it;
    for (const double load : {0.5, 1.0, 2.0}) {
      const auto figures = over_seed_pairs(page, [&](seed_pair seeds) {
        const auto d = demand_of(w, cloud, load, page.quick(), seeds);
        const double ours = goodput("epara", w, cloud, d);
        std::vector<double> ratios;
        for (const auto reach : {hetplan::serve::handling_reach::ring, hetplan::serve::handling_reach::own_server}) {
          const auto system = hetplan::recipes::epara(w.services(), {.most_offloads = 0, .placement = {.reach = reach}});
          const auto first_hop = serve_with(system, cloud, w.services(), w.of.times, d.requests, d.before, hetplan::seconds(d.duration_s));
          ratios.push_back(over(ours, first_hop.history.credit() / d.duration_s));
        }
        return ratios;
      });
      rows.back().push_back(figures[0].text(2));
      if (load == 1) placed_for_it = figures[1].text(2);
    }
    rows.back().push_back(placed_for_it);
  }
  page.add_csv("epara.handling.csv", rows);
  page.add("handling", markdown_table(without_deviations(rows)));
}

/// Fig 17b.
inline void add_placement(const sections& page) {
  const auto cloud = hetplan::zoo::p100_cloud(page.quick() ? 2 : 10);
  std::vector<row> rows{{"workload", "load", "EPARA, credit/s", "over LRU", "LFU", "MFU"}};
  for (const auto& w : table_1()) {
    for (const double load : {0.5, 1.0, 2.0}) {
      const auto figures = over_seed_pairs(page, [&](seed_pair seeds) {
        return beside(std::array<std::string_view, 3>{"lru", "lfu", "mfu"}, w, cloud, demand_of(w, cloud, load, page.quick(), seeds));
      });
      rows.push_back({w.name, number("%g", load), figures[0].text(3)});
      for (std::size_t k = 2; k < figures.size(); ++k) rows.back().push_back(figures[k].text(2));
    }
  }
  page.add_csv("epara.placement.csv", rows);
  std::vector<row> spans{{"workload", "over LRU", "LFU", "MFU"}};
  for (const auto& w : table_1()) {
    spans.push_back({w.name});
    for (std::size_t k = 3; k < 6; ++k) spans.back().push_back(span_of(rows, k, [&](const row& x) { return x[0] == w.name; }).text("%.2f"));
  }
  page.add("placement", markdown_table(spans, 1));
}

/// Fig 17c.
inline void add_placement_time(const sections& page) {
  const std::vector<int> sizes = page.quick() ? std::vector<int>{2} : std::vector<int>{10, 100, 1000, 10'000};
  const auto all = table_1();
  const auto& w = all[0];
  std::vector<row> rows{{"servers with eight P100s", "instances placed", "by gain, arrivals even", "as shipped: the best of six"}};
  for (const int servers : sizes) {
    const auto cloud = hetplan::zoo::p100_cloud(servers);
    const double per_s = rate_of(w, 1, gpus_of(cloud));
    hetplan::serve::service_demand asked(cloud.size(), w.services().size());
    for (const auto& r : arrivals(w, cloud, per_s, 1).rates) asked.set(r.server, r.service, r.per_s * credit_of(w, r.service.index()));
    const hetplan::serve::any_service_time times(w.of.times);
    const hetplan::serve::placement_question q{cloud, w.services(), times, {}, {}, {}, {}};
    std::size_t placed = 0;
    const double one_s = seconds_of([&] {
      return placed =
                 place_submodular(q, asked, {.arrivals = hetplan::serve::arrival_model::even, .order = hetplan::serve::greedy_order::gain})
                     .placed.instances.size();
    });
    const auto both = [&] { return place_submodular(q, asked).placed.instances.size(); };
    rows.push_back({std::to_string(servers), std::to_string(placed), number("%.2g s", one_s),
                    servers <= 1000 ? number("%.2g s", seconds_of(both)) : "-"});
  }
  page.add_csv("epara.placement-time.timed.csv", rows);
}

/// Fig 17d: a step of the ring hands on what is known of all servers; news goes around in half as many steps as there are servers.
inline void add_synchronisation(const sections& page) {
  constexpr double state_b = 32, services = 32;
  std::vector<row> rows{{"servers", "a message", "50 Mbit/s", "500 Mbit/s", "10 Gbit/s"}};
  for (const double servers : {10.0, 100.0, 1000.0, 10'000.0}) {
    const double message_b = servers * services * state_b;
    rows.push_back({number("%g", servers), number("%.4g kB", message_b / 1e3)});
    for (const double bit_per_s : {50e6, 500e6, 10e9})
      rows.back().push_back(number("%.3g s", std::floor(servers / 2) * (message_b * 8 / bit_per_s)));
  }
  page.add_csv("epara.synchronisation.csv", rows);
}

/// Fig 17e.
inline void add_staleness(const sections& page) {
  const auto all = table_1();
  const int servers = page.quick() ? 2 : 10;
  const std::vector<double> periods = page.quick() ? std::vector<double>{0.1} : std::vector<double>{0.01, 0.1, 1, 2, 10};
  std::vector<row> rows{{"period", "mixed, load 0.5: offloads a request", "of what is asked", "mixed, load 1: offloads a request",
                         "of what is asked", "<= 1 GPU, latency, load 1: offloads a request", "of what is asked"}};
  for (const double period : periods) {
    const auto cloud = hetplan::zoo::p100_cloud(servers, 8, hetplan::seconds(period));
    rows.push_back({number("%g s", period)});
    for (const auto& [n, load] : {std::pair{0, 0.5}, {0, 1.0}, {2, 1.0}}) {
      const auto& w = all[static_cast<std::size_t>(n)];
      const auto figures = over_seed_pairs(page, [&](seed_pair seeds) {
        const auto h = play("epara", w, cloud, demand_of(w, cloud, load, page.quick(), seeds)).history;
        return std::vector{h.mean_offloads(), h.attainment()};
      });
      rows.back().push_back(figures[0].text(2));
      rows.back().push_back(figures[1].percent());
    }
  }
  page.add_csv("epara.staleness.csv", rows);
}

}  // namespace bench
