// SPDX-License-Identifier: BSL-1.0
#pragma once
/// EPARA where there are many servers or devices (Fig 18), and where something fails (Fig 19).

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/recipes/epara.hpp>

#include "epara_setting.hpp"
#include "epara_systems.hpp"
#include "sections.hpp"

namespace bench {

/// Fig 18a: one ring of all, and rings of 100.
inline void add_groups(const sections& page) {
  const std::vector<int> sizes = page.quick() ? std::vector<int>{2} : std::vector<int>{50, 100, 200, 400};
  const auto w = std::move(table_1().front());
  std::vector<row> rows{{"servers", "credit/s a server, one ring", "offloads", "rings of 100", "offloads"}};
  for (const int servers : sizes) {
    rows.push_back({std::to_string(servers)});
    for (const int group : {servers, 100}) {
      const auto cloud = hetplan::zoo::p100_cloud(servers, 8, hetplan::seconds(0.1), group);
      const auto figures = over_seed_pairs(page, [&](seed_pair seeds) {
        const demand d(w, cloud, rate_of(w, 1, gpus_of(cloud)), page.quick() ? 5 : 30, seeds);
        const auto h = play("epara", w, cloud, d).history;
        return std::vector{h.credit() / d.duration_s / servers, h.mean_offloads()};
      });
      rows.back().push_back(figures[0].text(1));
      rows.back().push_back(figures[1].text(2));
    }
  }
  page.add_csv("epara.rings.csv", rows);
}

/// P100s, and devices that are 40 times as slow.
struct with_devices {
  hetplan::serve::roofline_service_time p100;

  /// The same service on a whole P100, and how much longer it takes.
  template <class Ask>
  [[nodiscard]] hetplan::seconds ask(const hetplan::serve::service_run& r, const Ask& on) const {
    if (r.as.gpu_kind == "P100") return on(r);
    hetplan::serve::service_variant whole = r.as;
    whole.gpu_kind = "P100";
    return on({r.what, whole, r.id, r.variant}) * 40.0;
  }
  [[nodiscard]] hetplan::seconds pass(const hetplan::serve::service_run& r, const hetplan::serve::batch_load& b) const {
    return ask(r, [&](const hetplan::serve::service_run& on) { return p100.pass(on, b); });
  }
  [[nodiscard]] hetplan::seconds step(const hetplan::serve::service_run& r, int requests) const {
    return ask(r, [&](const hetplan::serve::service_run& on) { return p100.step(on, requests); });
  }
  [[nodiscard]] int largest_batch(const hetplan::serve::service_run& r) const {
    return r.as.gpu_kind == "P100" ? p100.largest_batch(r) : 8;
  }
};

/// Figs 18c and 18d: one server with a P100, and devices that lend it theirs.
inline void add_devices(const sections& page) {
  const std::vector<int> counts = page.quick() ? std::vector<int>{2} : std::vector<int>{0, 10, 30, 100, 300};
  const workload w("pictures", {"mobilenetv2.picture", "resnet50.picture"});
  auto services = w.services();
  for (auto& s : services) s.variants.push_back({.name = "device", .gpu_kind = "nano", .memory = hetplan::bytes(1e9)});
  const double mean_b = (services[0].weights.value() + services[1].weights.value()) / 2;
  std::vector<row> rows{{"devices", "credit/s", "over none", "instances on devices", "loaded one after the other at 1 Gbit/s"}};
  spread none;
  for (const int count : counts) {
    auto cloud = hetplan::zoo::p100_cloud(1, 1);
    for (int n = 0; n < count; ++n)
      cloud.servers[0].devices.push_back({.name = "device" + std::to_string(n),
                                          .unit = {"nano", hetplan::bytes(4e9)},
                                          .bandwidth = hetplan::bytes_per_second(100e6 / 8),
                                          .latency = hetplan::seconds(2e-3)});
    const auto figures = over_seed_pairs(page, [&](seed_pair seeds) {
      const demand d(w, cloud, rate_of(w, 6, 1), page.quick() ? 1 : 10, seeds);
      const auto p = serve_with(hetplan::recipes::epara(services), cloud, services, with_devices{w.of.times}, d.requests, d.before,
                                hetplan::seconds(d.duration_s));
      const auto lent = std::ranges::count_if(p.first.instances, [](const auto& i) { return i.device.has_value(); });
      return std::vector{p.history.credit() / d.duration_s, static_cast<double>(lent)};
    });
    if (count == counts.front()) none = figures[0];
    rows.push_back({std::to_string(count), figures[0].text(3), number("%.2f", figures[0].mean() / none.mean()), figures[1].text(0),
                    number("%.2g s", figures[1].mean() * mean_b / 125e6)});
  }
  page.add_csv("epara.devices.csv", rows);
}

/// Credit and offloads of requests by the third of the time in which they arrived.
struct thirds {
  std::array<double, 3> credit = {}, requests = {}, offloads = {};
  std::uint64_t failed = 0;
};
inline thirds play_faults(const workload& w, const hetplan::serve::edge_cloud& c, const demand& d,
                          std::vector<hetplan::serve::serving_fault> faults) {
  hetplan::serve::serving_options options{.faults = std::move(faults), .detail = hetplan::serve::history_detail::records};
  const auto h = serve_with(hetplan::recipes::epara(w.services()), c, w.services(), w.of.times, d.requests, d.before,
                            hetplan::seconds(d.duration_s), hetplan::seconds(d.duration_s / 6), options)
                     .history;
  thirds t;
  for (std::size_t i = 0; i < h.records.size(); ++i) {
    const auto third = std::min<std::size_t>(
        2, static_cast<std::size_t>(3 * d.requests[static_cast<hetplan::serve::request_number>(i)].arrival_s / d.duration_s));
    t.credit[third] += h.records[i].credit;
    t.offloads[third] += h.records[i].offloads;
    t.requests[third] += 1;
  }
  t.failed = h.count(hetplan::serve::request_outcome::failed) + h.count(hetplan::serve::request_outcome::lost);
  return t;
}

/// Fig 19: placed anew every sixth of the time, so once between the fault and the last third.
inline void add_faults(const sections& page) {
  using namespace hetplan::serve;
  const auto cloud = hetplan::zoo::p100_cloud(page.quick() ? 2 : 10);
  const auto w = std::move(table_1().front());
  const double length_s = page.quick() ? 20 : 300;
  const auto from = hetplan::seconds(length_s / 3), until = hetplan::seconds(length_s * 2 / 3);
  const server_id first(0), last(cloud.size() - 1);
  const std::vector<std::pair<std::string, std::vector<serving_fault>>> cases = {
      {"none", {}},
      {"silent errors at two servers, the middle third", {{from, first, wrong_state{until}}, {from, last, wrong_state{until}}}},
      {"a busy server is not heard of, the middle third", {{from, first, ring_cut{until}}, {from, last, ring_cut{until}}}},
      {"a GPU of a busy server fails", {{from, first, gpu_fails{0}}}},
      {"a server fails", {{from, last, server_fails{}}}},
  };
  std::vector<row> rows{{"fault", "credit of the first third", "middle", "last", "offloads a request", "middle", "last", "failed or lost"}};
  const auto figures = over_seed_pairs(page, [&](seed_pair seeds) {
    const demand d(w, cloud, rate_of(w, 0.5, gpus_of(cloud)), length_s, seeds);
    std::vector<double> all;
    thirds sound;
    for (const auto& [name, faults] : cases) {
      const auto t = play_faults(w, cloud, d, faults);
      if (faults.empty()) sound = t;
      for (std::size_t k = 0; k < 3; ++k) all.push_back(t.credit[k] / sound.credit[k]);
      for (std::size_t k = 0; k < 3; ++k) all.push_back(t.offloads[k] / t.requests[k]);
      all.push_back(static_cast<double>(t.failed));
    }
    return all;
  });
  for (std::size_t c = 0; c < cases.size(); ++c) {
    const spread* f = &figures[7 * c];
    rows.push_back(
        {cases[c].first, f[0].percent(), f[1].percent(), f[2].percent(), f[3].text(2), f[4].text(2), f[5].text(2), f[6].text(0)});
  }
  page.add_csv("epara.faults.csv", rows);
}

}  // namespace bench
