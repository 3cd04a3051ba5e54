// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The Gantt chart of a judged plan: who computes what when, and how the network is shared meanwhile.

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <hetplan/io/gantt_rows.hpp>

namespace hetplan::io {

namespace detail {

/// Lays out and paints one chart.
class gantt_painter {
 public:
  gantt_painter(const plan& p, const cluster& c, const judgement& j, const gantt_options& o)
      : plan_(p), cluster_(c), judgement_(j), options_(o), view_(p, c, j), resources_(view_.resources()) {
    for (const tasks::compute_task& t : j.graph.computes) phases_[static_cast<std::size_t>(t.what)] = true;
    for (const tasks::transfer& t : j.graph.transfers) kinds_[static_cast<std::size_t>(t.kind)] = true;
    choose_rows();
  }

  [[nodiscard]] std::string paint() && {
    const std::string title = options_.title.empty() ? plan_.model + " on " + plan_.cluster : options_.title;
    header(title);
    legend();
    const double grid_top = y_;
    double y = y_ + 4;
    heading("DEVICES", y);
    for (const device_row& row : devices_) y = row.height() + row.gap + (row.top = y, y);
    if (!networks_.empty()) {
      y += 10;
      network_heading_ = y;
      y += heading_height;
      for (resource_row& row : networks_) y = row.height + row.gap + (row.top = y, y);
    }
    return finish(title, grid_top, y);
  }
};

}  // namespace detail

}  // namespace hetplan::io
