// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/unused_timeline_fields.hpp>

#include <limits>
#include <map>
#include <set>
#include <string_view>

#include <hetplan/io/json_object.hpp>
#include <hetplan/io/timeline_json.hpp>
#include <hetplan/io/unused_cluster_fields.hpp>

namespace hetplan::io {

HETPLAN_INLINE std::vector<std::string> unused_timeline_fields(const json_node& n, const cluster& c, const job& j, bool priorities) {
  std::vector<std::string> lines;
  const auto unused = [&](const json_node& field, const std::string& why) {
    lines.push_back(escaped(field.document().file()) + ": " + field.pointer() + ": " + why + "; not used");
  };
  const std::set<std::string_view> on_routes = resources_on_routes(c);
  const auto look_at_resource = [&](const json_object& o) {
    const auto name = o.find("resource");
    if (name && !on_routes.contains(name->text())) unused(*name, "no route takes resource " + in_quotes(name->text()));
  };
  const json_object top(n, keys::timeline);
  const auto duration = top.required_amount<seconds>("duration", range::above_zero);
  std::map<std::string_view, bool> here;                       // by device; all are at first
  std::map<std::string_view, std::vector<json_node>> unheard;  // speeds of devices that have left and not come back
  if (const auto events = top.find("events")) {
    for (const json_node event : events->elements("")) {
      const json_object o(event, keys::event);
      if (o.required_amount<seconds>("at", range::at_least_zero) >= duration) {
        unused(event, "it and what follows comes when the timeline has ended");
        break;
      }
      look_at_resource(o);
      if (const auto d = o.find("device")) {
        if (o.has("leaves")) here[d->text()] = false;
        if (o.has("joins")) {
          here[d->text()] = true;
          unheard.erase(d->text());
        }
        const auto known = here.find(d->text());
        if (o.has("speed") && known != here.end() && !known->second) unheard[d->text()].push_back(*o.find("speed"));
      }
      if (const auto t = o.find("transfer"); t && !priorities) {
        const auto p = json_object(*t, keys::foreign_transfer).find("priority");
        if (p && p->integer(std::numeric_limits<int>::min()) != 0) unused(*p, "no plan that ran has network \"priority\"");
      }
      if (const auto q = o.find("qoe"); q && !j.qoe.iterations) {
        if (const auto deadline = json_object(*q, keys::qoe_target).find("deadline"))
          unused(*deadline, "without qoe.iterations the job has no end");
      }
    }
  }
  for (const auto& [device, speeds] : unheard) {
    for (const json_node& s : speeds) unused(s, "device " + in_quotes(device) + " has left and does not come back");
  }
  if (const auto traces = top.find("traces")) {
    for (const json_node t : traces->elements("")) look_at_resource(json_object(t, keys::bandwidth_trace));
  }
  return lines;
}

}  // namespace hetplan::io
