// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/groups_chart.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include <hetplan/draw/page.hpp>

namespace hetplan::draw {

namespace detail {

/// Returns the devices as text, the first of many: "a, b, c".
[[nodiscard]] HETPLAN_INLINE std::string listed(const std::vector<device_id>& devices, const cluster& c) {
  constexpr std::size_t most = 24;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, devices.size()); ++i) text += (i > 0 ? ", " : "") + c[devices[i]].name;
  if (devices.size() > most) text += " and " + std::to_string(devices.size() - most) + " more";
  return text;
}

[[nodiscard]] HETPLAN_INLINE std::string groups_table(const coarsen::device_groups& g, const cluster& c, std::string_view unit) {
  std::string text =
      "<table id=\"groups-table\">\n<thead><tr><th>Region</th><th class=\"n\">Apart inside</th><th>Nearest other region</th><th>Class</th>"
      "<th class=\"n\">Score</th><th class=\"n\">Devices</th><th>Names</th></tr></thead>\n<tbody>\n";
  for (std::size_t r = 0; r < g.regions.size(); ++r) {
    const coarsen::device_region& region = g.regions[r];
    for (std::size_t k = 0; k < region.classes.size(); ++k) {
      const auto& devices = region.classes[k];
      double score = 0;
      for (const device_id d : devices) score += g.scores[d.index()] / static_cast<double>(devices.size());
      std::string first = cell("") + cell("") + cell("");
      if (k == 0) {
        const auto nearest = g.nearest_region(r);
        first = cell(std::to_string(r + 1)) + cell(region.devices.size() > 1 ? engineering(region.inner_s, "s") : "", " class=\"n\"") +
                cell(nearest ? std::to_string(*nearest + 1) + ", " + engineering(g.distance_s(r, *nearest), "s") : "");
      }
      text += "<tr>" + first + cell(class_name(r, k)) + cell(engineering(score, unit), " class=\"n\"") +
              cell(std::to_string(devices.size()), " class=\"n\"") + cell(listed(devices, c)) + "</tr>\n";
    }
  }
  return text + "</tbody></table>\n";
}

}  // namespace detail

HETPLAN_INLINE std::string groups_section(const coarsen::device_groups& g, const cluster& c, const groups_source& from) {
  const std::string about =
      "The time of one message of " + engineering(from.message.value(), "B") +
      " is the distance of two devices. Two groups are one region if they are at most " + fixed(1 + from.thresholds.network_threshold) +
      " times as far apart as the devices inside the closer one; devices of a region are of one class if their scores differ by at most " +
      fixed(100 * from.thresholds.compute_threshold) + " %.";
  return detail::section(
      "groups", "Regions and classes", about,
      detail::groups_legend(g, c) + detail::scrolling(detail::groups_chart(g, c)) + detail::groups_table(g, c, from.score_unit));
}

HETPLAN_INLINE std::string groups_report_html(const coarsen::device_groups& g, const cluster& c, const groups_source& from) {
  std::size_t classes = 0;
  for (const coarsen::device_region& r : g.regions) classes += r.classes.size();
  const auto counted = [](std::size_t n, std::string_view one, std::string_view many) {
    return std::to_string(n) + " " + std::string(n == 1 ? one : many);
  };
  const std::string title = "Devices of " + c.name();
  return detail::page(title, "<header id=\"summary\">\n<h1>" + xml_text(title) + "</h1>\n<p class=\"quiet\">" +
                                 counted(c.size(), "device", "devices") + " · " + counted(g.regions.size(), "region", "regions") + " · " +
                                 counted(classes, "class", "classes") + "</p>\n</header>\n" + groups_section(g, c, from));
}

}  // namespace hetplan::draw

namespace hetplan::draw::detail {

HETPLAN_INLINE std::string class_name(std::size_t region, std::size_t number) {
  const std::string text = std::to_string(region + 1);
  return number < 26 ? text + static_cast<char>('a' + number) : text + "." + std::to_string(number + 1);
}

/// Logarithmic scale from the least positive distance to the largest finite one, or twice the least: small differences look small.
struct distance_scale {
  double least = std::numeric_limits<double>::infinity(), most = 0;

  void add(double d) {
    if (!std::isfinite(d) || d <= 0) return;
    least = std::min(least, d);
    most = std::max({most, d, 2 * least});
  }
  /// Returns the position on the scale: 0 for the least distance, 1 for the largest.
  [[nodiscard]] double share(double d) const { return d > least ? std::log(d / least) / std::log(most / least) : 0; }
};

class groups_painter {
 public:
  groups_painter(const coarsen::device_groups& g, const cluster& c)
      : g_(g), c_(c), of_devices_(g.region_of.size() <= most_grouped_rows), first_merge_(of_devices_ ? 0 : g.merges_inside()),
        nodes_(g.region_of.size() + g.merges.size()) {
    find_rows();
    const std::size_t n = rows_.size();
    cell_ = std::clamp(620.0 / static_cast<double>(n), 11.0, 46.0);
    for (const std::size_t r : rows_) longest_ = std::max(longest_, svg_writer::text_width(fitted(name(r), name_limit), 11));
    left_ = tree_width + 14 + longest_ + (of_devices_ ? 34 : 0);
    top_ = 20 + longest_;
    size_ = cell_ * static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = i; j < n; ++j) scale_.add(distance_s(i, j));
    }
  }

  [[nodiscard]] const distance_scale& scale() const { return scale_; }

  [[nodiscard]] std::string paint() && {
    tree();
    names();
    matrix();
    regions();
    const double width = std::max(left_ + size_ + 90, 1180.0);
    return std::move(out_).embedded(
        width, top_ + size_ + 40,
        std::to_string(devices()) + " devices in " + std::to_string(g_.regions.size()) + " regions: merge tree and distances",
        " id=\"groups-chart\" style=\"min-width:" + fixed(width) + "px\"");
  }

 private:
  static constexpr double tree_width = 320;
  static constexpr std::size_t name_limit = 18;

  struct node {
    std::size_t first_device = 0;
    double x = 0, y = 0;
  };

  [[nodiscard]] std::size_t devices() const { return g_.region_of.size(); }
  [[nodiscard]] std::size_t region(std::size_t i) const { return g_.region_of[nodes_[i].first_device]; }
  [[nodiscard]] std::string name(std::size_t i) const {
    return of_devices_ ? c_[device_id(i)].name : "region " + std::to_string(region(i) + 1);
  }
  [[nodiscard]] double distance_s(std::size_t i, std::size_t j) const {
    return of_devices_ ? g_.distances(rows_[i], rows_[j]) : g_.distance_s(region(rows_[i]), region(rows_[j]));
  }
  [[nodiscard]] double row_y(std::size_t row) const { return top_ + (static_cast<double>(row) + 0.5) * cell_; }
  [[nodiscard]] const coarsen::merge& merge_of(std::size_t i) const { return g_.merges[i - devices()]; }

  /// Sorts rows in the order of the merge tree.
  void find_rows() {
    std::vector<char> below(nodes_.size(), 0);  // true if below another node
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      nodes_[i].first_device = i < devices() ? i : nodes_[merge_of(i).left].first_device;
      if (i >= devices()) below[merge_of(i).left] = below[merge_of(i).right] = 1;
    }
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!below[i]) open.push_back(i);
    }
    std::ranges::sort(open, std::greater{}, [&](std::size_t i) { return nodes_[i].first_device; });
    while (!open.empty()) {
      const std::size_t i = open.back();
      open.pop_back();
      if (i < devices() + first_merge_) {
        rows_.push_back(i);
      } else {
        open.insert(open.end(), {merge_of(i).right, merge_of(i).left});
      }
    }
  }

  void tree() {
    distance_scale heights;
    for (std::size_t m = first_merge_; m < g_.merges.size(); ++m) heights.add(g_.merges[m].height);
    const double near = tree_width - 34, far = 12;
    const auto x_of = [&](double height) { return near - heights.share(height) * (near - far); };
    axis(heights, x_of);
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      nodes_[rows_[r]].x = tree_width;
      nodes_[rows_[r]].y = row_y(r);
    }
    for (std::size_t m = first_merge_; m < g_.merges.size(); ++m) {
      const node &a = nodes_[g_.merges[m].left], &b = nodes_[g_.merges[m].right];
      node& joined = nodes_[devices() + m];
      joined.x = x_of(g_.merges[m].height);
      joined.y = (a.y + b.y) / 2;
      const bool inside = m < g_.merges_inside();
      const std::string where = inside ? "inside region " + std::to_string(region(devices() + m) + 1) : "between regions";
      out_.path("M" + fixed(a.x) + " " + fixed(a.y) + "H" + fixed(joined.x) + "V" + fixed(b.y) + "H" + fixed(b.x), "none",
                where + "\n" + engineering(g_.merges[m].height, "s") + " apart",
                inside ? " class=\"merge inside\" stroke-width=\"2\"" : " class=\"merge\" stroke-width=\"1.5\" stroke-dasharray=\"5 3\"");
    }
  }

  template <class Place>
  void axis(const distance_scale& heights, const Place& x_of) {
    if (heights.most <= 0) return;
    const double y = top_ + size_ + 10;
    std::vector<double> taken;
    const auto tick = [&](double height) {
      const double x = x_of(height);
      if (std::ranges::any_of(taken, [&](double other) { return std::abs(other - x) < 55; })) return;
      taken.push_back(x);
      const std::string label = engineering(height, "s");
      out_.line(x, top_ - 4, x, y, palette::grid);
      out_.text(std::max(x, svg_writer::text_width(label, 10) / 2), y + 13, label,
                {.size = 10, .fill = palette::quiet, .anchor = "middle"});
    };
    tick(heights.least);
    tick(heights.most);
    for (double power = std::floor(std::log10(heights.least)); std::pow(10, power) < heights.most; ++power) {
      for (const double digit : {1, 2, 5}) {
        const double height = digit * std::pow(10, power);
        if (height > heights.least && height < heights.most) tick(height);
      }
    }
    out_.text(0, top_ - 12, "merged at a mean distance of", {.size = 10.5, .fill = palette::quiet});
  }

  void names() {
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const std::string text = fitted(name(rows_[r]), name_limit);
      out_.text(tree_width + 8, row_y(r) + 4, text);
      if (of_devices_)
        out_.text(left_ - 6, row_y(r) + 4, class_tag(device_id(rows_[r])), {.size = 10.5, .fill = palette::quiet, .anchor = "end"});
      const std::string at = fixed(left_ + (static_cast<double>(r) + 0.5) * cell_ + 4) + " " + fixed(top_ - 6);
      out_.text(0, 0, text, {}, " transform=\"translate(" + at + ") rotate(-90)\"");
    }
  }
  [[nodiscard]] std::string class_tag(device_id d) const {
    const std::size_t r = g_.region_of[d.index()];
    const auto& classes = g_.regions[r].classes;
    const auto mine = std::ranges::find_if(classes, [&](const auto& k) { return std::ranges::find(k, d) != k.end(); });
    return class_name(r, static_cast<std::size_t>(mine - classes.begin()));
  }

  void matrix() {
    const auto [unit, per_s] = scale_.least >= 1 ? std::pair("s", 1.0) : scale_.least >= 1e-3 ? std::pair("ms", 1e3) : std::pair("µs", 1e6);
    heat_grid grid{.left = left_, .top = top_, .width = size_, .height = size_, .most = {1}, .units = {unit}, .id = "groups-grid"};
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      grid.rows.push_back(name(rows_[i]));
      grid.values.emplace_back();
      grid.depths.emplace_back();
      for (std::size_t j = 0; j < rows_.size(); ++j) {
        const double d = distance_s(i, j);
        grid.values.back().push_back(per_s * d);
        const bool blank = !std::isfinite(d) || (i == j && d == 0);
        grid.depths.back().push_back(blank ? 0 : heat_depths - static_cast<std::size_t>(std::lround((heat_depths - 1) * scale_.share(d))));
      }
    }
    grid.columns = grid.rows;
    draw::detail::paint(out_, grid);
  }

  void regions() {
    for (std::size_t from = 0, to = 0; of_devices_ && from < rows_.size(); from = to) {
      const std::size_t r = region(rows_[from]);
      for (to = from + 1; to < rows_.size() && region(rows_[to]) == r;) ++to;
      const double begin = static_cast<double>(from) * cell_, length = static_cast<double>(to - from) * cell_;
      out_.rect(left_ + begin, top_ + begin, length, length, "none", {}, " class=\"around\" stroke-width=\"1.5\"");
      out_.text(left_ + size_ + 8, top_ + begin + length / 2 + 4, "region " + std::to_string(r + 1), {.weight = 600});
    }
  }

  const coarsen::device_groups& g_;
  const cluster& c_;
  bool of_devices_;
  std::size_t first_merge_;  ///< first merge to be drawn
  std::vector<node> nodes_;
  std::vector<std::size_t> rows_;  ///< nodes in the order of the tree
  distance_scale scale_;
  double cell_ = 0, longest_ = 0, left_ = 0, top_ = 0, size_ = 0;
  svg_writer out_;
};

HETPLAN_INLINE std::string groups_chart(const coarsen::device_groups& g, const cluster& c) { return groups_painter(g, c).paint(); }

HETPLAN_INLINE std::string groups_legend(const coarsen::device_groups& g, const cluster& c) {
  const distance_scale scale = groups_painter(g, c).scale();
  if (scale.most <= 0) return {};
  return "<div class=\"legend\">" + heat_legend("load", engineering(scale.most, "s") + " apart", engineering(scale.least, "s")) +
         "<span>solid: a merge inside a region</span><span>dashed: one of regions</span><span>blank: nothing joins them</span></div>\n";
}

}  // namespace hetplan::draw::detail
