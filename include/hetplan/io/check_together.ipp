// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/io/check_together.hpp>

#include <string>

#include <hetplan/cost/cost_model.hpp>
#include <hetplan/io/file.hpp>
#include <hetplan/io/json_document.hpp>

namespace hetplan::io {

HETPLAN_INLINE void check_together(const planning_graph& model, const cluster& c, std::string_view file, std::optional<mode> mode) {
  if (mode) check_mode(model, *mode);
  for (const device& d : c.devices()) {
    const auto fail = [&](const layer& l, std::string_view field, std::string_view expected, std::string_view why) {
      throw invalid_input(escaped(file) + ": /devices/" + std::to_string(d.id.value) + "/" + std::string(field) + ": expected " +
                          std::string(expected) + ": layer " + in_quotes(l.name) + " of model " + in_quotes(model.name()) + " " +
                          std::string(why) + " kind " + in_quotes(d.kind));
    };
    for (const layer& l : model.layers()) {
      const layer_profile* p = l.profile_for(d.kind);
      if (p == nullptr && d.compute.value() <= 0) fail(l, "compute", "FLOP/s > 0, got nothing", "has no profile for");
      if (p == nullptr && !l.has_flops)
        fail(l, "kind", "a kind with a profile, got " + in_quotes(d.kind), "has no forward_flops and no profile for");
      if (p != nullptr && p->backward_s.empty() && mode == hetplan::mode::training) {
        fail(l, "kind", "a kind with a measured backward, got " + in_quotes(d.kind),
             "has no backward, which training needs, in its profile for");
      }
    }
  }
}

}  // namespace hetplan::io
