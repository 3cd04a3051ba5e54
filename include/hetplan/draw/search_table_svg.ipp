// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/search_table_svg.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <range/v3/view/enumerate.hpp>

#include <hetplan/draw/svg.hpp>

namespace hetplan::draw {

namespace detail {

class search_table_painter {
 public:
  search_table_painter(const partition::search_tables& t, const partition::device_space& s, std::span<const table_cell> cells,
                       const partition::search_result& r, const partition::search_options& search, std::string_view unit)
      : tables_(t), space_(s), unit_(unit), cells_(cells.begin(), cells.end()), blocks_(t.sequence.size()), levels_(s.states(), 1) {
    for (const auto& f : r.plans) {  // best first
      saturated_ = partition::warmup_levels(f.plan, search).levels();
      const way w = way_of(f.plan);
      if (best_.empty()) best_ = w;
      const auto it = std::find_if(cells_.begin(), cells_.end(), [&](const table_cell& c) { return is(w.back(), c); });
      if (it != cells_.end()) ++it->kept;
      else cells_.push_back({0, w.back().state, w.back().level, 1, f.score});
    }
    for (const table_cell& c : cells_) {
      levels_[c.state] = std::max(levels_[c.state], c.stages);
      least_ = std::min(least_, c.best_rank), most_ = std::max(most_, c.best_rank);
    }
    for (double y = top; const int levels : levels_) row_.push_back(y), y += levels * bar + gutter - 2;
    pitch_ = (width - names - 2 * margin) / (static_cast<double>(blocks_) + 0.62);
    cell_ = 0.62 * pitch_;
  }
  [[nodiscard]] std::string paint() && {
    const std::string title = tables_.model.name() + " on " + tables_.cluster.name() + ": the table of the search";
    out_.text(margin, 40, fitted(title, static_cast<std::size_t>((width - 2 * margin) / 12.5)), {.size = 18, .weight = 600});
    quiet(margin, 62,
          "Read from right to left: each arrow puts one more stage, on more devices, before the blocks that are already placed.");
    out_.raw(
        "<defs><marker id=\"hetplan-tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"9\" markerHeight=\"9\" "
        "markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0 0.5L8 4L0 7.5z\" fill=\"" +
        way_color.hex() + "\"/></marker></defs>\n");
    columns();
    for (std::size_t s = 0; s < space_.states(); ++s) row(s);
    out_.rect(left(blocks_), row_[0], cell_, bar - 2, palette::ink.hex(), "no block is placed, no device taken", " rx=\"3\"");
    out_.text(left(blocks_) + cell_ / 2, row_[0] + 13, "start", {.fill = palette::paper, .anchor = "middle", .weight = 600});
    for (const table_cell& c : cells_) cell(c);
    for (std::size_t i = 0; i < best_.size(); ++i) arrow(i);
    return std::move(out_).document(width, notes(row_.back() + levels_.back() * bar + 34), title);
  }

 private:
  static constexpr double width = 1200, margin = 28, names = 206, top = 154, bar = 20, gutter = 32;
  static constexpr color way_color = palette::alarm;
  /// A stage of a plan, counted from the sinks, and the cell that it leads to.
  struct step {
    std::size_t first_block, state, group;
    int level;
  };
  using way = std::vector<step>;
  [[nodiscard]] static bool is(const step& w, const table_cell& c) {
    return w.first_block == c.first_block && w.state == c.state && w.level == c.stages;
  }
  [[nodiscard]] const std::vector<std::vector<layer_id>>& blocks() const { return tables_.sequence.blocks; }
  [[nodiscard]] int level(std::size_t stages) const { return static_cast<int>(std::min(stages, saturated_)); }
  [[nodiscard]] way way_of(const plan& p) const {
    way w;
    std::size_t state = 0;
    for (auto s = p.stages.rbegin(); s != p.stages.rend(); ++s) {
      partition::device_space::device_group g;
      for (const auto& [c, members] : ranges::views::enumerate(space_.classes)) {
        const auto n = std::count_if(s->devices.begin(), s->devices.end(),
                                     [&](const assignment& a) { return std::count(members.begin(), members.end(), a.device); });
        if (n > 0) g.push_back({c, static_cast<int>(n)});
      }
      const auto& moves = space_.moves[state];
      const auto m = std::find_if(moves.begin(), moves.end(), [&](const auto& x) { return space_.groups[x.group] == g; });
      const auto first = std::find_if(blocks().begin(), blocks().end(),
                                      [&](const auto& b) { return std::binary_search(s->layers.begin(), s->layers.end(), b.front()); });
      w.push_back({static_cast<std::size_t>(first - blocks().begin()), state = m->to, m->group, level(w.size() + 1)});
    }
    return w;
  }

  [[nodiscard]] double left(std::size_t boundary) const { return margin + names + static_cast<double>(boundary) * pitch_; }
  [[nodiscard]] double level_y(std::size_t state, int stages) const { return row_[state] + (stages - 1) * bar; }
  [[nodiscard]] std::string score(double v) const { return unit_.empty() ? fixed(v, 3) : engineering(v, unit_); }
  [[nodiscard]] color shade(double rank) const {
    return mix(palette::phase_color(phase::forward, 0, 1), palette::paper,
               most_ > least_ ? 0.9 * std::sqrt((rank - least_) / (most_ - least_)) : 0);
  }
  [[nodiscard]] std::string devices(const partition::device_space::device_group& g, std::string text = "") const {
    for (const auto& p : g) {
      const device& d = tables_.cluster[space_.classes[p.of_class].front()];
      text += (text.empty() ? "" : " + ") + (p.devices > 1 ? std::to_string(p.devices) + " × " : "") + (d.kind.empty() ? d.name : d.kind);
    }
    return text.empty() ? "none" : text;
  }
  void quiet(double x, double y, const std::string& text, std::string_view anchor = "start") {
    out_.text(x, y, text, {.size = 11.5, .fill = palette::quiet, .anchor = anchor});
  }
  /// Paints the blocks between the boundaries, and the number of placed blocks at each boundary.
  void columns() {
    for (std::size_t b = 0; b <= blocks_; ++b) {
      const double x = left(b) + cell_ / 2;
      const std::string n = std::to_string(blocks_ - b), text = b == 0         ? "all " + n + " placed"
                                                                : b == blocks_ ? "none placed"
                                                                               : "last " + n + " placed";
      out_.line(x, 84, x, 110, palette::ink, 1.5);
      quiet(x, 127, pitch_ < 76 ? n : text, "middle");
      if (b == blocks_) break;
      const std::string name =
          tables_.model[blocks()[b].front()].name + (blocks()[b].size() > 1 ? " +" + std::to_string(blocks()[b].size() - 1) : "");
      out_.rect(x + 3, 84, pitch_ - 6, 24, palette::category_color(8).hex(), name, " rx=\"4\"");
      out_.text(x + pitch_ / 2, 100, fitted(name, static_cast<std::size_t>((pitch_ - 12) / 6.9)), {.anchor = "middle"});
    }
    quiet(margin, 100, "blocks, head to sink");
    quiet(margin, 127, "devices taken");
    out_.line(margin, 138, width - margin, 138, palette::frame);
  }
  void row(std::size_t s) {
    partition::device_space::device_group taken;
    for (std::size_t c = 0; c < space_.classes.size(); ++c) {
      if (const int n = static_cast<int>(space_.classes[c].size()) - space_.left[s][c]) taken.push_back({c, n});
    }
    out_.text(margin, row_[s] + levels_[s] * bar / 2 + 3.5, fitted(devices(taken), 20), {.size = 12.5, .weight = 600});
    for (int q = 1; s > 0 && q <= levels_[s]; ++q) {
      for (std::size_t b = 0; b < blocks_; ++b) out_.rect(left(b), level_y(s, q), cell_, bar - 2, palette::track.hex(), {}, " rx=\"3\"");
      out_.text(left(0) - 8, level_y(s, q) + 12.5,
                std::to_string(q) + (static_cast<std::size_t>(q) == saturated_ ? " or more"
                                     : q == 1                                  ? " stage"
                                                                               : " stages"),
                {.size = 10, .fill = palette::quiet, .anchor = "end"});
    }
  }
  void cell(const table_cell& c) {
    const color fill = shade(c.best_rank);
    const double x = left(c.first_block), y = level_y(c.state, c.stages);
    const std::string rank = score(c.best_rank), count = std::to_string(c.kept), text = count + " · " + rank;
    const bool best = std::any_of(best_.begin(), best_.end(), [&](const step& w) { return is(w, c); });
    out_.rect(x, y, cell_, bar - 2, fill.hex(), count + (c.first_block == 0 ? " whole, best " : " kept, best rank ") + rank,
              " rx=\"3\" class=\"cell\"" + (best ? " stroke=\"" + way_color.hex() + "\" stroke-width=\"2\"" : std::string()));
    const std::string& shown = svg_writer::text_width(text, 11) < cell_ ? text : count;
    if (svg_writer::text_width(shown, 11) < cell_)
      out_.text(x + cell_ / 2, y + 13, shown, {.fill = palette::text_on(fill), .anchor = "middle", .weight = best ? 600 : 400});
  }
  /// Paints a stage as an arrow from its previous cell to the next, along the gaps between rows and columns.
  void arrow(std::size_t i) {
    const step &to = best_[i], from = i > 0 ? best_[i - 1] : step{blocks_, 0, 0, 1};
    const double gap = pitch_ - cell_, middle = bar / 2 - 1, x1 = left(from.first_block), y1 = level_y(from.state, from.level) + middle;
    const double x2 = left(to.first_block) + cell_, y2 = level_y(to.state, to.level) + middle;
    const double down1 = x1 - gap / 2, down2 = x2 + gap / 2, lane = row_[to.state] - gutter / 2 - 1;
    const std::string d = "M" + fixed(x1) + " " + fixed(y1) + "H" + fixed(down1) + "V" + fixed(lane) + "H" + fixed(down2) + "V" +
                          fixed(y2) + "H" + fixed(x2 + 2);
    const std::string label = std::to_string(from.first_block - to.first_block) +
                              (from.first_block - to.first_block == 1 ? " block on " : " blocks on ") + devices(space_.groups[to.group]);
    out_.path(d, "none", "stage " + std::to_string(best_.size() - 1 - i) + ": " + label,
              " class=\"stage\" stroke=\"" + way_color.hex() +
                  "\" stroke-width=\"2\" stroke-linejoin=\"round\" marker-end=\"url(#hetplan-tip)\"");
    const double wide = svg_writer::prose_width(label, 11.5) + 14, x = (down1 + down2) / 2;
    out_.rect(x - wide / 2, lane - 10, wide, 20, palette::paper.hex(), {}, " rx=\"10\" stroke=\"" + way_color.hex() + "\"");
    out_.text(x, lane + 4, label, {.size = 11.5, .fill = way_color, .anchor = "middle", .weight = 600});
  }
  /// Explains shades and numbers. Returns the height of the picture.
  double notes(double y) {
    if (cells_.empty()) return y;
    const double x = left(0), ramp = 120;
    for (double i = 0; i < 24; ++i)
      out_.rect(x + i * ramp / 24, y - 10, ramp - i * ramp / 24, 12, shade(least_ + (most_ - least_) * i / 23).hex());
    const table_cell& c = cells_.front();
    quiet(x + ramp + 10, y,
          "best rank of a cell, " + score(least_) + " to " + score(most_) + ": completions of its partial plans score no less");
    quiet(x, y + 22,
          "“" + std::to_string(c.kept) + " · " + score(c.best_rank) +
              "”: partial plans kept, and their best rank. With all blocks placed: plans found, and their best score.");
    quiet(
        x, y + 42,
        "A blank cell keeps nothing: there is no such plan, or memory, budgets or bounds rule it out. Outlined: the way of the best plan.");
    return y + 66;
  }
  const partition::search_tables& tables_;
  const partition::device_space& space_;
  std::string_view unit_;
  std::vector<table_cell> cells_;
  std::size_t blocks_;
  std::size_t saturated_ = std::numeric_limits<std::size_t>::max();  ///< plans of this many stages or more share a cell
  way best_;
  std::vector<int> levels_;  ///< by state: most stages of a cell
  std::vector<double> row_;  ///< by state: upper edge of its bars
  double least_ = std::numeric_limits<double>::infinity(), most_ = -least_;
  double pitch_ = 0, cell_ = 0;
  svg_writer out_;
};

}  // namespace detail

HETPLAN_INLINE std::string search_table_svg(const partition::search_tables& tables, const partition::device_space& space,
                                            std::span<const table_cell> cells, const partition::search_result& result,
                                            const partition::search_options& search, std::string_view unit) {
  return detail::search_table_painter(tables, space, cells, result, search, unit).paint();
}

}  // namespace hetplan::draw
