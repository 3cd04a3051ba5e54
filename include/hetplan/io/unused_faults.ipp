// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/unused_faults.hpp>

#include <set>
#include <tuple>
#include <variant>

#include <hetplan/io/faults_json.hpp>
#include <hetplan/io/json_object.hpp>

namespace hetplan::io {

HETPLAN_INLINE std::vector<std::string> unused_faults(const json_node& n, const std::vector<serve::serving_fault>& all,
                                                      const serve::edge_cloud& cloud) {
  enum class part { whole, gpu, device };
  std::set<std::tuple<std::size_t, part, int>> gone;
  std::vector<std::string> lines;
  std::size_t number = 0;
  for (const json_node event : json_object(n, keys::faults).at("events", "").elements("")) {
    const serve::serving_fault& f = all[number++];
    const std::size_t s = f.server.index();
    const serve::edge_server& server = cloud[f.server];
    const std::tuple whole(s, part::whole, 0);
    auto taken = whole;
    std::string who;
    if (const auto* g = std::get_if<serve::gpu_fails>(&f.what)) {
      taken = {s, part::gpu, g->gpu};
      who = "GPU " + std::to_string(g->gpu) + " of server " + in_quotes(server.name) + " has failed";
    } else if (const auto* d = std::get_if<serve::device_leaves>(&f.what)) {
      taken = {s, part::device, d->device};
      who = "device " + in_quotes(server.devices[static_cast<std::size_t>(d->device)].name) + " has left server " + in_quotes(server.name);
    } else if (const auto* r = std::get_if<serve::device_registers>(&f.what)) {
      taken = {s, part::device, r->device};
      gone.erase(taken);
    } else if (!std::holds_alternative<serve::server_fails>(f.what)) {
      continue;
    }
    const bool with_server = gone.contains(whole);
    if (with_server) who = "server " + in_quotes(server.name) + " has failed";
    if (with_server || gone.contains(taken))
      lines.push_back(escaped(event.document().file()) + ": " + event.pointer() + ": " + who + " before; not used");
    if (!std::holds_alternative<serve::device_registers>(f.what)) gone.insert(taken);
  }
  return lines;
}

}  // namespace hetplan::io
