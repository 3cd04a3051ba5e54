// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The rows of a Gantt chart: a device's tasks, its memory, a resource's bands.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <hetplan/draw/svg.hpp>
#include <hetplan/draw/trace_view.hpp>

namespace hetplan::draw::detail {

// How charts over time put seconds and shares on paper.

/// Time to pixels.
struct time_axis {
  double left = 0, width = 1, latency_s = 1;
  [[nodiscard]] double at(double t) const { return left + width * std::clamp(t / latency_s, 0.0, 1.0); }
  [[nodiscard]] std::size_t pixels() const { return static_cast<std::size_t>(std::max(1.0, std::ceil(width))); }
  [[nodiscard]] std::size_t pixel(double t) const {
    return std::min(pixels() - 1, static_cast<std::size_t>(std::max(0.0, std::floor(at(t) - left))));
  }
};

struct row_box {
  double top = 0, height = 0;
  [[nodiscard]] double level(double share) const { return top + height * (1 - std::clamp(share, 0.0, 1.0)); }
};

/// What is too fine for bars: the mean share of each kind in every pixel, stacked.
template <std::size_t Kinds>
class pixel_areas {
 public:
  pixel_areas(time_axis axis, row_box box) : axis_(axis), box_(box) {
    for (auto& kind : mean_) kind.assign(axis_.pixels(), 0);
  }

  void add(std::size_t kind, double start_s, double end_s, double share) {
    const double pixel_s = axis_.latency_s / static_cast<double>(axis_.pixels());
    for (std::size_t x = axis_.pixel(start_s); x <= axis_.pixel(end_s); ++x) {
      const double from = std::max(start_s, static_cast<double>(x) * pixel_s), to = std::min(end_s, static_cast<double>(x + 1) * pixel_s);
      if (to > from) mean_[kind][x] += (to - from) / pixel_s * share;
    }
  }

  void paint(svg_writer& out, const std::array<std::string, Kinds>& fills, const std::array<std::string, Kinds>& hovers) const {
    std::vector<double> below(axis_.pixels(), 0);
    for (std::size_t k = 0; k < Kinds; ++k) {
      if (std::none_of(mean_[k].begin(), mean_[k].end(), [](double share) { return share > 0; })) continue;
      const auto outline = [&](std::size_t x) { return fixed(box_.level(below[x] + mean_[k][x]), 1); };
      const auto base = [&](std::size_t x) { return fixed(box_.level(below[x]), 1); };
      std::string d = "M" + fixed(axis_.left) + " " + base(0);
      for (std::size_t x = 0; x < below.size(); ++x) {
        if (x == 0 || outline(x) != outline(x - 1)) d += "H" + edge(x) + "V" + outline(x);
      }
      d += "H" + edge(below.size()) + "V" + base(below.size() - 1);
      for (std::size_t x = below.size(); x-- > 0;) {
        if (x == 0 || base(x) != base(x - 1)) d += "H" + edge(x) + "V" + base(x == 0 ? 0 : x - 1);
      }
      out.path(d + "Z", fills[k], hovers[k]);
      for (std::size_t x = 0; x < below.size(); ++x) below[x] += mean_[k][x];
    }
  }

 private:
  [[nodiscard]] std::string edge(std::size_t x) const { return fixed(axis_.left + std::min(static_cast<double>(x), axis_.width)); }

  time_axis axis_;
  row_box box_;
  std::array<std::vector<double>, Kinds> mean_;
};

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
