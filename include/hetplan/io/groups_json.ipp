// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/groups_json.hpp>

#include <cmath>
#include <cstddef>
#include <vector>

#include <hetplan/io/json_text.hpp>

namespace hetplan::io {

HETPLAN_INLINE std::string write_groups(const coarsen::device_groups& g, const cluster& c) {
  const auto names = [&](const std::vector<device_id>& devices) {
    json list = json::array();
    for (const device_id d : devices) list.push_back(c[d].name);
    return list;
  };
  json o;
  o["regions"] = json::array();
  for (const coarsen::device_region& r : g.regions) {
    json x;
    x["devices"] = names(r.devices);
    put(x, "distance", r.inner_s);
    x["classes"] = json::array();
    for (const auto& devices : r.classes) x["classes"].push_back(names(devices));
    o["regions"].push_back(std::move(x));
  }
  o["devices"] = json::array();
  for (const device& d : c.devices()) o["devices"].push_back(d.name);
  o["scores"] = json::array();
  for (const double score : g.scores) o["scores"].push_back(json_number(score));
  o["merges"] = json::array();
  for (std::size_t m = 0; m < g.merges.size(); ++m) {
    json x;
    x["nodes"] = {g.merges[m].left, g.merges[m].right};
    put(x, "distance", g.merges[m].height);
    x["inside"] = m < g.merges_inside();
    o["merges"].push_back(std::move(x));
  }
  o["distances"] = json::array();
  for (std::size_t a = 0; a < c.size(); ++a) {
    json row = json::array();
    for (std::size_t b = 0; b < c.size(); ++b) {
      const double d = g.distances(a, b);
      row.push_back(std::isfinite(d) ? json_number(d) : json());
    }
    o["distances"].push_back(std::move(row));
  }
  return json_text(o);
}

}  // namespace hetplan::io
