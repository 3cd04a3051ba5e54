// SPDX-License-Identifier: BSL-1.0
#pragma once
/// EPARA beside whole systems: the testbed (Figs 10, 11, 13, 18e), many servers (Figs 14, 18a), GPUs to serve nearly all (Fig 15).

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "epara_setting.hpp"
#include "sections.hpp"

namespace bench {

inline std::string percent(double part) { return number("%.1f %%", 100 * part); }

/// "1.02" of "1.02 ± 0.02": the tables beside the page have both.
inline std::vector<row> without_deviations(std::vector<row> rows) {
  for (row& r : rows) {
    for (std::string& cell : r) cell.resize(std::min(cell.size(), cell.find(" ±")));
  }
  return rows;
}

inline constexpr std::array<std::string_view, 4> testbed_baselines = {"interedge", "alpaserve", "galaxy", "serv-p"};
inline constexpr std::array<std::string_view, 6> all_baselines = {"interedge", "alpaserve", "galaxy", "serv-p", "usher", "detransformer"};

/// About as many requests, within 5 and 1000 seconds.
inline double duration_s(const workload& w, double per_s, bool quick) {
  const double requests = quick ? 300 : 20'000;
  return std::clamp(requests / (per_s * static_cast<double>(w.services().size())), 5.0, quick ? 20.0 : 1000.0);
}
inline double duration_s(const workload& w, const hetplan::serve::edge_cloud& c, double load, bool quick) {
  return duration_s(w, rate_of(w, load, gpus_of(c)), quick);
}
inline demand demand_of(const workload& w, const hetplan::serve::edge_cloud& c, double load, bool quick, seed_pair seeds,
                        double cv = burstiness) {
  const double per_s = rate_of(w, load, gpus_of(c));
  return {w, c, per_s, duration_s(w, per_s, quick), seeds, cv};
}

/// EPARA's credit a second, the share of what is asked that it serves, and its ratio to each of the baselines.
template <class Baselines>
[[nodiscard]] std::vector<double> beside(const Baselines& baselines, const workload& w, const hetplan::serve::edge_cloud& c,
                                         const demand& d) {
  const auto h = play("epara", w, c, d).history;
  const double ours = h.credit() / d.duration_s;
  std::vector<double> figures{ours, h.attainment()};
  for (const auto b : baselines) figures.push_back(over(ours, goodput(b, w, c, d)));
  return figures;
}

/// Figs 10 and 11, and 18e.
inline void add_testbed(const sections& page) {
  const auto cloud = testbed();
  const std::vector<double> loads = page.quick() ? std::vector<double>{1} : std::vector<double>{0.1, 0.25, 0.5, 1, 2, 4, 10};
  const std::array<std::string_view, 5> printed = {"2.1, 2.2, 2.5, 3.2", "1.9, 2.2, 2.6, 3.9", "", "1.9, 2.2, 2.6, 3.9", ""};
  std::vector<row> rows{
      {"workload", "load", "run", "EPARA, credit/s", "of what is asked", "over InterEdge", "AlpaServe", "Galaxy", "SERV-P"}};
  std::vector<row> most{{"workload", "paper, up to", "InterEdge", "AlpaServe", "Galaxy", "SERV-P", "kept above the maximum"}};
  std::size_t n = 0;
  for (const auto& w : testbed_workloads()) {
    std::array<const spread*, 4> best = {};
    std::vector<std::vector<spread>> by_load;
    for (const double load : loads)
      by_load.push_back(over_seed_pairs(
          page, [&](seed_pair seeds) { return beside(testbed_baselines, w, cloud, demand_of(w, cloud, load, page.quick(), seeds)); }));
    double maximum = 0;
    double kept = 1;
    for (std::size_t k = 0; k < loads.size(); ++k) {
      const auto& figures = by_load[k];
      rows.push_back({w.name, number("%g", loads[k]), number("%.4g s", duration_s(w, cloud, loads[k], page.quick())), figures[0].text(3),
                      figures[1].percent()});
      for (std::size_t b = 0; b < best.size(); ++b) {
        const spread& ratio = figures[2 + b];
        rows.back().push_back(ratio.text(2));
        if (best[b] == nullptr || ratio.mean() > best[b]->mean()) best[b] = &ratio;
      }
      if (maximum > 0) kept = std::min(kept, figures[0].mean() / maximum);
      maximum = std::max(maximum, figures[0].mean());
    }
    most.push_back({w.name, std::string(printed.at(n++))});
    for (const spread* b : best) most.back().push_back(b->text(2));
    most.back().push_back(percent(kept));
  }
  page.add_csv("epara.testbed.csv", rows);
  page.add("testbed-most", markdown_table(without_deviations(most)));
}

/// How much is served of what is asked far below capacity, by how bursty arrivals are.
inline void add_burstiness(const sections& page) {
  const auto cloud = testbed();
  const std::vector<double> cvs = page.quick() ? std::vector<double>{3} : std::vector<double>{0, 1, 3};
  std::vector<row> rows{{"workload, load", "run", "evenly spaced", "Poisson", "coefficient of variation 3"}};
  for (const auto& w : testbed_workloads()) {
    for (const double load : {0.1, 0.25}) {
      rows.push_back({w.name + number(", %g", load), number("%.4g s", duration_s(w, cloud, load, page.quick()))});
      for (const double cv : cvs)
        rows.back().push_back(over_seed_pairs(page,
                                              [&](seed_pair seeds) {
                                                const auto d = demand_of(w, cloud, load, page.quick(), seeds, cv);
                                                return std::vector{play("epara", w, cloud, d).history.attainment()};
                                              })
                                  .front()
                                  .percent());
    }
  }
  page.add_csv("epara.burstiness.csv", rows);
}

/// Shares of compute and memory that a deployment gives away.
inline std::array<double, 2> given_away(const workload& w, const hetplan::serve::edge_cloud& c, const hetplan::serve::deployment& d,
                                        bool alone) {
  std::array<double, 2> sum = {};
  std::set<hetplan::serve::gpu_slot> used;
  for (const auto& i : d.instances) {
    const auto& v = w.services()[i.what.index()].variants[static_cast<std::size_t>(i.variant)];
    sum[0] += static_cast<double>(i.gpus.size()) * (alone ? 1 : v.compute_share);
    sum[1] += static_cast<double>(i.gpus.size()) * v.memory.value() / c.servers[0].gpus[0].memory.value();
  }
  return {sum[0] / gpus_of(c), sum[1] / gpus_of(c)};
}

/// Fig 13.
inline void add_utilisation(const sections& page) {
  const auto cloud = testbed();
  const auto w = std::move(testbed_workloads().front());
  std::vector<row> rows{{"system", "compute given away", "memory given away", "GPU time of what is served"}};
  for (const std::string_view system : {"epara", "interedge", "alpaserve", "galaxy", "serv-p"}) {
    const auto figures = over_seed_pairs(page, [&](seed_pair seeds) {
      const auto d = demand_of(w, cloud, 4, page.quick(), seeds);
      const auto p = play(system, w, cloud, d);
      const auto [compute, memory] = given_away(w, cloud, p.first, system == "galaxy");
      double busy_s = 0;
      for (std::size_t l = 0; l < w.services().size(); ++l) busy_s += p.history.services[l].credit / credit_of(w, l) * gpu_seconds(w, l);
      return std::vector{compute, memory, busy_s / d.duration_s / gpus_of(cloud)};
    });
    rows.push_back({std::string(system)});
    for (const spread& f : figures) rows.back().push_back(f.percent());
  }
  page.add_csv("epara.utilisation.csv", rows);
}

/// Fig 14: servers with eight P100s.
inline void add_many_servers(const sections& page) {
  const std::vector<int> sizes = page.quick() ? std::vector<int>{2} : std::vector<int>{10, 20, 50};
  const std::array<std::string_view, 5> printed = {"1.6-2.4", "2.8-3.1", "1.5-2.0", "2.8-3.1", "1.5-2.0"};
  std::vector<row> rows{{"workload", "paper", "servers", "run", "EPARA, credit/s", "of what is asked", "over InterEdge", "AlpaServe",
                         "Galaxy", "SERV-P", "USHER", "DeTransformer"}};
  std::size_t n = 0;
  for (const auto& w : table_1()) {
    for (const int servers : sizes) {
      const auto cloud = hetplan::zoo::p100_cloud(servers);
      const auto figures = over_seed_pairs(
          page, [&](seed_pair seeds) { return beside(all_baselines, w, cloud, demand_of(w, cloud, 1, page.quick(), seeds)); });
      rows.push_back({w.name, std::string(printed.at(n)), std::to_string(servers), number("%.4g s", duration_s(w, cloud, 1, page.quick())),
                      figures[0].text(3), figures[1].percent()});
      for (std::size_t k = 2; k < figures.size(); ++k) rows.back().push_back(figures[k].text(2));
    }
    ++n;
  }
  page.add_csv("epara.many-servers.csv", rows);
  std::vector<row> spans{{"workload", "paper", "over InterEdge", "AlpaServe", "Galaxy", "SERV-P", "USHER", "DeTransformer"}};
  for (std::size_t r = 1; r < rows.size(); r += sizes.size()) {
    spans.push_back({rows[r][0], rows[r][1]});
    for (std::size_t k = 6; k < rows[r].size(); ++k)
      spans.back().push_back(span_of(rows, k, [&](const row& x) { return x[0] == rows[r][0]; }).text("%.2f"));
  }
  page.add("many-servers", markdown_table(spans));
}

/// The fewest GPUs a server that serve this share of a demand, and how many of them are used in all; none up to `most`.
struct sized {
  int per_server;
  std::size_t used;
};
inline std::optional<sized> gpus_to_serve(std::string_view system, const workload& w, int servers, const demand& d, double share,
                                          int most) {
  const auto try_with = [&](int gpus) -> std::optional<sized> {
    const auto p = play(system, w, hetplan::zoo::p100_cloud(servers, gpus), d);
    if (p.history.attainment() < share) return std::nullopt;
    std::set<hetplan::serve::gpu_slot> used;
    for (const auto& i : p.first.instances) used.insert(i.gpus.begin(), i.gpus.end());
    return sized{gpus, used.size()};
  };
  std::optional<sized> enough;
  int few = 0;
  for (int gpus = 1; gpus <= most && !enough; gpus *= 2) {
    enough = try_with(gpus);
    if (!enough) few = gpus;
  }
  while (enough && enough->per_server - few > 1) {
    const int middle = (few + enough->per_server) / 2;
    if (const auto e = try_with(middle)) enough = e;
    else few = middle;
  }
  return enough;
}

/// Fig 15.
inline void add_sizes(const sections& page) {
  constexpr int servers = 10, most = 64;
  constexpr double share = 0.99;
  std::vector<row> rows{{"workload", "run", "EPARA, GPUs used", "InterEdge", "AlpaServe", "Galaxy", "SERV-P", "USHER", "DeTransformer"}};
  const auto cloud = hetplan::zoo::p100_cloud(servers);
  for (const auto& w : table_1()) {
    const auto figures = over_seed_pairs(page, [&](seed_pair seeds) {
      const auto d = demand_of(w, cloud, 0.5, page.quick(), seeds);
      std::vector<double> used;
      const auto add = [&](std::string_view system) {
        const auto enough = gpus_to_serve(system, w, servers, d, share, most);
        used.push_back(enough ? static_cast<double>(enough->used) : std::numeric_limits<double>::quiet_NaN());
      };
      add("epara");
      for (const auto b : all_baselines) page.quick() ? used.push_back(used.front()) : add(b);
      return used;
    });
    rows.push_back({w.name, number("%.4g s", duration_s(w, cloud, 0.5, page.quick()))});
    for (const spread& f : figures) rows.back().push_back(f.text(0, "more"));
    if (page.quick()) break;
  }
  page.add_csv("epara.sizes.csv", rows);
}

}  // namespace bench
