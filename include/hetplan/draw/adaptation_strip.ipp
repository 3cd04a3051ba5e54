// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/adaptation_strip.hpp>

#include <algorithm>

namespace HETPLAN_NAMESPACE::draw::detail {

/// Stretches that follow one another with the same activity and, where they run, the same plan, as one.
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

HETPLAN_INLINE strip_painter::strip_painter(adaptation_canvas& k, std::size_t policy, row_box box)
    : k_(k), policy_(policy), box_(box), pieces_(alike_stretches(k.view.policies[policy].history.stretches)) {}

HETPLAN_INLINE void strip_painter::paint() {
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

HETPLAN_INLINE std::string strip_painter::fill_of(const adapt::stretch& s) const {
  switch (s.what) {
    case adapt::activity::running: return adaptation_colors::layout(k_.view.layout(policy_, s.plan)).hex();
    case adapt::activity::cut_off: return "url(#hetplan-lost)";
    case adapt::activity::migrating: return "url(#hetplan-migrating)";
    case adapt::activity::stalled: return adaptation_colors::stalled.hex();
    case adapt::activity::idle: return adaptation_colors::idle.hex();
  }
  return "none";
}

HETPLAN_INLINE void strip_painter::bar(const adapt::stretch& s, double from, double to, double low, double high) {
  bar(s.what == adapt::activity::running ? running_ : others_, fill_of(s), from, to, low, high);
}

HETPLAN_INLINE void strip_painter::bar(fills& all, const std::string& fill, double from, double to, double low, double high) const {
  const double height = box_.level(low) - box_.level(high);
  all[fill] += "M" + fixed(from, 1) + " " + fixed(box_.level(high), 1) + "h" + fixed(to - from, 1) + "v" + fixed(height, 1) + "h" +
               fixed(from - to, 1) + "Z";
}

HETPLAN_INLINE void strip_painter::average() {
  const std::size_t bins = k_.bins();
  const double bin_s = k_.view.duration_s / static_cast<double>(bins), bin_px = k_.chart.axis().width / static_cast<double>(bins);
  const auto edge = [&](std::size_t b) { return k_.chart.axis().left + bin_px * static_cast<double>(b); };
  std::string last;  // what runs since `since`
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

}  // namespace HETPLAN_NAMESPACE::draw::detail
