// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/serving_charts.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numbers>
#include <string_view>
#include <utility>
#include <variant>

#include <hetplan/draw/time_axis.hpp>

namespace hetplan::draw::detail {

HETPLAN_INLINE server_slots::server_slots(const serve::edge_cloud& cloud, std::size_t most) : cloud_(&cloud) {
  const auto ring_size = static_cast<std::size_t>(cloud.ring.group);
  const std::size_t each = (cloud.size() + most - 1) / most;
  for (std::size_t first = 0; first < cloud.size(); first += ring_size) {
    const std::size_t end = std::min(cloud.size(), first + ring_size);
    for (std::size_t s = first; s < end; s += each) slots_.push_back({s, std::min(each, end - s), first / ring_size});
  }
}

HETPLAN_INLINE std::size_t server_slots::most_servers() const {
  return std::ranges::max_element(slots_, {}, [](const slot& s) { return s.count; })->count;
}

HETPLAN_INLINE std::string server_slots::name(const slot& s) const {
  const auto& first = cloud_->servers[s.first].name;
  return s.count == 1 ? first : first + " to " + cloud_->servers[s.first + s.count - 1].name;
}

HETPLAN_INLINE std::vector<std::size_t> server_slots::ring_edges() const {
  std::vector<std::size_t> all;
  for (std::size_t i = 1; i < slots_.size(); ++i) {
    if (slots_[i].ring != slots_[i - 1].ring) all.push_back(i);
  }
  return all;
}

HETPLAN_INLINE std::vector<server_slots::label> server_slots::labels(double room) const {
  const auto step = static_cast<std::size_t>(round_step(std::max(1.0, room), 1));
  std::vector<std::size_t> edges = ring_edges();
  edges.push_back(slots_.size());
  std::vector<label> all;
  double free_from = 0;
  std::size_t begin = 0;
  for (const std::size_t end : edges) {
    for (std::size_t i = begin; i < end; i += step) {
      const double until = static_cast<double>(i) + room;
      const bool in_the_way = i > begin && until > static_cast<double>(end) && end < slots_.size();
      if (static_cast<double>(i) < free_from || in_the_way) continue;
      all.push_back({i, cloud_->servers[slots_[i].first].name});
      free_from = until;
    }
    begin = end;
  }
  return all;
}

[[nodiscard]] HETPLAN_INLINE std::string fault_words(const serve::serving_fault& f, const serve::edge_cloud& cloud) {
  const auto& server = cloud[f.server];
  if (std::holds_alternative<serve::server_fails>(f.what)) return server.name + " fails";
  if (const auto* g = std::get_if<serve::gpu_fails>(&f.what)) return "GPU " + std::to_string(g->gpu) + " of " + server.name + " fails";
  if (const auto* d = std::get_if<serve::device_leaves>(&f.what))
    return server.devices[static_cast<std::size_t>(d->device)].name + " of " + server.name + " leaves";
  if (const auto* d = std::get_if<serve::device_registers>(&f.what))
    return server.devices[static_cast<std::size_t>(d->device)].name + " registers at " + server.name;
  if (std::holds_alternative<serve::ring_cut>(f.what)) return "ring cut behind " + server.name;
  if (const auto* l = std::get_if<serve::slow_link>(&f.what)) return "link of " + server.name + " at " + fixed(100 * l->factor, 1) + " %";
  if (std::holds_alternative<serve::wrong_state>(f.what)) return server.name + " tells wrong states";
  return server.name + (std::holds_alternative<serve::server_joins>(f.what) ? " is to join" : " is to leave");
}

HETPLAN_INLINE serving_view::serving_view(const serve::service_history& h, const serve::edge_cloud& c, const std::vector<serve::service>& s,
                                          const serve::deployment& f, const serve::serving_options& run)
    : history(h), cloud(c), services(s), first(f), duration_s(h.duration.value() > 0 ? h.duration.value() : 1) {
  const double begin_s = h.begin.value();
  for (const auto& t : serve::turns(run.faults)) {
    const double at_s = std::max(0.0, t.at_s - begin_s);
    if (t.ends || at_s > duration_s) continue;
    const auto& fault = run.faults[t.fault];
    const double until_s = std::visit(
        [&](const auto& what) {
          if constexpr (requires { what.until; }) return std::max(0.0, what.until.value() - begin_s);
          else return at_s;
        },
        fault.what);
    marks.push_back({at_s, until_s, fault_words(fault, c), true, {}});
    if (std::holds_alternative<serve::server_fails>(fault.what)) marks.back().lost = fault.server;
  }
  for (std::uint64_t k = 0; k < h.changes; ++k) {
    const double at_s =
        k < run.changes.at.size() ? run.changes.at[k].value() - begin_s : static_cast<double>(k + 1) * run.changes.cycle.value();
    if (at_s > 0 && at_s <= duration_s) marks.push_back({at_s, at_s, "deployment changes", false, {}});
  }
  std::ranges::stable_sort(marks, {}, [](const serving_mark& m) { return m.from_s; });
}

/// Painter of servers as cards in the order of the list, with separate rows for each ring.
class deployment_painter {
 public:
  explicit deployment_painter(const serving_view& view) : view_(view) {
    const std::size_t n = view.cloud.size();
    columns_ = n <= 3 ? 3 : n <= 8 ? 4 : n <= 24 ? 6 : 8;
    card_ = (width + gutter) / static_cast<double>(columns_) - gutter;
    place_cards();
  }

  [[nodiscard]] std::string paint() && {
    for (std::size_t s = 0; s < cards_.size(); ++s) card(s);
    for (const auto& i : view_.first.instances) slices(i);
    out_.append(std::move(slices_));
    out_.append(std::move(ties_));
    out_.open_group("");  // texts on fills keep their colour on dark paper
    out_.append(std::move(words_));
    out_.close_group();
    return std::move(out_).embedded(width, bottom_, "Services on GPUs", " id=\"deployment-picture\"");
  }

 private:
  static constexpr double width = 1180, gutter = 18, bar = 18, pitch = 22, names = 22, head = 24;
  struct bar_state {
    double y = 0, filled = 0;  ///< share of the compute filled by slices so far
  };
  struct card_state {
    double x = 0, y = 0;
    std::vector<bar_state> gpus = {}, devices = {};
  };
  struct point {
    double x, y;
  };

  void place_cards() {
    const auto& servers = view_.cloud.servers;
    const auto ring_size = static_cast<std::size_t>(view_.cloud.ring.group);
    double y = 4;
    for (std::size_t first = 0; first < servers.size(); first += ring_size) {
      const std::size_t end = std::min(servers.size(), first + ring_size);
      if (view_.rings() > 1) {
        out_.text(0, y + 12, "ring " + std::to_string(first / ring_size), {.size = 11, .fill = palette::quiet, .weight = 600});
        y += 20;
      }
      for (std::size_t row = first; row < end; row += columns_) {
        std::size_t most = 0;
        for (std::size_t s = row; s < std::min(end, row + columns_); ++s) {
          card_state c{static_cast<double>(s - row) * (card_ + gutter), y};
          const auto lines = servers[s].gpus.size() + servers[s].devices.size();
          for (std::size_t k = 0; k < lines; ++k)
            (k < servers[s].gpus.size() ? c.gpus : c.devices).push_back({y + head + static_cast<double>(k) * pitch});
          most = std::max(most, lines);
          cards_.push_back(std::move(c));
        }
        y += head + pitch * static_cast<double>(most) + 14;
      }
    }
    bottom_ = y;
  }
  /// Returns the GPUs of a server in their order: "2 × A2, 2 × A100".
  [[nodiscard]] static std::string kinds(const serve::edge_server& s) {
    if (s.gpus.empty()) return "no GPU";
    std::string text;
    for (std::size_t g = 0, n = 0; g < s.gpus.size(); g += n) {
      n = 1;
      while (g + n < s.gpus.size() && s.gpus[g + n].kind == s.gpus[g].kind) ++n;
      text += (text.empty() ? "" : ", ") + std::to_string(n) + " × " + s.gpus[g].kind;
    }
    return text;
  }
  void card(std::size_t s) {
    const auto& server = view_.cloud.servers[s];
    const auto& c = cards_[s];
    const auto room = static_cast<std::size_t>(card_ / (0.62 * 11.5));
    const std::string name = fitted(server.name, room), about = kinds(server);
    out_.text(c.x, c.y + 14, name, {.size = 12, .weight = 600});
    if (characters(name) + characters(about) + 2 < room)
      out_.text(c.x + card_, c.y + 14, about, {.size = 10.5, .fill = palette::quiet, .anchor = "end"});
    for (std::size_t g = 0; g < c.gpus.size(); ++g)
      empty_bar(
          c.x, c.gpus[g].y, std::to_string(g),
          server.name + " GPU " + std::to_string(g) + ": " + server.gpus[g].kind + ", " + engineering(server.gpus[g].memory.value(), "B"));
    for (std::size_t d = 0; d < c.devices.size(); ++d) {
      const auto& device = server.devices[d];
      empty_bar(
          c.x, c.devices[d].y, "d" + std::to_string(d),
          device.name + ", registered with " + server.name + ": " + device.unit.kind + ", " + engineering(device.unit.memory.value(), "B"));
    }
  }
  void empty_bar(double x, double y, const std::string& name, const std::string& hover) {
    out_.text(x + names - 6, y + 13, name, {.size = 9.5, .fill = palette::quiet, .anchor = "end"});
    out_.rect(x + names, y, card_ - names, bar, palette::track.hex(), hover, " rx=\"3\"");
  }
  void slices(const serve::instance& i) {
    std::vector<point> middles;
    for (const auto& g : i.gpus)
      middles.push_back(slice(i, cards_[g.server.index()], cards_[g.server.index()].gpus[static_cast<std::size_t>(g.number)]));
    if (i.device)
      slice(i, cards_[i.device->server.index()], cards_[i.device->server.index()].devices[static_cast<std::size_t>(i.device->number)]);
    if (middles.size() > 1) tie(i, middles);
  }
  /// @return  the point to which ties are attached.
  point slice(const serve::instance& i, const card_state& c, bar_state& b) {
    const std::size_t l = i.what.index();
    const double share = view_.services[l].variants[static_cast<std::size_t>(i.variant)].compute_share, whole = card_ - names;
    const double x = c.x + names + b.filled * whole, wide = std::max(1.0, share * whole - 1);
    b.filled += share;
    slices_.rect(x, b.y, wide, bar, view_.fill(l).hex(), about(i), " rx=\"3\" class=\"slice\"");
    const bool tied = i.gpus.size() > 1;
    const double begin = tied ? 16 : 5, room = wide - begin - 3;
    const std::string batch = " ×" + std::to_string(i.batch), &name = view_.services[l].name;
    const auto fit = static_cast<std::size_t>(std::max(0.0, room / (0.58 * 10.5)));
    std::string text;
    if (characters(name) + characters(batch) <= fit) text = name + batch;
    else if (fit >= 3) text = fitted(name, fit);
    if (!text.empty()) words_.text(x + begin, b.y + 12.5, text, {.size = 10.5}, " pointer-events=\"none\"");
    return {x + 8, b.y + bar / 2};
  }
  [[nodiscard]] std::string place(serve::gpu_slot g) const { return view_.name(g.server) + " GPU " + std::to_string(g.number); }
  [[nodiscard]] std::string about(const serve::instance& i) const {
    const auto& s = view_.services[i.what.index()];
    const auto& v = s.variants[static_cast<std::size_t>(i.variant)];
    std::string text = s.name + ", variant " + v.name + "\nbatches of up to " + std::to_string(i.batch);
    if (i.frames > 1) text += ", " + std::to_string(i.frames) + " frames of a stream in each";
    text += "\nof each GPU " + percent(v.compute_share) + " of the compute, " + engineering(v.memory.value(), "B");
    if (v.tensor_parallel > 1) text += "\ntensor parallel: " + std::to_string(v.tensor_parallel);
    if (v.pipeline_parallel > 1) text += "\npipeline stages: " + std::to_string(v.pipeline_parallel);
    if (i.groups > 1) text += "\ndata-parallel groups: " + std::to_string(i.groups);
    if (i.gpus.size() > 1) {
      text += "\non ";
      for (std::size_t k = 0; k < i.gpus.size(); ++k) text += (k > 0 ? ", " : "") + place(i.gpus[k]);
    }
    return text;
  }
  /// Draws a line through the slices of an instance, straight within a server.
  void tie(const serve::instance& i, const std::vector<point>& middles) {
    std::string d;
    for (std::size_t k = 0; k < middles.size(); ++k) {
      const point p = middles[k];
      if (k == 0) {
        d = "M" + fixed(p.x, 1) + " " + fixed(p.y, 1);
        continue;
      }
      const point q = middles[k - 1];
      const double bow = i.gpus[k].server == i.gpus[k - 1].server ? 0 : std::min(40.0, 0.25 * std::abs(p.x - q.x) + 12);
      d += "C" + fixed(q.x + (p.x - q.x) / 3, 1) + " " + fixed(q.y + bow, 1) + " " + fixed(q.x + 2 * (p.x - q.x) / 3, 1) + " " +
           fixed(p.y + bow, 1) + " " + fixed(p.x, 1) + " " + fixed(p.y, 1);
    }
    const std::string hex = view_.line(i.what.index()).hex(), hover = about(i);
    ties_.path(d, "none", {}, " stroke=\"" + palette::paper.hex() + "\" stroke-width=\"4\" stroke-opacity=\"0.8\" pointer-events=\"none\"");
    ties_.path(d, "none", hover, " class=\"tie\" stroke=\"" + hex + "\" stroke-width=\"2\"");
    std::string dots;
    for (const point p : middles) dots += "M" + fixed(p.x - 3.5, 1) + " " + fixed(p.y, 1) + "a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0Z";
    ties_.path(dots, hex, hover);
  }

  const serving_view& view_;
  std::size_t columns_ = 1;
  double card_ = 0, bottom_ = 0;
  std::vector<card_state> cards_;
  svg_writer out_, slices_, ties_, words_;
};

HETPLAN_INLINE std::string deployment_picture(const serving_view& view) { return deployment_painter(view).paint(); }

HETPLAN_INLINE double answered_within(const serve::service& s, const serve::service_totals& t, double times) {
  const auto all = static_cast<double>(t.requests()), served = static_cast<double>(t[serve::request_outcome::served]);
  if (all == 0) return 0;
  if (times == 1) return served / all;
  // A bin of the histogram that contains the SLO is split there.
  const double within = t.latency.count_within(seconds(times * s.latency.value()));
  return (times < 1 ? std::min(within, served) : std::max(within, served)) / all;
}

/// Painter of service levels: curves on the left, bars of streams on the right.
class levels_painter {
 public:
  explicit levels_painter(const serving_view& view) : view_(view) {
    for (std::size_t l = 0; l < view.services.size(); ++l) {
      if (view.history.services[l].requests() > 0) (view.services[l].is_stream() ? streams_ : timed_).push_back(l);
    }
    if (timed_.empty()) bars_left_ = 172;
    if (streams_.empty()) right_ = 950;
    height_ = std::max(260.0, 15.0 * static_cast<double>(std::max(timed_.size(), streams_.size() * 2)));
  }

  [[nodiscard]] std::string paint() && {
    if (timed_.empty() && streams_.empty()) return {};
    if (!timed_.empty()) curves();
    if (!streams_.empty()) bars();
    return std::move(out_).embedded(1180, box_top + height_ + 52, "Share of requests answered within multiples of the SLO",
                                    " id=\"levels-chart\"");
  }

 private:
  static constexpr double left = 172, box_top = 14, octaves = 4;
  static constexpr std::size_t steps = 32;  ///< per octave
  [[nodiscard]] row_box box() const { return {box_top, height_}; }
  [[nodiscard]] double x(double times) const { return left + (right_ - left) * (std::log2(times) + 2) / octaves; }

  void curves() {
    out_.rect(left, box_top, right_ - left, height_, palette::track.hex());
    for (int p = 0; p <= 100; p += 25) {
      const double y = box().level(p / 100.0);
      out_.line(left, y, right_, y, palette::grid);
      out_.text(left - 8, y + 3.5, std::to_string(p) + " %", {.size = 10.5, .fill = palette::quiet, .anchor = "end"});
    }
    out_.text(0, box_top + height_ / 2 - 4, "Answered", {.size = 12.5, .weight = 600});
    out_.text(0, box_top + height_ / 2 + 12, "share of requests", {.size = 10.5, .fill = palette::quiet});
    const double bottom = box_top + height_;
    for (const auto& [times, text] :
         std::array<std::pair<double, std::string_view>, 5>{{{0.25, "¼"}, {0.5, "½"}, {1, "SLO"}, {2, "2"}, {4, "4"}}}) {
      if (times == 1) out_.line(x(1), box_top, x(1), bottom + 4, palette::ink, 1.2, " stroke-dasharray=\"4 3\"");
      else out_.line(x(times), box_top, x(times), bottom + 4, palette::grid);
      out_.text(x(times), bottom + 20, text,
                {.fill = times == 1 ? palette::ink : palette::quiet, .anchor = "middle", .weight = times == 1 ? 600 : 400});
    }
    out_.text((left + right_) / 2, bottom + 40, "time to the answer, in multiples of the SLO",
              {.size = 10.5, .fill = palette::quiet, .anchor = "middle"});
    for (const std::size_t l : timed_) curve(l);
    labels();
  }
  [[nodiscard]] double share(std::size_t l, double times) const {
    return answered_within(view_.services[l], view_.history.services[l], times);
  }
  void curve(std::size_t l) {
    std::string d;
    for (std::size_t k = 0; k <= static_cast<std::size_t>(octaves) * steps; ++k) {
      const double times = std::exp2(static_cast<double>(k) / steps - 2);
      d += (k == 0 ? "M" : "L") + fixed(x(times), 1) + " " + fixed(box().level(share(l, times)), 1);
    }
    const std::string stroke = " stroke=\"" + view_.line(l).hex() + "\" stroke-width=\"2\" stroke-linejoin=\"round\"" +
                               (l >= 10 ? " stroke-dasharray=\"6 3\"" : "");  // colours repeat after ten services
    out_.path(d, "none", {}, stroke);
    std::string hover = view_.services[l].name + ": answered within";
    for (const auto& [times, words] : std::array<std::pair<double, std::string_view>, 4>{
             {{0.5, "half the SLO"}, {1, "the SLO"}, {2, "twice the SLO"}, {4, "four times the SLO"}}})
      hover +=
          "\n" + engineering(times * view_.services[l].latency.value(), "s") + ", " + std::string(words) + ": " + percent(share(l, times));
    out_.path(d, "none", hover, " class=\"curve\" stroke=\"transparent\" stroke-width=\"12\" pointer-events=\"stroke\"");
  }
  /// Writes names at the ends of curves, moved apart, with the share within the SLO.
  void labels() {
    constexpr double line = 15;
    std::vector<std::pair<double, std::size_t>> at;  // baseline and service
    for (const std::size_t l : timed_) at.emplace_back(box().level(share(l, 4)) + 4, l);
    std::ranges::sort(at);
    for (std::size_t i = 1; i < at.size(); ++i) at[i].first = std::max(at[i].first, at[i - 1].first + line);
    double lowest = box_top + height_ + 4;
    for (std::size_t i = at.size(); i-- > 0; lowest -= line) lowest = at[i].first = std::min(at[i].first, lowest);
    for (const auto& [y, l] : at) {
      const double end = box().level(share(l, 4));
      out_.path("M" + fixed(right_ + 2) + " " + fixed(end, 1) + "L" + fixed(right_ + 12) + " " + fixed(y - 4, 1), "none", {},
                " stroke=\"" + view_.line(l).hex() + "\"");
      out_.text(right_ + 16, y, fitted(view_.services[l].name, 18) + "  " + percent(share(l, 1)), {.size = 11, .fill = palette::quiet});
    }
  }
  void bars() {
    const double width = 1180 - bars_left_, pitch = std::min(44.0, height_ / static_cast<double>(streams_.size()));
    double y = box_top;
    for (const std::size_t l : streams_) {
      const auto& t = view_.history.services[l];
      out_.text(bars_left_, y + 11, fitted(view_.services[l].name, 22), {.size = 11.5, .weight = 600});
      out_.text(1180, y + 11, percent(t.attainment()), {.size = 11.5, .anchor = "end", .weight = 600});
      const std::string hover = view_.services[l].name + ", a stream at " + fixed(view_.services[l].rate, 2) + " frames/s\n" +
                                short_number(t.credit) + " of " + short_number(t.asked) + " frames served";
      out_.rect(bars_left_, y + 17, width, 9, palette::track.hex(), hover);
      out_.rect(bars_left_, y + 17, width * std::clamp(t.attainment(), 0.0, 1.0), 9, view_.line(l).hex(), hover);
      y += pitch;
    }
    out_.text(bars_left_, box_top + height_ + 40, "streams: share of their frames that was served", {.size = 10.5, .fill = palette::quiet});
  }

  const serving_view& view_;
  std::vector<std::size_t> timed_, streams_;
  double right_ = 700, bars_left_ = 930, height_ = 260;
  svg_writer out_;
};

HETPLAN_INLINE std::string levels_chart(const serving_view& view) { return levels_painter(view).paint(); }

class ring_circle {
 public:
  ring_circle(const serving_view& view, std::size_t ring, double x, double y, double radius, double half)
      : view_(view), x_(x), y_(y), radius_(radius), half_(half), first_(ring * static_cast<std::size_t>(view.cloud.ring.group)),
        size_(std::min(view.cloud.size() - first_, static_cast<std::size_t>(view.cloud.ring.group))) {}

  void paint(svg_writer& out, const std::vector<serve::offload_flow>& flows, double most) const {
    out.path(circle(radius_, x_, y_), "none", {}, " class=\"ring\"");
    for (const auto& f : flows) band(out, f, most);
    const double dot = std::clamp(0.3 * 2 * std::numbers::pi * radius_ / static_cast<double>(size_), 1.2, 5.0);
    for (std::size_t k = 0; k < size_; ++k) {
      const auto& t = view_.history.servers[first_ + k];
      const std::string hover =
          view_.cloud.servers[first_ + k].name + "\n" + grouped(t.entered) + " requests entered, " + grouped(t.passed_on) + " passed on";
      const double a = angle(k);
      out.path(circle(dot, x_ + radius_ * std::cos(a), y_ + radius_ * std::sin(a)), palette::quiet.hex(), hover);
    }
    names(out);
  }

 private:
  [[nodiscard]] static std::string circle(double r, double x, double y) {
    const std::string d = fixed(2 * r), rr = fixed(r);
    return "M" + fixed(x - r) + " " + fixed(y) + "a" + rr + " " + rr + " 0 1 0 " + d + " 0a" + rr + " " + rr + " 0 1 0-" + d + " 0Z";
  }
  /// Returns the angle of a server, clockwise from the top.
  [[nodiscard]] double angle(std::size_t k) const {
    return 2 * std::numbers::pi * (static_cast<double>(k) / static_cast<double>(size_) - 0.25);
  }
  /// Paints a flow as a band from the sender (wide) to the receiver (narrow), bent to the left, so that the opposite flow lies beside it.
  void band(svg_writer& out, const serve::offload_flow& f, double most) const {
    const double a = angle(f.from.index() - first_), b = angle(f.to.index() - first_);
    const double x1 = std::cos(a), y1 = std::sin(a), x2 = std::cos(b), y2 = std::sin(b);  // on the unit circle
    const double length = std::hypot(x2 - x1, y2 - y1), nx = -(y2 - y1) / length, ny = (x2 - x1) / length;
    const double xc = 0.55 * (x1 + x2) / 2 - 0.07 * nx, yc = 0.55 * (y1 + y2) / 2 - 0.07 * ny;
    const double wide = std::max(0.9, 0.11 * radius_ * static_cast<double>(f.requests) / most), narrow = std::max(0.5, 0.3 * wide);
    const auto at = [&](double x, double y, double off) {
      return fixed(x_ + radius_ * x + off * nx, 1) + " " + fixed(y_ + radius_ * y + off * ny, 1);
    };
    const double middle = (wide + narrow) / 4;
    out.path("M" + at(x1, y1, wide / 2) + "Q" + at(xc, yc, middle) + " " + at(x2, y2, narrow / 2) + "L" + at(x2, y2, -narrow / 2) + "Q" +
                 at(xc, yc, -middle) + " " + at(x1, y1, -wide / 2) + "Z",
             "#1f5fa8", view_.name(f.from) + " → " + view_.name(f.to) + "\n" + grouped(f.requests) + " requests", " class=\"flow\"");
  }
  /// Writes names of servers outside the circle, as many as fit.
  void names(svg_writer& out) const {
    const double most = radius_ > 130 ? 24 : 8;
    const auto step = static_cast<std::size_t>(std::ceil(static_cast<double>(size_) / most));
    const auto limit = std::min<std::size_t>(14, static_cast<std::size_t>((half_ - radius_ - 13) / 5.9));
    for (std::size_t k = 0; k == 0 || k + step <= size_; k += step) {
      const double a = angle(k), x = std::cos(a), y = std::sin(a);
      const std::string_view anchor = std::abs(x) < 0.12 ? "middle" : x > 0 ? "start" : "end";
      out.text(x_ + (radius_ + 11) * x, y_ + (radius_ + 11) * y + 4 + 3 * y, fitted(view_.cloud.servers[first_ + k].name, limit),
               {.size = 10.5, .fill = palette::quiet, .anchor = anchor});
    }
  }

  const serving_view& view_;
  double x_, y_, radius_, half_;  ///< half_: half the available width
  std::size_t first_, size_;
};

/// The flows of a ring that are drawn.
struct ring_flows {
  std::size_t ring = 0;
  std::uint64_t requests = 0;  ///< in all flows of the ring
  std::vector<serve::offload_flow> shown = {};
};

[[nodiscard]] HETPLAN_INLINE std::string ring_circles(const serving_view& view, const std::vector<ring_flows>& rings, double most) {
  const std::size_t columns = std::min<std::size_t>(rings.size(), 4);
  const double radius = rings.size() == 1 ? 190 : rings.size() == 2 ? 150 : 84;
  const double wide = rings.size() == 1 ? 620 : 1180 / static_cast<double>(columns), high = 2 * radius + 86;
  svg_writer out;
  for (std::size_t i = 0; i < rings.size(); ++i) {
    const double left = wide * static_cast<double>(i % columns), top = high * static_cast<double>(i / columns), middle = left + wide / 2;
    if (view.rings() > 1)
      out.text(middle, top + 16, "ring " + std::to_string(rings[i].ring) + ": " + grouped(rings[i].requests) + " passed on",
               {.size = 11.5, .anchor = "middle", .weight = 600});
    ring_circle(view, rings[i].ring, middle, top + 44 + radius, radius, wide / 2).paint(out, rings[i].shown, most);
  }
  const double rows = std::ceil(static_cast<double>(rings.size()) / static_cast<double>(columns));
  const double width = rings.size() == 1 ? wide : 1180;
  return std::move(out).embedded(width, high * rows, "Requests passed on between servers",
                                 std::string(" id=\"flows\"") + (rings.size() == 1 ? " style=\"min-width:0\"" : ""));
}

[[nodiscard]] HETPLAN_INLINE std::string flows_table(const serving_view& view, const std::vector<serve::offload_flow>& largest,
                                                     double all) {
  std::string text =
      "<table id=\"largest-flows\"><thead><tr><th>From</th><th>To</th><th class=\"n\">Requests</th><th>Of all passed on</th></tr></thead>\n"
      "<tbody>\n";
  constexpr std::size_t most_rows = 12;
  for (std::size_t i = 0; i < std::min(most_rows, largest.size()); ++i) {
    const double share = static_cast<double>(largest[i].requests) / all;
    text += "<tr>" + cell(view.name(largest[i].from)) + cell(view.name(largest[i].to)) +
            cell(grouped(largest[i].requests), " class=\"n\"") + meter(share, false, percent(share)) + "</tr>\n";
  }
  return "<div>" + text + "</tbody></table></div>\n";
}

/// Returns a bar of the number of offloads per finished request.
[[nodiscard]] HETPLAN_INLINE std::string offload_bar(const serving_view& view) {
  const auto& counts = view.history.offloads;
  std::uint64_t all = 0;
  for (const auto n : counts) all += n;
  if (all == 0) return {};
  std::string bar = "<div class=\"named\"><span>passed on</span><div class=\"share\">",
              legend = "<div class=\"legend\" id=\"offload-counts\">";
  for (std::size_t h = 0; h < counts.size(); ++h) {
    if (counts[h] == 0) continue;
    const color c =
        mix(palette::category_line_color(h > 0 ? 1 : 0), palette::paper, h > 0 ? std::max(0.0, 0.75 - 0.15 * static_cast<double>(h)) : 0.5);
    const double share = static_cast<double>(counts[h]) / static_cast<double>(all);
    const std::string words = h == 0 ? "never" : h == 1 ? "once" : h == 2 ? "twice" : std::to_string(h) + " times";
    bar += "<i style=\"width:" + fixed(100 * share, 3) + "%;background-color:" + c.hex() + "\"></i>";
    legend += "<span>" + swatch(c.hex()) + words + " <b>" + grouped(counts[h]) + "</b> (" + xml_text(percent(share)) + ")</span>";
  }
  return bar + "</div></div>\n" + legend + "</div>\n";
}

HETPLAN_INLINE std::string flows_section(const serving_view& view) {
  std::vector<serve::offload_flow> flows = view.history.flows;  // sorted by sender, then receiver
  std::ranges::stable_sort(flows, std::ranges::greater(), &serve::offload_flow::requests);
  std::string text = offload_bar(view);
  if (flows.empty()) return text + note("No request was passed on.");
  double all = 0;
  for (const auto& f : flows) all += static_cast<double>(f.requests);

  std::vector<ring_flows> rings(view.rings());
  for (std::size_t i = 0; i < flows.size(); ++i) {
    auto& r = rings[view.ring_of(flows[i].from)];
    r.requests += flows[i].requests;
    if (i < most_flows) r.shown.push_back(flows[i]);
  }
  for (std::size_t k = 0; k < rings.size(); ++k) rings[k].ring = k;
  std::ranges::stable_sort(rings, std::ranges::greater(), &ring_flows::requests);
  const auto quiet = std::ranges::find_if(rings, [](const ring_flows& r) { return r.shown.empty(); });
  const auto active = static_cast<std::size_t>(std::ranges::count_if(rings, [](const ring_flows& r) { return r.requests > 0; }));
  rings.erase(quiet, rings.end());
  if (rings.size() > most_rings) rings.resize(most_rings);
  std::ranges::sort(rings, {}, &ring_flows::ring);

  std::size_t drawn = 0;
  double told = 0;
  for (const auto& r : rings) {
    drawn += r.shown.size();
    for (const auto& f : r.shown) told += static_cast<double>(f.requests);
  }
  const std::string picture = ring_circles(view, rings, static_cast<double>(flows.front().requests));
  text += rings.size() == 1 ? "<div class=\"beside\">\n" + picture + flows_table(view, flows, all) + "</div>\n"
                            : scrolling(picture) + flows_table(view, flows, all);
  if (drawn < flows.size()) {
    text += "<p class=\"note\">The " + grouped(drawn) + " largest of " + grouped(flows.size()) +
            " flows are drawn: " + xml_text(percent(told / all)) + " of all that was passed on";
    if (rings.size() < active) text += ", in " + std::to_string(rings.size()) + " of " + std::to_string(active) + " rings";
    text += ".</p>\n";
  }
  return text;
}

}  // namespace hetplan::draw::detail
