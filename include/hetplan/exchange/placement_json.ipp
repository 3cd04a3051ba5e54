// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/placement_json.hpp>

#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/io/json_text.hpp>
#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/stage_graph.hpp>

namespace hetplan::exchange {

HETPLAN_INLINE std::string write_placement(const plan& p, const planning_graph& model, const cluster& c) {
  if (p.pipeline_count() > 1)
    throw invalid_input("placement: expected a plan with one pipeline, got " + std::to_string(p.pipeline_count()));
  std::vector<device_id> device(model.size());
  for (const stage& s : p.stages) {
    if (const std::string more = beyond_plain(s); !more.empty())
      throw invalid_input("placement: expected every layer on one device, got stage \"" + s.name + "\", which is " + more);
    if (s.devices.size() > 1) {
      throw invalid_input("placement: expected every layer on one device, got stage \"" + s.name + "\" on " +
                          std::to_string(s.devices.size()));
    }
    for (const layer_id l : s.layers) device[l.index()] = s.devices.front().device;
  }
  io::json o;
  o["format"] = "hetplan/placement/1";
  o["model"] = model.name();
  o["cluster"] = c.name();
  o["placement"] = io::json::object();
  for (const layer& l : model.layers()) o["placement"][l.name] = c[device[l.id.index()]].name;
  o["order"] = io::json::object();
  const auto orders = device_orders(p, make_stage_graph(p, model), c.size());
  for (const hetplan::device& d : c.devices()) {
    if (orders[d.id.index()].empty()) continue;
    io::json& list = o["order"][d.name] = io::json::array();
    for (const order_entry& e : orders[d.id.index()]) {
      if (e.what != phase::forward || e.microbatch != 0) continue;
      for (const layer_id l : p[e.stage].layers) list.push_back(model[l].name);
    }
  }
  return io::json_text(o);
}

}  // namespace hetplan::exchange
