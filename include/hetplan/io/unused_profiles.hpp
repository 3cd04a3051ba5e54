// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Measurements that were perhaps meant for a device of another kind.

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/io/text.hpp>

namespace hetplan::io {

/// One line about the first layer that has a profile for a kind of which no device is, where a device is timed by its FLOP for
/// want of a profile; none where every device has one, or no profile is left over: a model may know more kinds than a cluster has.
///
/// Complexity  O(layers (kinds of devices + profiles) log of them).
[[nodiscard]] inline std::optional<std::string> unused_profiles(const planning_graph& model, const cluster& c) {
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
