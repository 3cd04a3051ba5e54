// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The rows of a Gantt chart: a device's tasks, its memory, a resource's bands.

#include <array>
#include <functional>
#include <string>
#include <vector>

#include <hetplan/draw/gantt_scale.hpp>
#include <hetplan/draw/svg.hpp>
#include <hetplan/draw/trace_view.hpp>

namespace hetplan::draw::detail {

/// Reductions are hatched, to stay apart from other transfers in grey print.
[[nodiscard]] std::string transfer_fill(transfer_kind k, std::size_t stage = 0, std::size_t stages = 1);

/// What a legend calls the phases of a graph.
[[nodiscard]] std::array<std::string, phase_count> phase_names(const tasks::task_graph& g);

/// Leaves the `most` that were used most, by id; returns how many went.
std::size_t keep_busiest(std::vector<resource_view>& views, const cluster& c, const trace& t, std::size_t most);

/// What bars have in a page that zooms: no seams and least widths, which would be stretched, but outlines that are
/// not; labels that appear once there is room for them.
struct zooming_bars {
  static constexpr double most = 100;                            ///< the largest zoom
  std::function<std::string(tasks::node_id)> attributes, lines;  ///< of the element; after the hover text
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

  /// Shown from the zoom on at which the text fits, until `hide_at`; returns from when on.
  double zooming_label(double x, double middle, const std::string& text, const text_style& style, double room, double hide_at = 0);

  /// Tasks that are too fine for a bar: how much of each pixel goes to each phase.
  void density(device_id d, row_box box);

  /// The bands [begin, end) of one transfer: one outline for each run without a gap.
  void transfer(const resource_view& r, std::size_t begin, std::size_t end, row_box box, double full);

  [[nodiscard]] std::string hover(std::uint32_t t, const resource_view& r) const;

  /// In the widest piece of the band: the microbatch, and between whom where there is room.
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

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/gantt_rows.ipp>
#endif
