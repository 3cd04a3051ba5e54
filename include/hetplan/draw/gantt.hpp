// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Gantt chart of a judged plan: tasks of devices, and shares of transfers in network resources.

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
  std::string title = "";          ///< default: "MODEL on CLUSTER"
  double width = 1200;             ///< of the picture in pixels, at least 480
  bool memory = true;              ///< true for a memory strip per device, if the trace has it
  std::size_t max_bars = 4000;     ///< beyond, short tasks and transfers are averaged over pixels
  std::size_t max_resources = 12;  ///< beyond, only the busiest are shown
};

/// Returns a judged plan as one self-contained SVG. Each used device has a row with its tasks (and its memory, if recorded). Each used
/// resource has a row in which a transfer is a band as high as its share of the capacity. A line above marks contention, with the number of
/// transfers. Bars have hover texts.
///
/// @param j      from evaluate or judge of this plan on this cluster, preferably with simulator_options{.record = true}; without rates
///               transfers are lanes of equal height.
/// Complexity    linear in the trace and in width * rows.
/// Determinism   same input, same bytes.
[[nodiscard]] std::string gantt_svg(const plan& p, const cluster& c, const judgement& j, const gantt_options& options = {});

}  // namespace hetplan::draw

namespace hetplan::draw::detail {

// Rows of a Gantt chart, shared with the report.

/// Returns the fill of a kind of transfer. Reductions are hatched, to be distinct in grey print.
[[nodiscard]] std::string transfer_fill(transfer_kind k, std::size_t stage = 0, std::size_t stages = 1);

/// Returns the definition of the hatch of reductions, once per picture.
[[nodiscard]] std::string sync_pattern();

[[nodiscard]] std::array<std::string, phase_count> phase_names(const tasks::task_graph& g);

/// Keeps the `most` busiest resources, sorted by id. Returns the number of removed ones.
std::size_t keep_busiest(std::vector<resource_view>& views, const cluster& c, const trace& t, std::size_t most);

/// Extra data of bars on a zooming page. Bars have outlines, as seams and least widths would be stretched. Labels appear once they fit.
struct zooming_bars {
  std::function<std::string(tasks::node_id)> attributes, lines;  ///< attributes of a bar; further lines of its hover text
};

/// Paints rows into an SVG. With `merge`, short tasks and all transfers are averaged over pixels.
class row_painter {
 public:
  row_painter(svg_writer& out, const plan& p, const cluster& c, const judgement& j, const trace_view& view, time_axis axis, bool merge,
              const zooming_bars* zooming = nullptr);

  /// Returns the number of tasks so far that were too short for a bar.
  [[nodiscard]] std::size_t merged() const { return merged_; }

  void tasks(device_id d, row_box box);

  /// Paints a device's memory: state as a constant level, activations on top, relative to the usable memory.
  void memory(device_id d, row_box box);

  void resource(const resource_view& r, row_box box);

 private:
  [[nodiscard]] double width_of(tasks::node_id n) const;
  [[nodiscard]] bool too_fine(tasks::node_id n) const { return merge_ && width_of(n) < 3; }
  [[nodiscard]] color fill_of(tasks::node_id n) const;
  [[nodiscard]] static std::string during(double start_s, double end_s);

  void task(tasks::node_id n, row_box box);

  /// Marks the recomputed forward at the start of a backward, in the forward's colour along the lower edge.
  void run_again(tasks::node_id n, row_box box);

  /// Paints a bar with seams if there is room. Bars without duration remain visible.
  void bar(double x, double width, row_box box, color fill, std::string_view hover);

  void zooming_bar(tasks::node_id n, row_box box, color fill, std::string_view hover);

  /// Adds a label that is visible from the zoom at which it fits up to `hide_at`. Returns the zoom at which it fits.
  double zooming_label(double x, double middle, const std::string& text, const text_style& style, double room, double hide_at = 0);

  /// Paints the share of each phase per pixel, for tasks too short for bars.
  void density(device_id d, row_box box);

  /// Paints the bands [begin, end) of one transfer, with one outline per contiguous run.
  void transfer(const resource_view& r, std::size_t begin, std::size_t end, row_box box, double full);

  [[nodiscard]] std::string hover(std::uint32_t t, const resource_view& r) const;

  /// Labels a transfer in its widest band with its microbatch and, if there is room, sender and receiver.
  void label(const resource_view& r, std::size_t begin, std::size_t end, row_box box, double full);

  /// Marks the times at which transfers share the resource by a line above the row, with their number if there is room.
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
