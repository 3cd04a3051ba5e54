// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The Gantt chart of a judged plan: who computes what when, and how the network is shared meanwhile.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <hetplan/draw/svg.hpp>
#include <hetplan/draw/time_axis.hpp>
#include <hetplan/draw/trace_view.hpp>
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

namespace hetplan::draw::detail {

// The rows of a Gantt chart, which the report draws, too.

/// Reductions are hatched, to stay apart from other transfers in grey print.
[[nodiscard]] std::string transfer_fill(transfer_kind k, std::size_t stage = 0, std::size_t stages = 1);

/// The hatch of reductions, which a picture defines once.
[[nodiscard]] std::string sync_pattern();

/// Names of a graph's phases in a legend.
[[nodiscard]] std::array<std::string, phase_count> phase_names(const tasks::task_graph& g);

/// Keeps the `most` resources that were used most, by id.
/// @return  how many went.
std::size_t keep_busiest(std::vector<resource_view>& views, const cluster& c, const trace& t, std::size_t most);

/// Bars of a page that zooms: outlines instead of seams and least widths, which would be stretched, and labels that appear once there is
/// room for them.
struct zooming_bars {
  std::function<std::string(tasks::node_id)> attributes, lines;  ///< attributes of a bar; lines behind its hover text
};

/// Paints rows into a writer. With `merge` set, short tasks and all transfers are averaged over pixels.
class row_painter {
 public:
  row_painter(svg_writer& out, const plan& p, const cluster& c, const judgement& j, const trace_view& view, time_axis axis, bool merge,
              const zooming_bars* zooming = nullptr);

  /// How many tasks were too short for a bar so far.
  [[nodiscard]] std::size_t merged() const { return merged_; }

  void tasks(device_id d, row_box box);

  /// State as a plain level, activations on top; a device's whole usable memory is the full height.
  void memory(device_id d, row_box box);

  void resource(const resource_view& r, row_box box);

 private:
  [[nodiscard]] double width_of(tasks::node_id n) const;
  [[nodiscard]] bool too_fine(tasks::node_id n) const { return merge_ && width_of(n) < 3; }
  [[nodiscard]] color fill_of(tasks::node_id n) const;
  [[nodiscard]] static std::string during(double start_s, double end_s);

  void task(tasks::node_id n, row_box box);

  /// A backward that begins with the forward of its stage has that part, in the forward's color, along its lower edge.
  void run_again(tasks::node_id n, row_box box);

  /// A line between bars where there is room for one; what takes no time is still seen.
  void bar(double x, double width, row_box box, color fill, std::string_view hover);

  void zooming_bar(tasks::node_id n, row_box box, color fill, std::string_view hover);

  /// A text that shows from the zoom on at which it fits, until `hide_at`.
  /// @return  that zoom.
  double zooming_label(double x, double middle, const std::string& text, const text_style& style, double room, double hide_at = 0);

  /// Tasks that are too fine for a bar: how much of each pixel goes to each phase.
  void density(device_id d, row_box box);

  /// The bands [begin, end) of one transfer: one outline for each run without a gap.
  void transfer(const resource_view& r, std::size_t begin, std::size_t end, row_box box, double full);

  [[nodiscard]] std::string hover(std::uint32_t t, const resource_view& r) const;

  /// The label of a transfer in its widest band: the microbatch and, where there is room, sender and receiver.
  void label(const resource_view& r, std::size_t begin, std::size_t end, row_box box, double full);

  /// A line above the row wherever transfers share the resource, with their number where it fits.
  void contention(const resource_view& r, row_box box);

  svg_writer& out_;
  const plan& plan_;
  const cluster& cluster_;
  const hetplan::tasks::task_graph& graph_;
  const trace& trace_;
  const trace_view& view_;
  time_axis axis_;
  bool merge_;
  const zooming_bars* zooming_;
  std::size_t merged_ = 0;
};

}  // namespace hetplan::draw::detail

#ifndef HETPLAN_SEPARATE
#include <hetplan/draw/gantt.ipp>
#endif
