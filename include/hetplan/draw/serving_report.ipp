// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/serving_report.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <variant>

#include <hetplan/draw/page.hpp>
#include <hetplan/draw/serving_charts.hpp>
#include <hetplan/draw/svg.hpp>
#include <hetplan/draw/time_axis.hpp>

namespace hetplan::draw::detail {

[[nodiscard]] HETPLAN_INLINE color outcome_color(serve::request_outcome o) {
  constexpr std::array<color, serve::request_outcomes> colors{
      {{26, 138, 107}, {243, 178, 100}, {104, 188, 170}, {214, 106, 18}, {143, 100, 190}, {50, 118, 196}, {134, 146, 160}, {206, 50, 88}}};
  return colors[static_cast<std::size_t>(o)];
}

/// Returns an outcome in words: "timed out".
[[nodiscard]] HETPLAN_INLINE std::string outcome_words(serve::request_outcome o) {
  std::string text(to_string(o));
  for (char& c : text) c = c == '_' ? ' ' : c;
  return text;
}

[[nodiscard]] HETPLAN_INLINE std::string_view outcome_meaning(serve::request_outcome o) {
  using enum serve::request_outcome;
  switch (o) {
    case served: return "within the SLO, or at the whole rate";
    case late: return "answered after the SLO";
    case in_part: return "a stream at less than it wanted";
    case timed_out: return "the SLO was over before it began";
    case too_many_offloads: return "might be passed on no more";
    case no_resources: return "nobody known could";
    case lost: return "its server was not there";
    case failed: return "a fault took it along";
  }
  return {};
}

/// Returns the title: "pole: 200 000 requests over 2 min 5 s".
[[nodiscard]] HETPLAN_INLINE std::string serving_title(const serving_view& view) {
  const auto n = view.history.requests();
  return view.cloud.name + ": " + grouped(n) + (n == 1 ? " request over " : " requests over ") + clock_text(view.history.duration.value());
}

/// Returns a bar of the outcomes from `first` on, with a caption.
template <class Count>
[[nodiscard]] std::string outcome_bar(std::string_view words, serve::request_outcome first, Count&& count) {
  double sum = 0;
  for (auto k = static_cast<std::size_t>(first); k < serve::request_outcomes; ++k)
    sum += static_cast<double>(count(static_cast<serve::request_outcome>(k)));
  std::string text = "<div class=\"named\"><span>" + std::string(words) + "</span><div class=\"share\">";
  for (auto k = static_cast<std::size_t>(first); k < serve::request_outcomes && sum > 0; ++k) {
    const auto o = static_cast<serve::request_outcome>(k);
    const auto n = static_cast<double>(count(o));
    if (n == 0) continue;
    text += "<i style=\"width:" + fixed(100 * n / sum, 3) + "%;background-color:" + outcome_color(o).hex() + "\" title=\"" +
            xml_text(outcome_words(o) + ": " + grouped(static_cast<long long>(n))) + "\"></i>";
  }
  return text + "</div></div>\n";
}

[[nodiscard]] HETPLAN_INLINE std::string outcome_section(const serving_view& view) {
  const auto& h = view.history;
  const auto all = h.requests(), served = h.count(serve::request_outcome::served);
  if (all == 0) return {};
  const auto count = [&](serve::request_outcome o) { return h.count(o); };
  std::string text = "<div id=\"outcomes\">\n" + outcome_bar("all requests", serve::request_outcome::served, count);
  if (served < all && served > 0) text += outcome_bar("not served", serve::request_outcome::late, count);
  text += "<div class=\"legend\">";
  for (std::size_t k = 0; k < serve::request_outcomes; ++k) {
    const auto o = static_cast<serve::request_outcome>(k);
    if (h.count(o) == 0) continue;
    text += "<span title=\"" + std::string(outcome_meaning(o)) + "\">" + swatch(outcome_color(o).hex()) + outcome_words(o) + " <b>" +
            grouped(h.count(o)) + "</b> (" + xml_text(percent(static_cast<double>(h.count(o)) / static_cast<double>(all))) + ")</span>";
  }
  return text + "</div>\n</div>\n";
}

/// Returns the title, the facts, and bars of outcomes: of all requests, and enlarged of those not served.
[[nodiscard]] HETPLAN_INLINE std::string serving_header(const serving_view& view) {
  const auto& h = view.history;
  const auto counted = [](std::size_t n, const char* one, const char* several) { return grouped(n) + (n == 1 ? one : several); };
  std::string text = "<header id=\"summary\">\n<h1>" + xml_text(serving_title(view)) + "</h1>\n<p class=\"quiet\">" +
                     counted(view.cloud.size(), " server", " servers") + " in " + counted(view.rings(), " ring", " rings") + " · " +
                     counted(view.services.size(), " service", " services") + " · " +
                     counted(view.first.instances.size(), " instance", " instances");
  if (h.changes > 0) text += " at first · " + counted(h.changes, " change of the deployment", " changes of the deployment");
  std::size_t faults = 0;
  for (const auto& m : view.marks) faults += m.is_fault ? 1U : 0U;
  if (faults > 0) text += " · " + counted(faults, " fault", " faults");
  text += "</p>\n";
  if (!h.result.ok())
    text += "<p id=\"status\" class=\"alarm\"><strong>" + std::string(to_string(h.result.result)) +
            "</strong>: " + xml_text(h.result.reason) + "</p>\n";
  text += "<div class=\"facts\">\n" + fact(grouped(h.requests()), "requests", "fact-requests");
  for (const bool streams : {false, true}) {
    const auto part = h.attained_by(view.services, streams);
    if (!(part.asked > 0)) continue;
    const std::string what = streams ? "frames of streams" : "requests with a latency", of = streams ? "-frames" : "";
    text += fact(percent(part.share()), "of the " + what + (h.result.ok() ? " were served" : " that have ended"), "fact-attainment" + of) +
            fact(short_number(part.credit / view.duration_s) + "/s", "goodput: " + what, "fact-goodput" + of);
  }
  text += fact(fixed(h.mean_offloads(), 3), "offloads a request, on average", "fact-offloads") + "</div>\n" + outcome_section(view) +
          "<nav><a href=\"#goodput\">goodput</a><a href=\"#levels\">service levels</a><a href=\"#places\">who served what</a>"
          "<a href=\"#deployment\">deployment</a><a href=\"#queues\">queues</a><a href=\"#offloads\">offloads</a></nav>\n";
  return text + "</header>\n";
}

[[nodiscard]] HETPLAN_INLINE std::string wanted_of(const serve::service& s) {
  if (s.is_stream()) return fixed(s.rate, 2) + " frames/s";
  std::string text;
  const auto add = [&](const char* what, seconds limit) {
    text += (text.empty() ? "" : ", ") + std::string(what) + " within " + engineering(limit.value(), "s");
  };
  if (s.limits_answer && s.ttft.value() == 0 && s.time_between_tokens.value() == 0) return "within " + engineering(s.latency.value(), "s");
  if (s.limits_answer) add("all", s.latency);
  if (s.ttft.value() > 0) add("first token", s.ttft);
  if (s.time_between_tokens.value() > 0) add("the next", s.time_between_tokens);
  return text;
}

/// Returns the times of tokens of the services that have any, and how many answers broke a limit; "" if there are none.
[[nodiscard]] HETPLAN_INLINE std::string tokens_table(const serving_view& view) {
  std::string rows;
  for (std::size_t l = 0; l < view.services.size(); ++l) {
    const auto& t = view.history.services[l];
    if (t.ttft.count() == 0) continue;
    const auto number = [](std::uint64_t n) { return cell(n == 0 ? "–" : grouped(n), " class=\"n\""); };
    rows += "<tr><td>" + swatch(view.line(l).hex()) + xml_text(view.services[l].name) + "</td>";
    for (const auto* h : {&t.ttft, &t.time_between_tokens}) {
      for (const double q : {0.5, 0.99}) rows += cell(h->count() == 0 ? "–" : engineering(h->quantile(q).value(), "s"), " class=\"n\"");
    }
    rows += number(t.broke.latency) + number(t.broke.ttft) + number(t.broke.time_between_tokens) + "</tr>\n";
  }
  if (rows.empty()) return {};
  return "<table id=\"tokens\">\n<thead><tr><th>Service</th><th class=\"n\">First token: half within</th><th class=\"n\">99 % within</th>"
         "<th class=\"n\">Between tokens: half within</th><th class=\"n\">99 % within</th><th class=\"n\">Answer late</th>"
         "<th class=\"n\">First token late</th><th class=\"n\">Tokens slow</th></tr></thead>\n<tbody>\n" +
         rows + "</tbody></table>\n";
}

[[nodiscard]] HETPLAN_INLINE std::string services_table(const serving_view& view) {
  std::string text =
      "<table id=\"services\">\n<thead><tr><th>Service</th><th>Wanted</th><th class=\"n\">Requests</th><th>Served</th><th "
      "class=\"n\">Goodput</th><th class=\"n\">Late</th><th class=\"n\">In part</th><th class=\"n\">Turned down</th><th "
      "class=\"n\">Lost, failed</th><th class=\"n\">Half within</th><th class=\"n\">99 % within</th></tr></thead>\n<tbody>\n";
  for (std::size_t l = 0; l < view.services.size(); ++l) {
    using enum serve::request_outcome;
    const auto& s = view.services[l];
    const auto& t = view.history.services[l];
    const auto number = [](std::uint64_t n) { return cell(n == 0 ? "–" : grouped(n), " class=\"n\""); };
    const auto quantile = [&](double q) {
      return cell(t.latency.count() == 0 ? "–" : engineering(t.latency.quantile(q).value(), "s"), " class=\"n\"");
    };
    const std::string wanted = wanted_of(s);
    text += "<tr><td>" + swatch(view.line(l).hex()) + xml_text(s.name) + "</td>" + cell(wanted) + number(t.requests()) +
            meter(t.attainment(), false, t.asked > 0 ? percent(t.attainment()) : "–") +
            cell(short_number(t.credit / view.duration_s) + "/s", " class=\"n\"") + number(t[late]) + number(t[in_part]) +
            number(t[timed_out] + t[too_many_offloads] + t[no_resources]) + number(t[lost] + t[failed]) + quantile(0.5) + quantile(0.99) +
            "</tr>\n";
  }
  return text +
         "</tbody></table>\n<p class=\"note\">Served: share of requests, of a stream's frames. Turned down: timed out, too many offloads "
         "or no "
         "resources. Times are those of answers that came, late ones too; the exact ones, or at most 1.6 % above.</p>\n";
}

/// Paints a row of signs with words, in as many lanes as they need side by side; a bar shows the duration of a fault. If lanes run out,
/// words are only hover texts. Returns the lower edge of the row.
HETPLAN_INLINE double paint_marks(time_chart& chart, const serving_view& view, double top) {
  if (view.marks.empty()) return top;
  constexpr double lane_height = 20, size = 10.5, gap = 10;
  constexpr std::size_t most_lanes = 5;
  constexpr std::string_view em_space = "\xE2\x80\x83";  // as wide as before when the chart is stretched
  std::vector<double> free_from;                         // by lane
  double crowded_until = 0;                              // signs without words within a pixel are merged
  const double right = chart.axis().left + chart.axis().width;
  for (const auto& m : view.marks) {
    const double x = chart.axis().at(m.from_s), end = std::max(x + 8, chart.axis().at(m.to_s));
    const double words = svg_writer::prose_width(m.words, size) + 2 * size;
    const bool on_left = x + words > right;
    const double from = on_left ? x - words : x - 6, to = on_left ? end : std::max(end, x + words);
    auto lane = static_cast<std::size_t>(std::ranges::find_if(free_from, [&](double f) { return f <= from; }) - free_from.begin());
    const bool fits = lane < most_lanes;  // else below the other lanes
    if (fits && lane == free_from.size()) free_from.push_back(0);
    if (!fits && x < crowded_until) continue;
    if (fits) free_from[lane] = to + gap;
    else crowded_until = x + 1, lane = most_lanes;
    const double y = top + 8 + lane_height * static_cast<double>(lane);
    std::string hover = m.words + "\nat " + clock_text(m.from_s);
    if (m.to_s > m.from_s) hover += ", until " + clock_text(m.to_s);
    chart.plot.open_group(m.is_fault ? " class=\"mark fault\"" : " class=\"mark change\"");
    if (m.to_s > m.from_s) chart.plot.rect(x, y + 7, end - x, 2.5, "currentColor", hover);
    chart.plot.path("M" + fixed(x) + " " + fixed(y, 1) + std::string(shape_of(m.is_fault ? sign::event : sign::replanned)), "currentColor",
                    hover, unstretched);
    if (fits) {
      const std::string text = on_left ? m.words + std::string(em_space) : std::string(em_space) + m.words;
      chart.plot.text(x, y + 3.5, text, {.size = size, .anchor = on_left ? "end" : "start"},
                      on_left ? " style=\"transform-origin:100% 50%\"" : " style=\"transform-origin:0 50%\"");
    }
    chart.plot.close_group();
  }
  const double height = lane_height * static_cast<double>(free_from.size() + (crowded_until > 0 ? 1 : 0));
  const bool both = view.history.changes > 0 && std::ranges::any_of(view.marks, &serving_mark::is_fault);
  chart.name(both ? "Events" : view.marks.front().is_fault ? "Faults" : "Changes", {}, top, std::min(height, lane_height));
  return top + height + 8;
}

/// Returns lines from the signs through the rows below; none if there are too many.
[[nodiscard]] HETPLAN_INLINE std::string mark_lines(const time_chart& chart, const serving_view& view, double top, double bottom) {
  constexpr std::size_t most = 60;
  if (view.marks.size() > most) return {};
  std::string text;
  for (const bool faults : {false, true}) {
    std::string d;
    for (const auto& m : view.marks) {
      if (m.is_fault == faults) d += "M" + fixed(chart.axis().at(m.from_s), 1) + " " + fixed(top, 1) + "V" + fixed(bottom, 1);
    }
    if (!d.empty())
      text += "<path class=\"mark " + std::string(faults ? "fault" : "change") + "\" d=\"" + d +
              "\" fill=\"none\" stroke=\"currentColor\" stroke-dasharray=\"3 3\" pointer-events=\"none\"/>\n";
  }
  return text;
}

/// Returns the numbers of waiting requests by slot and time. Merged bins have their maximum.
[[nodiscard]] HETPLAN_INLINE heat_grid queue_grid(const serving_view& view, const server_slots& slots, const time_axis& axis) {
  constexpr std::size_t most_columns = 400;
  const auto& waiting = view.history.waiting;
  const double bin_s = view.history.bin.value();
  // Bins are at least a publication period, as a bin without a publication has no data.
  const auto period =
      static_cast<std::size_t>(std::ceil(std::min(view.cloud.ring.period.value() / bin_s, static_cast<double>(waiting.size()))));
  const std::size_t each = std::max((waiting.size() + most_columns - 1) / most_columns, period);
  heat_grid grid{.left = axis.left, .most = {0}, .units = {"requests waiting"}, .kind = "queue", .id = "queue-grid"};
  std::size_t columns = 0;
  for (std::size_t b = 0; b < waiting.size(); b += each, ++columns) {
    const double from_s = static_cast<double>(b) * bin_s, to_s = static_cast<double>(b + each) * bin_s;
    grid.columns.push_back(clock_text(from_s) + " to " + clock_text(std::min(to_s, view.duration_s)));
  }
  // The page clips the grid at the end of the axis.
  grid.width = axis.width * static_cast<double>(columns * each) * bin_s / axis.latency_s;
  for (const auto& s : slots) {
    std::vector<double> row(columns);
    for (std::size_t b = 0; b < waiting.size(); ++b) {
      for (std::size_t k = s.first; k < s.first + s.count; ++k) row[b / each] = std::max(row[b / each], static_cast<double>(waiting[b][k]));
    }
    grid.most.front() = std::max(grid.most.front(), *std::ranges::max_element(row));
    grid.rows.push_back(slots.name(s) + (s.count > 1 ? ", the fullest" : ""));
    grid.values.push_back(std::move(row));
  }
  return grid;
}

/// Returns a heat map of queues with a row per server, or per group of neighbours (with the maximum) in large clouds. Faults and changes
/// cross all rows. Returns "" if the history has no queues, or nobody waited.
[[nodiscard]] HETPLAN_INLINE std::string queue_map(const serving_view& view) {
  if (view.history.waiting.empty()) return {};
  const server_slots slots(view.cloud, 250);
  time_chart chart(view.duration_s, time_labels::clock);
  const double top = paint_marks(chart, view, 4);
  heat_grid grid = queue_grid(view, slots, chart.axis());
  if (grid.most.front() == 0) return {};
  const auto n = static_cast<double>(slots.size());
  const double high = slots.size() <= 12 ? 22 : slots.size() <= 40 ? 13 : std::max(2.0, 520 / n);
  grid.top = top + 4;
  grid.height = high * n;
  paint(chart.plot, grid);
  for (const std::size_t i : slots.ring_edges()) {
    const double y = grid.top + static_cast<double>(i) * high;
    chart.plot.line(chart.axis().left, y, chart.axis().left + chart.axis().width, y, palette::paper, high > 4 ? 3 : 1.5);
  }
  for (const auto& t : slots.labels(high >= 12 ? 1 : 13 / high)) {
    const double y = grid.top + (static_cast<double>(t.slot) + 0.5) * high;
    chart.still.text(time_chart::left - 8, y + 3.5, fitted(t.text, 24), {.size = 10.5, .fill = palette::quiet, .anchor = "end"});
  }
  if (slots.ring_edges().size() > 0) {
    std::size_t begin = 0;
    auto edges = slots.ring_edges();
    edges.push_back(slots.size());
    for (std::size_t r = 0; r < edges.size(); begin = edges[r++]) {
      const double middle = grid.top + static_cast<double>(begin + edges[r]) / 2 * high;
      if (static_cast<double>(edges[r] - begin) * high >= 11) chart.number("ring " + std::to_string(r), middle + 4, palette::quiet);
    }
  }
  for (const auto& m : view.marks) {  // no request waits at a failed server
    const auto row = std::ranges::find_if(slots, [&](const auto& s) { return m.lost && s.count == 1 && s.first == m.lost->index(); });
    if (row == slots.end()) continue;
    const double y = grid.top + (static_cast<double>(row - slots.begin()) + 0.5) * high, x = chart.axis().at(m.from_s);
    chart.plot.open_group(" class=\"mark fault\"");
    chart.plot.rect(x, y - 1, chart.axis().at(view.duration_s) - x, std::min(2.0, high), "currentColor", m.words);
    chart.plot.close_group();
  }
  const double bottom = grid.top + grid.height;
  chart.plot.raw(mark_lines(chart, view, top, bottom));
  std::string about;
  if (slots.most_servers() > 1)
    about = note("A row is up to " + std::to_string(slots.most_servers()) + " neighbours; the fullest of them is shown.");
  return "<div class=\"legend\">" + heat_legend("queue", "1", short_number(grid.most.front()) + " requests waiting") + "</div>\n" +
         scrolling(std::move(chart).finish("queue-map", "Requests waiting over time", top, bottom)) + about;
}

/// Painter of a matrix of services and servers, laid out like charts over time: names on the left, totals on the right.
class place_matrix {
 public:
  place_matrix(const serving_view& view, const std::function<double(std::size_t, std::size_t)>& value, std::vector<std::string> units)
      : view_(view), slots_(view.cloud, 250), totals_(view.services.size()) {
    const std::size_t n = view.services.size();
    grid_.left = time_chart::left;
    grid_.top = 6;
    grid_.width = time_chart::width - time_chart::left - time_chart::numbers;
    grid_.height = static_cast<double>(n) * (n <= 12 ? 26 : n <= 30 ? 18 : 13);
    grid_.units = std::move(units);
    for (const auto& s : slots_) grid_.columns.push_back(slots_.name(s));
    for (std::size_t l = 0; l < n; ++l) {
      std::vector<double> row;
      for (const auto& s : slots_) {
        double sum = 0;
        for (std::size_t k = 0; k < s.count; ++k) sum += value(s.first + k, l);
        totals_[l] += sum;
        row.push_back(sum / static_cast<double>(s.count));
      }
      grid_.rows.push_back(view.services[l].name);
      grid_.most.push_back(*std::ranges::max_element(row));
      grid_.values.push_back(std::move(row));
    }
    if (slots_.most_servers() > 1) {
      for (auto& unit : grid_.units) unit += " each";
    }
  }
  void one_scale() {
    if (!grid_.most.empty()) grid_.most = {*std::ranges::max_element(grid_.most)};
  }

  [[nodiscard]] std::string paint(std::string_view id, std::string_view label) && {
    const std::string grid_id = std::string(id) + "-grid";
    grid_.id = grid_id;
    detail::paint(out_, grid_);
    const double bottom = grid_.top + grid_.height;
    for (const std::size_t i : slots_.ring_edges()) {
      const double x = grid_.left + static_cast<double>(i) * grid_.column_width();
      out_.line(x, grid_.top, x, bottom + 6, palette::paper, slots_.size() > 100 ? 1.5 : 3);
    }
    for (std::size_t l = 0; l < grid_.rows.size(); ++l) {
      const double y = grid_.top + (static_cast<double>(l) + 0.5) * grid_.row_height(), size = std::min(12.5, grid_.row_height() * 0.8);
      out_.text(0, y + 0.36 * size, fitted(grid_.rows[l], static_cast<std::size_t>((time_chart::left - 12) / (0.66 * size))),
                {.size = size, .weight = 600});
      out_.text(time_chart::width, y + 4, short_number(totals_[l]), {.size = 11, .fill = palette::quiet, .anchor = "end"});
      if (l > 0) {
        const double line = grid_.top + static_cast<double>(l) * grid_.row_height();
        out_.line(grid_.left, line, grid_.left + grid_.width, line, palette::paper, 1.5);
      }
    }
    return finish(id, label, bottom);
  }

 private:
  [[nodiscard]] std::string finish(std::string_view id, std::string_view label, double bottom) {
    const double wide = grid_.column_width();
    std::size_t longest = 1;
    for (const auto& s : view_.cloud.servers) longest = std::max(longest, characters(s.name));
    const std::size_t shown = std::min<std::size_t>(longest, 14);
    const double room = (svg_writer::prose_width(std::string(shown, 'x'), 10.5) + 10) / wide;
    for (const auto& t : slots_.labels(room)) {
      const double x = grid_.left + (static_cast<double>(t.slot) + 0.5) * wide;
      out_.line(x, bottom + 1, x, bottom + 5, palette::frame);
      const double half = svg_writer::prose_width(fitted(t.text, shown), 10.5) / 2;
      out_.text(std::min(x, time_chart::width - half), bottom + 18, fitted(t.text, shown),
                {.size = 10.5, .fill = palette::quiet, .anchor = "middle"});
    }
    if (view_.rings() == 1) return std::move(out_).embedded(time_chart::width, bottom + 24, label, " id=\"" + std::string(id) + "\"");
    std::vector<std::size_t> edges = slots_.ring_edges();
    edges.insert(edges.begin(), 0);
    edges.push_back(slots_.size());
    for (std::size_t r = 0; r + 1 < edges.size(); ++r) {
      const double from = grid_.left + static_cast<double>(edges[r]) * wide + 2,
                   to = grid_.left + static_cast<double>(edges[r + 1]) * wide - 2;
      out_.line(from, bottom + 27, to, bottom + 27, palette::frame, 2);
      const std::string text = "ring " + std::to_string(r), few = std::to_string(r);
      const std::string& fits = svg_writer::prose_width(text, 10.5) < to - from ? text : few;
      if (svg_writer::prose_width(fits, 10.5) < to - from + 4)
        out_.text((from + to) / 2, bottom + 41, fits, {.size = 10.5, .fill = palette::quiet, .anchor = "middle"});
    }
    return std::move(out_).embedded(time_chart::width, bottom + 46, label, " id=\"" + std::string(id) + "\"");
  }

  const serving_view& view_;
  server_slots slots_;
  std::vector<double> totals_;
  heat_grid grid_;
  svg_writer out_;
};

/// Returns the matrix of credits: a row per service, a column per server in ring order. Credit counts at a request's last server.
[[nodiscard]] HETPLAN_INLINE std::string credit_matrix(const serving_view& view) {
  if (!view.is_detailed()) return {};
  std::vector<std::string> units;
  for (std::size_t l = 0; l < view.services.size(); ++l) units.push_back(view.unit(l) + " served");
  return place_matrix(
             view, [&](std::size_t s, std::size_t l) { return view.history.credit_by_server[s][l]; }, std::move(units))
      .paint("credit-matrix", "Who served what where");
}

/// Returns the matrix of GPUs that the first deployment gives to each service on each server.
[[nodiscard]] HETPLAN_INLINE std::string gpu_matrix(const serving_view& view) {
  std::vector<std::vector<double>> given(view.cloud.size(), std::vector<double>(view.services.size()));
  for (const auto& i : view.first.instances) {
    const double share = view.services[i.what.index()].variants[static_cast<std::size_t>(i.variant)].compute_share;
    if (i.device) given[i.device->server.index()][i.what.index()] += share;
    for (const auto& g : i.gpus) given[g.server.index()][i.what.index()] += share;
  }
  place_matrix matrix(view, [&](std::size_t s, std::size_t l) { return given[s][l]; }, {"GPUs"});
  matrix.one_scale();
  return std::move(matrix).paint("gpu-matrix", "GPUs that services have where");
}

/// Several bins of the history merged, in amounts per second.
struct goodput_bin {
  double from_s = 0, to_s = 0;
  std::vector<double> served, asked;  ///< by service
};

[[nodiscard]] HETPLAN_INLINE std::vector<goodput_bin> goodput_bins(const serving_view& view) {
  constexpr std::size_t most = 400;
  const auto& h = view.history;
  const std::size_t bins = std::max(h.goodput.size(), h.offered.size()), each = (bins + most - 1) / most;
  std::vector<goodput_bin> all;
  for (std::size_t first = 0; first < bins; first += each) {
    const std::size_t end = std::min(bins, first + each);
    goodput_bin b{static_cast<double>(first) * h.bin.value(), static_cast<double>(end) * h.bin.value(),
                  std::vector<double>(view.services.size()), std::vector<double>(view.services.size())};
    // The last bin contains everything later, and no bin is empty.
    if (end == bins || b.to_s > view.duration_s) b.to_s = std::max(view.duration_s, b.from_s + 1e-9 * view.duration_s);
    const double width_s =
        std::max(static_cast<double>(each) * h.bin.value(), b.to_s - b.from_s);  // whole bins, also where the end cuts one short
    for (std::size_t k = first; k < end; ++k) {
      for (std::size_t l = 0; l < view.services.size(); ++l) {
        if (k < h.goodput.size()) b.served[l] += h.goodput[k][l] / width_s;
        if (k < h.offered.size()) b.asked[l] += h.offered[k][l] / width_s;
      }
    }
    all.push_back(std::move(b));
  }
  return all;
}

/// Painter of the services with the same unit.
class goodput_panel {
 public:
  goodput_panel(const serving_view& view, const std::vector<goodput_bin>& bins, bool streams) : view_(view), bins_(bins) {
    for (std::size_t l = 0; l < view.services.size(); ++l) {
      if (view.services[l].is_stream() == streams) shown_.push_back(l);
    }
    for (const auto& b : bins) most_ = std::max({most_, sum(b.served), sum(b.asked)});
  }
  [[nodiscard]] bool empty() const { return shown_.empty(); }
  [[nodiscard]] std::string unit() const { return view_.unit(shown_.front()); }

  void paint(time_chart& chart, row_box box) const {
    const time_axis& axis = chart.axis();
    const double step = round_step(most_ > 0 ? most_ : 1, 4), full = std::max(1.0, std::ceil(most_ / step - 1e-9)) * step;
    chart.name((unit() == "frames" ? "Frames" : "Requests") + std::string(" a second"), "served, by service", box.top, box.height);
    chart.plot.rect(axis.left, box.top, axis.width, box.height, palette::track.hex());
    const double unit = full >= 1e5 ? 1000 : 1;
    for (double v = 0; v <= full * (1 + 1e-9); v += step) {
      const double y = box.level(v / full);
      chart.level(short_number(v / unit) + (unit > 1 && v > 0 ? " k" : ""), y + 3.5);
      if (v > 0) chart.plot.line(axis.left, y, axis.left + axis.width, y, palette::grid);
    }
    std::vector<double> below(bins_.size(), 0);
    for (const std::size_t l : shown_) area(chart, box, full, l, below);
    std::vector<level> asked;
    for (const auto& b : bins_) asked.push_back({b.from_s, b.to_s, sum(b.asked)});
    const std::string line = step_line(asked, axis, box, full);
    chart.plot.path(line, "none", {}, " class=\"offered halo\" stroke-width=\"3.6\"");  // a halo sets the line off from the areas
    chart.plot.path(line, "none", {}, " class=\"offered\" stroke-width=\"1.4\"");
    names(chart, box);
    for (const auto& b : bins_)
      chart.plot.rect(axis.at(b.from_s), box.top, axis.at(b.to_s) - axis.at(b.from_s), box.height, "transparent", hover(b));
  }

 private:
  [[nodiscard]] double sum(const std::vector<double>& by_service) const {
    double all = 0;
    for (const std::size_t l : shown_) all += by_service[l];
    return all;
  }
  void area(time_chart& chart, row_box box, double full, std::size_t l, std::vector<double>& below) const {
    std::string up, back;
    bool any = false;
    for (std::size_t k = 0; k < bins_.size(); ++k) {
      const double v = bins_[k].served[l], base = below[k];
      any = any || v > 0;
      below[k] += v;
      up += "V" + fixed(box.level(below[k] / full), 1) + "H" + fixed(chart.axis().at(bins_[k].to_s), 1);
      back = "V" + fixed(box.level(base / full), 1) + "H" + fixed(chart.axis().at(bins_[k].from_s), 1) + back;
    }
    if (any) chart.plot.path("M" + fixed(chart.axis().left) + " " + fixed(box.top + box.height, 1) + up + back + "Z", view_.fill(l).hex());
  }
  /// Writes the names of services on the right, from the top of the stack down.
  void names(time_chart& chart, row_box box) const {
    const double x = time_chart::width - time_chart::numbers + 12, line = 15;
    const auto room = static_cast<std::size_t>(box.height / line) - 1;
    const std::size_t shown = shown_.size() <= room ? shown_.size() : room - 1;
    double y = box.top + 10;
    for (std::size_t k = 0; k < shown; ++k, y += line) {
      const std::size_t l = shown_[shown_.size() - 1 - k];
      chart.still.rect(x, y - 9, 11, 11, view_.fill(l).hex());
      chart.still.text(x + 17, y, fitted(view_.services[l].name, 16), {.size = 11, .fill = palette::quiet});
    }
    if (shown < shown_.size()) {
      chart.still.text(x + 17, y, "and " + std::to_string(shown_.size() - shown) + " more", {.size = 11, .fill = palette::quiet});
      y += line;
    }
    chart.still.path("M" + fixed(x) + " " + fixed(y - 3.5, 1) + "h12", "none", {}, " class=\"offered\" stroke-width=\"1.4\"");
    chart.still.text(x + 17, y, "asked for", {.size = 11, .fill = palette::quiet});
  }
  [[nodiscard]] std::string hover(const goodput_bin& b) const {
    constexpr std::size_t most = 14;
    std::string text = clock_text(b.from_s) + " to " + clock_text(b.to_s) + ": " + short_number(sum(b.served)) + " of " +
                       short_number(sum(b.asked)) + " " + unit() + " a second";
    for (std::size_t k = 0; k < shown_.size() && k < most; ++k) {
      const std::size_t l = shown_[shown_.size() - 1 - k];
      text += "\n" + view_.services[l].name + ": " + short_number(b.served[l]) + " of " + short_number(b.asked[l]);
    }
    return shown_.size() <= most ? text : text + "\n…";
  }

  const serving_view& view_;
  const std::vector<goodput_bin>& bins_;
  std::vector<std::size_t> shown_;
  double most_ = 0;
};

/// Returns the goodput of requests and, below, of frames of streams, as they cannot be added. Faults and changes are above.
[[nodiscard]] HETPLAN_INLINE std::string goodput_chart(const serving_view& view) {
  const auto bins = goodput_bins(view);
  time_chart chart(view.duration_s, time_labels::clock);
  const double top = paint_marks(chart, view, 4);
  double y = top;
  for (const bool streams : {false, true}) {
    const goodput_panel panel(view, bins, streams);
    if (panel.empty()) continue;
    y += y > top ? 18 : 4;
    panel.paint(chart, {y, 150});
    y += 150;
  }
  chart.plot.raw(mark_lines(chart, view, top, y));
  return std::move(chart).finish("goodput-chart", "Goodput over time", top, y);
}

[[nodiscard]] HETPLAN_INLINE std::string goodput_section(const serving_view& view) {
  return section("goodput", "Goodput",
                 "What was served, stacked by service, when it ended; the line is what was asked for, when it arrived.",
                 zoom_tools("run") + scrolling(goodput_chart(view)));
}

[[nodiscard]] HETPLAN_INLINE std::string places_section(const serving_view& view) {
  if (!view.is_detailed())
    return section("places", "Who served what where",
                   "Not recorded: the cloud has more than " + std::to_string(serve::most_detailed) + " servers.", {});
  return section(
      "places", "Who served what where",
      "By service and server: what was served, counted where a request was handled last. Every row has a scale of its own; the "
      "number behind it is its sum.",
      "<div class=\"legend\">" + heat_legend("load", "little", "most of the service") + "</div>\n" + scrolling(credit_matrix(view)));
}

[[nodiscard]] HETPLAN_INLINE std::string deployment_section(const serving_view& view) {
  const std::string when = view.history.changes > 0 ? " As it was at first." : "";
  if (view.cloud.size() > most_drawn_servers)
    return section("deployment", "Deployment", "GPUs that each service has on each server." + when,
                   "<div class=\"legend\">" + heat_legend("load", "few", "most GPUs") + "</div>\n" + scrolling(gpu_matrix(view)));
  const bool devices = std::ranges::any_of(view.cloud.servers, [](const serve::edge_server& s) { return !s.devices.empty(); });
  const std::string about =
      "A bar is a GPU, its slices are shares of its compute; ×8: batches of up to 8. Slices on one line are one instance.";
  return section("deployment", "Deployment", about + (devices ? " d0, d1, …: registered devices." : "") + when,
                 scrolling(deployment_picture(view)));
}

[[nodiscard]] HETPLAN_INLINE std::string queue_section(const serving_view& view) {
  const std::string map = queue_map(view);
  if (!map.empty())
    return section("queues", "Queues",
                   "Requests that waited on instances that a server leads, at the first publication of each part of the time.", map);
  if (view.is_detailed()) return section("queues", "Queues", "Nobody waited when servers published their states.", {});
  return section("queues", "Queues", "Not recorded: the cloud has more than " + std::to_string(serve::most_detailed) + " servers.", {});
}

}  // namespace hetplan::draw::detail

namespace hetplan::draw {

HETPLAN_INLINE std::string serving_report_html(const serve::service_history& h, const serve::edge_cloud& cloud,
                                               const std::vector<serve::service>& services, const serve::deployment& first,
                                               const serve::serving_options& run) {
  const detail::serving_view view(h, cloud, services, first, run);
  std::string body = detail::serving_header(view) + detail::goodput_section(view);
  body +=
      detail::section("levels", "Service levels",
                      "How many requests of a service were answered within a multiple of its SLO. A curve that is high left of the SLO has "
                      "room to spare; one that rises right of it was late.",
                      detail::scrolling(detail::levels_chart(view)) + detail::services_table(view) + detail::tokens_table(view));
  body += detail::places_section(view) + detail::deployment_section(view) + detail::queue_section(view);
  body +=
      detail::section("offloads", "Offloads",
                      "How often requests were passed on, and between which servers. A circle is a ring, its servers clockwise; a band is "
                      "wide at the sender and narrow at the receiver.",
                      detail::flows_section(view));
  return detail::page(detail::serving_title(view), body);
}

}  // namespace hetplan::draw
