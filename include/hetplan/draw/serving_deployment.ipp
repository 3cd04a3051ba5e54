// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/serving_deployment.hpp>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <hetplan/draw/page.hpp>
#include <hetplan/draw/svg.hpp>

namespace hetplan::draw::detail {

/// Servers as cards in the order of the list, each ring in rows of its own.
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
    out_.open_group("");  // texts on fills keep their ink on dark paper
    out_.append(std::move(words_));
    out_.close_group();
    return std::move(out_).embedded(width, bottom_, "Services on GPUs", " id=\"deployment-picture\"");
  }

 private:
  static constexpr double width = 1180, gutter = 18, bar = 18, pitch = 22, names = 22, head = 24;
  struct bar_state {
    double y = 0, filled = 0;  ///< filled: share of its compute that is drawn
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
  /// "2 × A2, 2 × A100", in the order of the GPUs.
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
  /// @return  where ties are fastened.
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
  /// A line through the slices of one instance, straight within a server.
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

}  // namespace hetplan::draw::detail
