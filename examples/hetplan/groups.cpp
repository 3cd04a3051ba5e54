// SPDX-License-Identifier: BSL-1.0
#include <cstdio>
#include <iostream>

#include <hetplan/coarsen/device_groups.hpp>
#include <hetplan/draw/groups_chart.hpp>
#include <hetplan/draw/svg.hpp>
#include <hetplan/io/results_json.hpp>

#include "commands.hpp"
#include "outputs.hpp"

namespace cli {

using namespace hetplan;

namespace {

void print(const coarsen::device_groups& g, const cluster& c, const draw::groups_source& from) {
  std::printf("%s: %zu devices, %zu %s by messages of %s\n", escaped(c.name()).c_str(), c.size(), g.regions.size(),
              g.regions.size() == 1 ? "region" : "regions", readable(from.message).c_str());
  for (std::size_t r = 0; r < g.regions.size(); ++r) {
    const coarsen::device_region& region = g.regions[r];
    std::printf("region %zu: %zu %s", r + 1, region.devices.size(), region.devices.size() == 1 ? "device" : "devices");
    if (region.devices.size() > 1) std::printf(", %s apart", readable(seconds(region.inner_s)).c_str());
    if (const auto nearest = g.nearest_region(r))
      std::printf("; region %zu is nearest, %s away", *nearest + 1, readable(seconds(g.distance_s(r, *nearest))).c_str());
    std::printf("\n");
    for (std::size_t k = 0; k < region.classes.size(); ++k) {
      const auto& devices = region.classes[k];
      double score = 0;
      for (const device_id d : devices) score += g.scores[d.index()] / static_cast<double>(devices.size());
      std::printf("  %-5s %14s ", draw::detail::class_name(r, k).c_str(), draw::engineering(score, from.score_unit).c_str());
      for (const device_id d : devices) std::printf(" %s", escaped(c[d].name).c_str());
      std::printf("\n");
    }
  }
}

}  // namespace

int groups(const common_options& options, const groups_options& o) {
  draw::groups_source from{.message = bytes(read_amount("--bytes", o.message, io::dimension_of<bytes>, io::range::at_least_zero, "1 MB"))};
  outputs files({{"--html", o.html}}, {o.cluster, o.model});
  if (o.model.empty()) require_no_model_options(options, "a cluster");
  const cluster c = load_cluster(o.cluster);
  std::vector<double> scores;
  if (o.model.empty()) {
    scores = coarsen::compute_scores(c.devices());
  } else {
    const planning_graph model = load_model(options, o.model);
    check_pair(model, c, o.cluster, workload{});
    scores = coarsen::compute_scores(c.devices(), profiled_or_roofline{}, model, mode::training, job().batch);
    from.score_unit = "samples/s";
  }
  const coarsen::device_groups g = coarsen::group_devices(c, from.message, scores, from.thresholds);
  if (!o.html.empty()) files.put(o.html, draw::groups_report_html(g, c, from));
  if (options.json) {
    std::cout << io::write_groups(g, c);
  } else {
    print(g, c, from);
  }
  files.commit();
  return 0;
}

}  // namespace cli
