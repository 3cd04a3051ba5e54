// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/adaptation_chart.hpp>

#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>

#include <range/v3/view/drop.hpp>
#include <range/v3/view/zip.hpp>

#include <hetplan/plan/plan.hpp>

namespace hetplan::draw::detail {

/// Builder of levels over time. The last value set at a time counts.
class level_curve {
 public:
  void set(double at_s, double value) {
    if (!levels_.empty() && levels_.back().from_s == at_s) levels_.pop_back();
    if (!levels_.empty() && levels_.back().value == value) return;
    levels_.push_back({at_s, at_s, value});
  }
  /// Returns the levels, each up to the next, the last up to the end.
  [[nodiscard]] std::vector<level> until(double end_s) && {
    for (std::size_t i = 0; i < levels_.size(); ++i) levels_[i].to_s = i + 1 < levels_.size() ? levels_[i + 1].from_s : end_s;
    return std::move(levels_);
  }

 private:
  std::vector<level> levels_;
};

HETPLAN_INLINE double changing::deviation() const {
  double sum = 0;
  for (const level& l : levels) sum += (l.to_s - l.from_s) * std::min(1.0, std::abs(l.value / nominal - 1));
  for (const level& l : away) sum += l.to_s - l.from_s;
  return sum;
}

HETPLAN_INLINE std::string plan_name::text() const {
  std::string name;
  for (std::size_t n = layout + 1; n > 0; n = (n - 1) / 26) name.insert(name.begin(), static_cast<char>('A' + (n - 1) % 26));
  return name + (variant == 0 ? "" : std::to_string(variant + 1));
}

/// True if two plans execute alike: only their planners may differ.
[[nodiscard]] HETPLAN_INLINE bool same_execution(const plan& a, const plan& b) {
  return a.microbatch_size == b.microbatch_size && a.microbatches == b.microbatches && a.pipelines == b.pipelines &&
         a.parameter_server == b.parameter_server && a.stages == b.stages && a.schedule == b.schedule &&
         a.sharing_policy == b.sharing_policy && a.transfers == b.transfers && a.workload == b.workload;
}

HETPLAN_INLINE adaptation_view::adaptation_view(std::span<const io::policy_history> rows, const adapt::timeline& t, const cluster& c,
                                                const qoe_target& first_target)
    : policies(rows), duration_s(t.duration.value()) {
  read_conditions(t, c);
  read_targets(t, first_target);
  for (const io::policy_history& row : rows) {
    names.emplace_back();
    const adapt::history& h = row.history;
    for (std::size_t i = 0; i < h.plans.size(); ++i) names.back().push_back(name_of({&h.plans[i], h.prediction(i)}));
  }
}

HETPLAN_INLINE std::string adaptation_view::name(std::size_t policy, std::size_t index) const {
  return index < names[policy].size() ? names[policy][index].text() : std::string("none");
}

HETPLAN_INLINE std::size_t adaptation_view::layout(std::size_t policy, std::size_t index) const {
  return index < names[policy].size() ? names[policy][index].layout : 0;
}

HETPLAN_INLINE double adaptation_view::wanted_at(double t) const {
  const auto it = std::upper_bound(wanted.begin(), wanted.end(), t, [](double at, const level& l) { return at < l.from_s; });
  return std::prev(it)->value;
}

HETPLAN_INLINE void adaptation_view::read_conditions(const adapt::timeline& t, const cluster& c) {
  std::vector<level_curve> capacity(c.network().resources().size()), speed(c.size()), away(c.size());
  std::vector<std::size_t> steps(capacity.size(), 0);
  const auto network = c.network().resources();
  for (std::size_t r = 0; r < capacity.size(); ++r) capacity[r].set(0, network[r].capacity.value());
  for (std::size_t d = 0; d < c.size(); ++d) speed[d].set(0, 1), away[d].set(0, 0);
  for (const adapt::event& e : t.events) {
    if (!(e.at < t.duration)) break;
    if (const auto* x = std::get_if<adapt::capacity_becomes>(&e.what)) ++steps[x->resource.index()];
  }
  constexpr std::size_t trace = 50;  // a resource with more steps follows a trace and gets no marks
  for (const adapt::event& e : t.events) {
    if (!(e.at < t.duration)) break;
    const double at = e.at.value();
    bool mark = true;
    if (const auto* x = std::get_if<adapt::capacity_becomes>(&e.what)) {
      capacity[x->resource.index()].set(at, x->capacity.value());
      mark = steps[x->resource.index()] <= trace;
    } else if (const auto* s = std::get_if<adapt::speed_becomes>(&e.what)) {
      speed[s->device.index()].set(at, s->speed);
    } else if (const auto* l = std::get_if<adapt::device_leaves>(&e.what)) {
      away[l->device.index()].set(at, 1);
    } else if (const auto* j = std::get_if<adapt::device_joins>(&e.what)) {
      away[j->device.index()].set(at, 0);
    } else if (std::holds_alternative<adapt::transfer_begins>(e.what)) {
      transfers.push_back(e);
    }
    if (mark && (marks.empty() || marks.back() < at)) marks.push_back(at);
  }
  for (std::size_t r = 0; r < capacity.size(); ++r) {
    changing x{r, network[r].capacity.value(), std::move(capacity[r]).until(duration_s)};
    if (x.levels.size() > 1 || x.levels.front().value != x.nominal) resources.push_back(std::move(x));
  }
  for (std::size_t d = 0; d < c.size(); ++d) {
    changing x{d, 1, std::move(speed[d]).until(duration_s), std::move(away[d]).until(duration_s)};
    std::erase_if(x.away, [](const level& l) { return l.value == 0; });
    if (x.levels.size() > 1 || x.levels.front().value != 1 || !x.away.empty()) devices.push_back(std::move(x));
  }
  keep_most(resources, most_resources);
  keep_most(devices, most_devices);
}

HETPLAN_INLINE void adaptation_view::keep_most(std::vector<changing>& all, std::size_t most) {
  if (all.size() <= most) return;
  hidden += all.size() - most;
  std::stable_sort(all.begin(), all.end(), [](const changing& a, const changing& b) { return a.deviation() > b.deviation(); });
  all.resize(most);
  std::sort(all.begin(), all.end(), [](const changing& a, const changing& b) { return a.index < b.index; });
}

HETPLAN_INLINE void adaptation_view::read_targets(const adapt::timeline& t, const qoe_target& first) {
  constexpr double never = std::numeric_limits<double>::infinity();
  level_curve latency, deadline;
  latency.set(0, first.latency ? first.latency->value() : never);
  deadline.set(0, first.deadline ? first.deadline->value() : never);
  for (const adapt::event& e : t.events) {
    if (!(e.at < t.duration)) break;
    const auto* q = std::get_if<adapt::qoe_becomes>(&e.what);
    if (q == nullptr) continue;
    if (q->latency) latency.set(e.at.value(), q->latency->value());
    if (q->deadline) deadline.set(e.at.value(), q->deadline->value());
  }
  wanted = std::move(latency).until(duration_s);
  for (const level& l : std::move(deadline).until(duration_s)) {
    if (l.value >= l.from_s && l.value <= l.to_s) deadlines.push_back(l.value);
  }
}

HETPLAN_INLINE plan_name adaptation_view::name_of(const shown_plan& p) {
  std::size_t l = 0;
  while (l < layouts.size() && !same_placement(*layouts[l].front().plan, *p.plan)) ++l;
  if (l == layouts.size()) layouts.emplace_back();
  std::size_t v = 0;
  while (v < layouts[l].size() && !same_execution(*layouts[l][v].plan, *p.plan)) ++v;
  if (v == layouts[l].size()) layouts[l].push_back(p);
  return {l, v};
}

HETPLAN_INLINE std::string hatch_patterns() {
  const auto pattern = [](std::string_view id, color c) {
    return "<pattern id=\"hetplan-" + std::string(id) +
           "\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><rect width=\"5\" height=\"5\" "
           "fill=\"" +
           c.hex() + "\"/><rect width=\"1.6\" height=\"5\" fill=\"#ffffff\" fill-opacity=\"0.65\"/></pattern>";
  };
  return "<defs>" + pattern("away", adaptation_colors::away) + pattern("migrating", adaptation_colors::migrating) +
         pattern("outage", adaptation_colors::stalled) + pattern("lost", adaptation_colors::cut_off) + "</defs>\n";
}

HETPLAN_INLINE adaptation_canvas::adaptation_canvas(const adaptation_view& v, const hetplan::cluster& c, const adaptation_detail& d)
    : view(v), cluster(c), detail(d), chart(v.duration_s, time_labels::clock) {}

HETPLAN_INLINE void adaptation_canvas::track(row_box box) {
  chart.plot.rect(chart.axis().left, box.top, chart.axis().width, box.height, palette::track.hex());
  chart.plot.raw(marks(box.top, box.top + box.height));
}

HETPLAN_INLINE std::string adaptation_canvas::marks(double top, double bottom) const {
  if (view.marks.empty() || view.marks.size() > 80) return {};
  std::string d;
  for (const double at : view.marks) d += "M" + fixed(x(at), 1) + " " + fixed(top, 1) + "V" + fixed(bottom, 1);
  return "<path d=\"" + d + "\" fill=\"none\" stroke=\"" + palette::activations.hex() +
         "\" stroke-opacity=\"0.6\" stroke-dasharray=\"2 3\"/>\n";
}

HETPLAN_INLINE void adaptation_canvas::box(double from_s, double to_s, row_box b, std::string_view fill, std::string_view hover) {
  chart.plot.rect(x(from_s), b.top, std::max(1.0, x(to_s) - x(from_s)), b.height, fill, hover);
}

HETPLAN_INLINE void adaptation_canvas::stroke(const std::string& d, color c, double width) {
  if (!d.empty()) chart.plot.path(d, "none", {}, " stroke=\"" + c.hex() + "\" stroke-width=\"" + fixed(width) + "\"");
}

HETPLAN_INLINE void adaptation_canvas::cell(double from_s, double to_s, row_box b, std::string_view hover) {
  chart.plot.rect(x(from_s), b.top, x(to_s) - x(from_s), b.height, "transparent", hover);
}

HETPLAN_INLINE void adaptation_canvas::mark(sign s, double at_s, double y, std::string_view hover) {
  const std::string at = "M" + fixed(x(at_s)) + " " + fixed(y, 1);
  chart.plot.path(at + std::string(shape_of(s)), color_of(s).hex(), hover, detail.zooms ? unstretched : std::string_view());
}

HETPLAN_INLINE void adaptation_canvas::label(double at_s, double baseline, std::string_view text, double room, const text_style& style,
                                             std::string more) {
  const double width = svg_writer::prose_width(text, style.size) + 6, left = chart.axis().left, right = left + chart.axis().width;
  if (width > room && !detail.zooms) return;
  if (width > room) more += " data-show=\"" + fixed(width / std::max(room, 0.5), 2) + "\" visibility=\"hidden\"";
  text_style middle = style;
  middle.anchor = "middle";
  const double half = std::min(width, chart.axis().width) / 2;
  chart.plot.text(std::clamp(x(at_s), left + half, right - half), baseline, text, middle, more);
}

/// Limit on levels or stretches drawn one by one. More are drawn as a band from minimum to maximum with the mean.
inline constexpr std::size_t many = 400;

/// Signs on a row with a few words above each. Words without room are only hover texts.
class sign_row {
 public:
  void add(sign s, double at_s, std::string words, std::string hover) { all_.push_back({s, at_s, std::move(words), std::move(hover)}); }
  [[nodiscard]] bool empty() const { return all_.empty(); }

  /// @param y  the signs' middle
  void paint(adaptation_canvas& k, double y) {
    std::stable_sort(all_.begin(), all_.end(), [](const item& a, const item& b) { return a.at_s < b.at_s; });
    if (all_.size() > k.detail.signs) thin(k);
    const auto width = [&](std::size_t i) { return i < all_.size() ? svg_writer::prose_width(all_[i].words, 9.5) + 6 : 0; };
    const double left = k.chart.axis().left, right = left + k.chart.axis().width;
    double free_from = left;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const double here = k.x(all_[i].at_s), before = i > 0 ? k.x(all_[i - 1].at_s) : left - 100;
      const double next = i + 1 < all_.size() ? k.x(all_[i + 1].at_s) : right + 100;
      // Words are centred on the sign, except at the edges of the chart, and never cover another sign.
      const double begin = std::clamp(here - width(i) / 2, left, std::max(left, right - width(i)));
      if (!all_[i].words.empty() && begin >= std::max(free_from, before + 5) && begin + width(i) <= next - 5) {
        k.label(all_[i].at_s, y - 8, all_[i].words, width(i), {.size = 9.5});
        free_from = begin + width(i);
      } else if (k.detail.zooms && !all_[i].words.empty()) {
        // Words appear on zooming in, once both neighbours leave room for the widest of the three.
        const double widest = std::max({width(i), i > 0 ? width(i - 1) : 0, width(i + 1)});
        k.label(all_[i].at_s, y - 8, all_[i].words, width(i) * std::min(here - before, next - here) / widest, {.size = 9.5});
      }
      k.mark(all_[i].what, all_[i].at_s, y, all_[i].hover);
    }
  }

 private:
  struct item {
    sign what;
    double at_s;
    std::string words, hover;
  };
  /// Merges signs within a few pixels into one of the strongest kind.
  void thin(const adaptation_canvas& k) {
    std::vector<item> few;
    std::size_t together = 1;
    const double apart = std::max(9.0, k.chart.axis().width / static_cast<double>(k.detail.signs));
    for (item& i : all_) {
      if (!few.empty() && k.x(i.at_s) - k.x(few.back().at_s) < apart) {
        ++together;
        few.back().what = std::max(few.back().what, i.what);
        few.back().words.clear();
        few.back().hover = std::to_string(together) + " from " + clock_text(few.back().at_s) + " on; the last:\n" + i.hover;
        continue;
      }
      together = 1;
      few.push_back(std::move(i));
    }
    all_ = std::move(few);
  }

  std::vector<item> all_;
};

/// Adds hover texts: one per level, or minimum and maximum over equal time spans if there are many levels.
template <class Text>
void explain_levels(adaptation_canvas& k, const std::vector<level>& levels, row_box box, Text&& text) {
  const auto tell = [&](double from, double to, double least, double most) {
    const std::string when = clock_text(from) + " to " + clock_text(to);
    k.cell(from, to, box, text(least) + (most > least ? " to " + text(most) : "") + "\n" + when);
  };
  if (levels.size() <= k.detail.cells) {
    for (const level& l : levels) tell(l.from_s, l.to_s, l.value, l.value);
    return;
  }
  const auto n = static_cast<double>(k.detail.cells);
  std::size_t i = 0;
  for (std::size_t part = 0; part < k.detail.cells; ++part) {
    const double from = k.view.duration_s * static_cast<double>(part) / n, to = k.view.duration_s * static_cast<double>(part + 1) / n;
    while (i + 1 < levels.size() && levels[i].to_s <= from) ++i;
    double least = levels[i].value, most = least;
    for (std::size_t j = i; j < levels.size() && levels[j].from_s < to; ++j) {
      least = std::min(least, levels[j].value);
      most = std::max(most, levels[j].value);
    }
    tell(from, to, least, most);
  }
}

/// Paints a capacity or a speed over time: a filled curve, hatched while it is 0 or the device absent.
template <class Text>
void paint_changing(adaptation_canvas& k, const changing& c, color fill, std::string_view zero, row_box box, Text&& text) {
  double full = c.nominal, sum = 0, none = 0, away = 0;
  value_band band = k.band();
  const time_axis& axis = k.chart.axis();
  for (const level& l : c.levels) {
    full = std::max(full, l.value);
    sum += l.value * (l.to_s - l.from_s);
    none += l.value == 0 ? l.to_s - l.from_s : 0;
    band.add(l.from_s, l.to_s, l.value);
  }
  k.track(box);
  const std::string pale = mix(fill, palette::paper, 0.75).hex();
  if (c.levels.size() > many) {
    k.chart.plot.path(band.area(box, full), pale);
    k.chart.plot.path(band.range(box, full), mix(fill, palette::paper, 0.5).hex());
    k.stroke(step_line(band.means([](std::size_t) { return true; }), axis, box, full), fill);
  } else {
    k.chart.plot.path(step_area(c.levels, axis, box, full), pale);
    k.stroke(step_line(c.levels, axis, box, full), fill);
  }
  const auto hatch = [&](const level& l, std::string_view pattern, std::string_view words) {
    k.box(l.from_s, l.to_s, box, pattern);
    const std::string halo = " stroke=\"" + palette::track.hex() + "\" stroke-width=\"5\" stroke-linejoin=\"round\" paint-order=\"stroke\"";
    k.label((l.from_s + l.to_s) / 2, box.top + box.height / 2 + 3.5, words, k.x(l.to_s) - k.x(l.from_s), {.size = 10.5}, halo);
  };
  std::size_t hatched = 0;
  for (const level& l : c.levels) {
    if (l.value == 0 && ++hatched <= 200) hatch(l, "url(#hetplan-outage)", zero);
  }
  explain_levels(k, c.levels, box, text);
  for (const level& l : c.away) {
    away += l.to_s - l.from_s;
    if (++hatched <= 400) hatch(l, "url(#hetplan-away)", "away");
  }
  k.chart.level(text(full), box.top + 8);
  k.chart.level("0", box.top + box.height);
  const double middle = box.top + box.height / 2;
  if (full > c.nominal) {
    const double y = box.level(c.nominal / full);
    k.chart.plot.line(k.chart.axis().left, y, k.chart.axis().left + k.chart.axis().width, y, palette::activations, 1,
                      " stroke-dasharray=\"4 3\"");
  }
  k.chart.number("mean " + text(sum / k.view.duration_s), middle - 2);
  if (away > 0) {
    k.chart.number("away " + clock_text(away), middle + 11, palette::quiet);
  } else if (none > 0) {
    k.chart.number(std::string(zero) + " " + clock_text(none), middle + 11, palette::alarm);
  } else {
    k.chart.number("nominal " + text(c.nominal), middle + 11, palette::quiet);
  }
}

/// Merges consecutive stretches with the same activity and, if running, the same plan.
[[nodiscard]] HETPLAN_INLINE std::vector<adapt::stretch> alike_stretches(const std::vector<adapt::stretch>& all) {
  std::vector<adapt::stretch> few;
  for (const adapt::stretch& s : all) {
    const bool same = !few.empty() && few.back().what == s.what && few.back().end_s == s.start_s &&
                      (s.what != adapt::activity::running || few.back().plan == s.plan);
    if (same) few.back().end_s = s.end_s;
    else few.push_back(s);
  }
  return few;
}

/// Painter of a policy's strip: the plan that runs, in the colour of its layout, or the activity while none runs. A pixel with many
/// stretches shows the plan that ran longest and, at least a quarter high, what else happened.
class strip_painter {
 public:
  strip_painter(adaptation_canvas& k, std::size_t policy, row_box box)
      : k_(k), policy_(policy), box_(box), pieces_(alike_stretches(k.view.policies[policy].history.stretches)) {}

  void paint() {
    if (pieces_.size() <= many) {
      for (const adapt::stretch& s : pieces_) bar(s, k_.x(s.start_s), std::max(k_.x(s.start_s) + 1, k_.x(s.end_s)), 0, 1);
    } else {
      average();
    }
    for (const auto& [fill, d] : running_) k_.chart.plot.path(d, fill);
    for (const auto& [fill, d] : others_) k_.chart.plot.path(d, fill);
    if (pieces_.size() > many) return;
    for (const adapt::stretch& s : pieces_) {
      const auto label = [&](const std::string& text, const text_style& style) {
        k_.label((s.start_s + s.end_s) / 2, box_.top + 11, text, k_.x(s.end_s) - k_.x(s.start_s), style);
      };
      if (s.what == adapt::activity::running) label(k_.view.name(policy_, s.plan), {.size = 10.5, .weight = 600});
      if (s.what == adapt::activity::stalled) label("nothing can run", {.size = 10.5, .fill = palette::paper});
      if (s.what == adapt::activity::idle) label("rests", {.size = 10.5});
    }
  }

 private:
  using fills = std::map<std::string, std::string>;  ///< outlines by fill

  [[nodiscard]] std::string fill_of(const adapt::stretch& s) const {
    switch (s.what) {
      case adapt::activity::running: return adaptation_colors::layout(k_.view.layout(policy_, s.plan)).hex();
      case adapt::activity::cut_off: return "url(#hetplan-lost)";
      case adapt::activity::migrating: return "url(#hetplan-migrating)";
      case adapt::activity::stalled: return adaptation_colors::stalled.hex();
      case adapt::activity::idle: return adaptation_colors::idle.hex();
    }
    return "none";
  }
  void bar(const adapt::stretch& s, double from, double to, double low, double high) {
    bar(s.what == adapt::activity::running ? running_ : others_, fill_of(s), from, to, low, high);
  }
  void bar(fills& all, const std::string& fill, double from, double to, double low, double high) const {
    const double height = box_.level(low) - box_.level(high);
    all[fill] += "M" + fixed(from, 1) + " " + fixed(box_.level(high), 1) + "h" + fixed(to - from, 1) + "v" + fixed(height, 1) + "h" +
                 fixed(from - to, 1) + "Z";
  }

  void average() {
    const std::size_t bins = k_.bins();
    const double bin_s = k_.view.duration_s / static_cast<double>(bins), bin_px = k_.chart.axis().width / static_cast<double>(bins);
    const auto edge = [&](std::size_t b) { return k_.chart.axis().left + bin_px * static_cast<double>(b); };
    std::string last;  // fill that runs from bin `since` on
    std::size_t first = 0, since = 0;
    for (std::size_t b = 0; b < bins; ++b) {
      const double from = bin_s * static_cast<double>(b), to = from + bin_s;
      while (first < pieces_.size() && pieces_[first].end_s <= from) ++first;
      std::map<std::string, double> runs, rests;  // shares of the bin by fill
      for (std::size_t j = first; j < pieces_.size() && pieces_[j].start_s < to; ++j) {
        const double part = std::min(to, pieces_[j].end_s) - std::max(from, pieces_[j].start_s);
        (pieces_[j].what == adapt::activity::running ? runs : rests)[fill_of(pieces_[j])] += part / bin_s;
      }
      std::string longest;
      for (const auto& [fill, share] : runs) longest = longest.empty() || share > runs[longest] ? fill : longest;
      if (longest != last) {
        if (!last.empty()) bar(running_, last, edge(since), edge(b), 0, 1);
        last = longest, since = b;
      }
      double low = 0;
      for (const auto& [fill, share] : rests) {
        const double high = std::min(1.0, low + std::max(0.25, share));
        if (high > low && share > 0) bar(others_, fill, edge(b), edge(b + 1), low, high);
        low = high;
      }
    }
    if (!last.empty()) bar(running_, last, edge(since), edge(bins), 0, 1);
  }

  adaptation_canvas& k_;
  std::size_t policy_;
  row_box box_;
  std::vector<adapt::stretch> pieces_;
  fills running_, others_;
};

[[nodiscard]] HETPLAN_INLINE std::string explain_adoption(const adaptation_view& view, std::size_t p, const adapt::adoption& a) {
  std::string text = view.policies[p].policy + ": plan " + view.name(p, a.from) + " → " + view.name(p, a.to) + " (" +
                     std::string(to_string(a.reached)) + ")";
  if (!a.reason.empty()) text += "\n" + a.reason;
  text += "\ncaused at " + clock_text(a.caused_s) + ", decided " + clock_text(a.decided_s - a.caused_s) + " later, in force " +
          clock_text(a.done_s - a.caused_s) + " later";
  if (a.stall_s > 0) text += "\nhalted for " + clock_text(a.stall_s);
  if (a.moved_bytes > 0) text += "\nmoved " + engineering(a.moved_bytes, "B") + " with " + engineering(a.moved_J, "J");
  return text;
}

/// Summary of a time span for its hover text.
struct span_summary {
  std::array<double, 5> part_s{};  ///< seconds by activity
  double iterations = 0, late = 0, energy_J = 0;
  double least_s = std::numeric_limits<double>::infinity(), most_s = 0;  ///< response
  std::vector<std::size_t> plans = {};                                   ///< the first few plans that ran

  void add(const adapt::stretch& s, double from_s, double to_s) {
    const double length = s.end_s - s.start_s, share = length > 0 ? (to_s - from_s) / length : 1;
    part_s[static_cast<std::size_t>(s.what)] += to_s - from_s;
    energy_J += share * s.energy_J;
    if (s.what != adapt::activity::running) return;
    iterations += share * static_cast<double>(s.iterations);
    if (s.violates) late += share * static_cast<double>(s.iterations);
    least_s = std::min(least_s, s.response_s);
    most_s = std::max(most_s, s.response_s);
    if (plans.size() < 5 && std::find(plans.begin(), plans.end(), s.plan) == plans.end()) plans.push_back(s.plan);
  }
};

[[nodiscard]] HETPLAN_INLINE std::string explain_span(const adaptation_view& view, std::size_t p, const span_summary& s, double from,
                                                      double to) {
  std::string text = view.policies[p].policy + ", " + clock_text(from) + " to " + clock_text(to);
  std::string plans;
  for (const std::size_t i : s.plans) plans += (plans.empty() ? "" : ", ") + view.name(p, i);
  if (!plans.empty()) text += "\nplan " + plans;
  for (std::size_t a = 0; a < s.part_s.size(); ++a) {
    const double share = to > from ? 100 * s.part_s[a] / (to - from) : 0;
    if (s.part_s[a] <= 0) continue;
    text += "\n" + std::string(to_string(static_cast<adapt::activity>(a))) + (share < 99.95 ? " " + fixed(share, 1) + " %" : "");
  }
  if (s.iterations > 0) {
    text += "\n" + fixed(s.iterations, s.iterations < 10 ? 1 : 0) + " iterations, response " + engineering(s.least_s, "s");
    if (s.most_s > s.least_s) text += " to " + engineering(s.most_s, "s");
    if (const double wanted = view.wanted_at(from); std::isfinite(wanted)) text += ", wanted " + engineering(wanted, "s");
    if (s.late > 0) text += "\n" + fixed(s.late, s.late < 10 ? 1 : 0) + " of them late";
  }
  return text + "\n" + engineering(s.energy_J, "J");
}

/// Adds a policy's hover texts: one per stretch, or over equal time spans if there are many.
HETPLAN_INLINE void explain_spans(adaptation_canvas& k, std::size_t p, row_box box) {
  const auto& stretches = k.view.policies[p].history.stretches;
  if (stretches.empty()) return;
  std::vector<double> cuts{stretches.front().start_s};
  for (std::size_t i = 1; i < stretches.size() && cuts.size() <= k.detail.cells; ++i) {
    const adapt::stretch &a = stretches[i - 1], &b = stretches[i];
    if (a.what != b.what || a.plan != b.plan || a.response_s != b.response_s || a.violates != b.violates) cuts.push_back(b.start_s);
  }
  if (cuts.size() > k.detail.cells) {
    cuts.clear();
    const double from = stretches.front().start_s, to = stretches.back().end_s;
    const auto parts = static_cast<double>(k.detail.cells);
    for (std::size_t i = 0; i < k.detail.cells; ++i) cuts.push_back(from + (to - from) * static_cast<double>(i) / parts);
  }
  cuts.push_back(stretches.back().end_s);
  std::size_t i = 0;
  for (const auto& [from, to] : ranges::views::zip(cuts, cuts | ranges::views::drop(1))) {
    span_summary sum;
    while (i < stretches.size() && stretches[i].end_s <= from) ++i;
    for (std::size_t j = i; j < stretches.size() && stretches[j].start_s < to; ++j)
      sum.add(stretches[j], std::max(from, stretches[j].start_s), std::min(to, stretches[j].end_s));
    k.cell(from, to, box, explain_span(k.view, p, sum, from, to));
  }
}

class rows_painter {
 public:
  explicit rows_painter(adaptation_canvas& k) : k_(k), view_(k.view), full_s_(response_scale()) {}

  /// @return  the lower edge of the last row.
  double paint() {
    double y = paint_conditions(6);
    for (std::size_t p = 0; p < view_.policies.size(); ++p) y = paint_policy(p, y);
    const double bottom = y - 14;
    svg_writer background;
    background.raw(k_.marks(0, bottom));
    background.append(std::move(k_.chart.plot));
    k_.chart.plot = std::move(background);
    for (const double at : view_.deadlines)
      k_.chart.plot.line(k_.x(at), deadline_top_, k_.x(at), bottom, palette::ink, 1.4, " pointer-events=\"none\"");
    return bottom;
  }

 private:
  [[nodiscard]] double paint_conditions(double y) {
    const auto rate = [](double v) { return engineering(8 * v, "bit/s"); };
    const auto factor = [](double v) { return fixed(100 * v, 0) + " %"; };
    for (const changing& c : view_.resources) {
      const row_box box{y, 38};
      k_.chart.name(k_.cluster.network().resources()[c.index].name, "capacity", y, box.height);
      paint_changing(k_, c, adaptation_colors::capacity, "outage", box, rate);
      y += box.height + 12;
    }
    for (const changing& c : view_.devices) {
      const row_box box{y, 28};
      k_.chart.name(k_.cluster.devices()[c.index].name, "speed", y, box.height);
      paint_changing(k_, c, adaptation_colors::speed, "stopped", box, factor);
      y += box.height + 12;
    }
    sign_row traffic;
    for (const adapt::event& e : view_.transfers) {
      const auto& t = std::get<adapt::transfer_begins>(e.what);
      const std::string words = k_.cluster[t.from].name + " → " + k_.cluster[t.to].name + ", " + engineering(t.volume.value(), "B");
      traffic.add(sign::event, e.at.value(), words, "other traffic: " + words + "\nbegins at " + clock_text(e.at.value()));
    }
    y = paint_signs(traffic, "other traffic", y);
    sign_row targets;
    for (std::size_t i = 1; i < view_.wanted.size(); ++i) {
      const std::string response = "response " + engineering(view_.wanted[i].value, "s");
      targets.add(sign::event, view_.wanted[i].from_s, response, response + "\nwanted from " + clock_text(view_.wanted[i].from_s) + " on");
    }
    deadline_top_ = y + 11;
    for (const double at : view_.deadlines) targets.add(sign::done, at, "deadline", "deadline at " + clock_text(at));
    y = paint_signs(targets, "wanted", y);
    if (view_.hidden > 0) {
      const std::string hidden = std::to_string(view_.hidden) + (view_.hidden == 1 ? " other changes" : " others change");
      k_.chart.still.text(time_chart::left, y + 4, hidden + " less: not shown", {.size = 10.5, .fill = palette::quiet});
      y += 16;
    }
    return y + 4;
  }
  [[nodiscard]] double paint_signs(sign_row& row, std::string_view name, double y) {
    if (row.empty()) return y;
    k_.chart.name(name, {}, y, 24);
    row.paint(k_, y + 17);
    return y + 32;
  }

  [[nodiscard]] double paint_policy(std::size_t p, double y) {
    const io::policy_history& row = view_.policies[p];
    const adapt::history& h = row.history;
    const row_box strip{y + 24, 15}, panel{y + 43, 46};
    const std::size_t n = h.adoptions.size();
    const std::string adoptions = n == 0 ? "changes nothing" : grouped(n) + (n == 1 ? " adoption" : " adoptions");
    k_.chart.name(row.policy, adoptions, y + 10, 30);
    k_.chart.still.text(0, panel.top + panel.height / 2 + 10, "response", {.size = 10.5, .fill = palette::quiet});
    k_.track(strip);
    k_.track(panel);
    strip_painter(k_, p, strip).paint();
    paint_response(h, panel);
    explain_spans(k_, p, {strip.top, panel.top + panel.height - strip.top});
    sign_row signs;
    for (const adapt::adoption& a : h.adoptions) {
      if (a.caused_s < a.done_s && n <= k_.detail.signs) {
        const double from = k_.x(a.caused_s), to = k_.x(a.done_s);
        if (to - from > 2) k_.chart.plot.line(from, strip.top - 1.5, to, strip.top - 1.5, palette::ink, 1.6);
      }
      const std::string words = std::string(to_string(a.reached)) + " → " + view_.name(p, a.to);
      signs.add(sign_of(a.reached), a.done_s, words, explain_adoption(view_, p, a));
    }
    if (h.finished_s) signs.add(sign::done, *h.finished_s, "job done", row.policy + ": job done\n" + clock_text(*h.finished_s));
    signs.paint(k_, y + 15);
    const auto number = [&](std::string_view text, int line, color fill = palette::ink) {
      k_.chart.number(text, y + 30 + 14.5 * line, fill);
    };
    number(grouped(h.iterations) + (h.iterations == 1 ? " iteration" : " iterations"), 0);
    const double share = h.iterations > 0 ? 100 * static_cast<double>(h.violations) / static_cast<double>(h.iterations) : 0;
    if (h.violations > 0) number(grouped(h.violations) + " late (" + fixed(share, share < 10 ? 1 : 0) + " %)", 1, palette::alarm);
    else number("none late", 1, palette::quiet);
    number(h.stall_s > 0 ? "halted " + clock_text(h.stall_s) : std::string("never halted"), 2, palette::quiet);
    number(engineering(h.energy_J, "J"), 3, palette::quiet);
    if (!h.status.ok()) number(to_string(h.status.result), 4, palette::alarm);
    else if (h.missed_deadline) number("missed the deadline", 4, palette::alarm);
    return panel.top + panel.height + 22;
  }

  /// Returns the common scale of responses, which covers the target and 98 % of the time in which plans ran.
  [[nodiscard]] double response_scale() const {
    std::vector<std::pair<double, double>> all;
    double whole = 0, wanted = 0;
    for (const io::policy_history& row : view_.policies) {
      for (const adapt::stretch& s : row.history.stretches) {
        if (s.what != adapt::activity::running) continue;
        all.emplace_back(s.response_s, s.end_s - s.start_s);
        whole += s.end_s - s.start_s;
      }
    }
    for (const level& l : view_.wanted) wanted = std::isfinite(l.value) ? std::max(wanted, l.value) : wanted;
    std::sort(all.begin(), all.end());
    double most = 0, before = 0;
    for (const auto& [response, length] : all) {
      if (before > 0.98 * whole) break;
      before += length;
      most = response;
    }
    const double full = most > 0 ? std::max(1.15 * most, std::min(1.3 * wanted, 4 * most)) : 1.3 * wanted;
    return full > 0 && std::isfinite(full) ? full : 1;
  }

  void paint_response(const adapt::history& h, row_box box) {
    value_band all = k_.band(), on_time = k_.band(), late = k_.band();
    std::vector<level> in_time, too_late;
    bool beyond = false;
    for (const adapt::stretch& s : h.stretches) {
      if (s.what != adapt::activity::running) continue;
      beyond = beyond || s.response_s > full_s_;
      if (h.stretches.size() <= many) {
        (s.violates ? too_late : in_time).push_back({s.start_s, s.end_s, s.response_s});
        continue;
      }
      all.add(s.start_s, s.end_s, s.response_s);
      (s.violates ? late : on_time).add(s.start_s, s.end_s, s.response_s);
    }
    if (h.stretches.size() > many) {
      k_.chart.plot.path(on_time.range(box, full_s_), mix(adaptation_colors::on_time, palette::paper, 0.6).hex());
      k_.chart.plot.path(late.range(box, full_s_), mix(adaptation_colors::late, palette::paper, 0.6).hex());
      const auto mostly_late = [&](std::size_t b) { return late.weight(b) > on_time.weight(b); };
      in_time = all.means([&](std::size_t b) { return !mostly_late(b); });
      too_late = all.means(mostly_late);
    }
    double first_y = -100;
    for (const level& l : view_.wanted) {
      if (!(l.value <= full_s_)) continue;
      const double y = box.level(l.value / full_s_);
      k_.chart.plot.line(k_.x(l.from_s), y, k_.x(l.to_s), y, palette::ink, 1, " stroke-dasharray=\"5 3\"");
      if (l.from_s == 0) first_y = y;
    }
    k_.stroke(step_line(in_time, k_.chart.axis(), box, full_s_), adaptation_colors::on_time);
    k_.stroke(step_line(too_late, k_.chart.axis(), box, full_s_), adaptation_colors::late);
    if (first_y > 0) k_.chart.level("wanted " + engineering(view_.wanted.front().value, "s"), first_y + 3.5);
    if (std::abs(first_y - box.top - 4.5) > 10) k_.chart.level((beyond ? "≥ " : "") + engineering(full_s_, "s"), box.top + 8);
    if (std::abs(first_y - box.top - box.height) > 10) k_.chart.level("0", box.top + box.height);
  }

  [[nodiscard]] static sign sign_of(adapt::rung r) {
    return r == adapt::rung::network      ? sign::network
           : r == adapt::rung::known_plan ? sign::known_plan
           : r == adapt::rung::replanned  ? sign::replanned
                                          : sign::event;
  }

  adaptation_canvas& k_;
  const adaptation_view& view_;
  double full_s_;
  double deadline_top_ = 6;
};

HETPLAN_INLINE double paint_rows(adaptation_canvas& k) { return rows_painter(k).paint(); }

}  // namespace hetplan::draw::detail
