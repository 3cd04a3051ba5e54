// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The Gantt chart of a judged plan: who computes what when, and how the network is shared meanwhile.

#include <string>

#include <hetplan/plan/plan.hpp>
#include <hetplan/simulate/evaluate.hpp>

namespace hetplan::draw {

struct gantt_options {
  std::string title = "";          ///< = "MODEL on CLUSTER"
  double width = 1200;             ///< of the picture, in pixels; at least 480
  bool memory = true;              ///< a strip per device, if the trace was recorded
  std::size_t max_bars = 4000;     ///< with more, short tasks and transfers are averaged over pixels
  std::size_t max_resources = 12;  ///< the busiest are shown
};

/// Draws a judged plan as one self-contained SVG: a row per used device with its tasks (and its memory, if
/// recorded), a row per used resource in which every transfer is a band as high as its share of the capacity.
/// Where transfers share a resource, a line above says how many. Bars explain themselves on hover.
///
/// @param j      from evaluate or judge of this plan on this cluster, best with simulator_options{.record = true};
///               without rates the transfers are lanes.
/// Complexity    linear in the trace and in width * rows.
/// Determinism   same input, same bytes.
[[nodiscard]] std::string gantt_svg(const plan& p, const cluster& c, const judgement& j, const gantt_options& options = {});

}  // namespace hetplan::draw

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/gantt.ipp>
#endif
