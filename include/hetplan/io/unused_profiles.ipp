// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/unused_profiles.hpp>

#include <set>
#include <string_view>

#include <hetplan/io/text.hpp>

namespace hetplan::io {

HETPLAN_INLINE std::optional<std::string> unused_profiles(const planning_graph& model, const cluster& c) {
  std::set<std::string_view> kinds;
  for (const device& d : c.devices()) kinds.insert(d.kind);
  for (const layer& l : model.layers()) {
    for (const layer_profile& p : l.profiles) {
      if (kinds.contains(p.device_kind)) continue;
      for (const device& d : c.devices()) {
        if (l.profile_for(d.kind) != nullptr) continue;
        return "model " + in_quotes(model.name()) + ": layer " + in_quotes(l.name) + " has a profile for kind " + in_quotes(p.device_kind) +
               ", which no device of cluster " + in_quotes(c.name()) + " is, and none for kind " + in_quotes(d.kind) + " of " +
               in_quotes(d.name) + ", which is timed by FLOP" + suggestion(p.device_kind, kinds);
      }
    }
  }
  return std::nullopt;
}

}  // namespace hetplan::io
