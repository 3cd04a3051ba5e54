// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/dot.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>
#include <vector>

#include <range/v3/view/enumerate.hpp>
#include <range/v3/view/sliding.hpp>

#include <hetplan/draw/markup.hpp>
#include <hetplan/plan/stage_graph.hpp>

namespace HETPLAN_NAMESPACE::draw {

namespace detail {

[[nodiscard]] HETPLAN_INLINE std::string layer_label(const layer& l, std::string_view name) {
  std::string text(name);
  if (!l.kind.empty()) text += "\n" + l.kind;
  if (l.has_flops && l.forward_flops.value() > 0) text += "\n" + engineering(l.forward_flops.value(), "FLOP");
  if (l.weight.value() > 0) text += "\n" + engineering(l.weight.value(), "B") + (l.trainable ? "" : " frozen");
  return text;
}

/// The devices of a stage as text: "laptop (3), phone (1) ×2".
[[nodiscard]] HETPLAN_INLINE std::string devices_label(const stage& s, const cluster& c) {
  std::string text;
  for (const assignment& a : s.devices) {
    text += (text.empty() ? "" : ", ") + c[a.device].name;
    if (s.devices.size() > 1) text += " (" + std::to_string(a.samples) + ")";
    if (a.tensor_parallel > 1) text += " ×" + std::to_string(a.tensor_parallel);
  }
  return text;
}

}  // namespace detail

HETPLAN_INLINE std::string dot(const planning_graph& model, const dot_options& options) {
  detail::dot_writer out("digraph", model.name(), options.direction);
  std::map<std::string, std::vector<layer_id>> boxes;  // "" = outside of all
  for (const layer& l : model.layers()) {
    std::string box;
    if (options.boxes == dot_boxes::weight_groups && l.weight_group >= 0)
      box = model.weight_groups()[static_cast<std::size_t>(l.weight_group)];
    if (const auto point = l.name.find('.'); options.boxes == dot_boxes::towers && point != std::string::npos)
      box = l.name.substr(0, point);
    boxes[box].push_back(l.id);
  }
  std::size_t number = 0;
  for (const auto& [box, layers] : boxes) {
    const bool boxed = !box.empty() && (boxes.size() > 1 || options.boxes == dot_boxes::weight_groups);
    if (boxed) out.open_box(number++, box);
    for (const layer_id l : layers) {
      const std::string& name = model[l].name;
      const bool tower = boxed && options.boxes == dot_boxes::towers;
      out.node(detail::dot_writer::id('l', l.index()),
               detail::layer_label(model[l], tower ? std::string_view(name).substr(box.size() + 1) : name));
    }
    if (boxed) out.close_box();
  }
  for (const layer_edge& e : model.edges()) {
    out.edge(detail::dot_writer::id('l', e.from.index()), detail::dot_writer::id('l', e.to.index()), engineering(e.forward.value(), "B"),
             e.gradient.value() > 0 ? "" : ", style=dashed");
  }
  return std::move(out).document();
}

HETPLAN_INLINE std::string dot(const plan& p, const planning_graph& model, const cluster& c, const dot_options& options) {
  detail::dot_writer out("digraph", p.model + " on " + p.cluster, options.direction);
  constexpr std::size_t most_boxes = 10;  // beyond, a box for nearly every layer hides more than it shows
  const std::size_t layers = model.size() * p.pipeline_count();
  const bool show_layers = layers <= options.max_plan_layers && (p.stages.size() <= most_boxes || 2 * p.stages.size() <= layers);
  const auto style = [](bytes back, const stage& from, const stage& to) {
    const bool moves = from.devices.front().device != to.devices.front().device || from.devices.size() + to.devices.size() > 2;
    return std::string(back.value() > 0 ? "" : ", style=dashed") + (moves ? ", penwidth=2.5" : "");
  };
  const auto layer_node = [&](int pipeline, layer_id l) {
    return detail::dot_writer::id('l', static_cast<std::size_t>(pipeline) * model.size() + l.index());
  };
  for (const auto& [s, st] : ranges::views::enumerate(p.stages)) {
    const std::string name = st.name.empty() ? "s" + std::to_string(s) : st.name, devices = detail::devices_label(st, c);
    const color fill = palette::category_color(st.devices.front().device.index());
    if (show_layers) {
      out.open_box(s, name + " on " + devices, fill.hex());
      for (const layer_id l : st.layers) out.node(layer_node(st.pipeline, l), model[l].name, ", fillcolor=\"#ffffff\"");
      out.close_box();
    } else {
      const layer &first = model[st.layers.front()], &last = model[st.layers.back()];
      std::string about = first.name + " … " + last.name + "\n" + std::to_string(st.layers.size()) + " layers";
      if (st.layers.size() == 1) about = first.name == name ? first.kind : first.name;
      if (!about.empty()) about = "\n" + about;
      out.node(detail::dot_writer::id('s', s), name + " on " + devices + about, detail::dot_writer::fill(fill));
    }
  }
  if (show_layers) {
    for (std::size_t i = 0; i < p.pipeline_count(); ++i) {
      std::vector<const stage*> stage_of(model.size(), nullptr);
      for (const stage& st : p.stages) {
        for (const layer_id l : st.layers) {
          if (static_cast<std::size_t>(st.pipeline) == i) stage_of[l.index()] = &st;
        }
      }
      for (const layer_edge& e : model.edges()) {
        out.edge(layer_node(static_cast<int>(i), e.from), layer_node(static_cast<int>(i), e.to), engineering(e.forward.value(), "B"),
                 style(e.gradient, *stage_of[e.from.index()], *stage_of[e.to.index()]));
      }
    }
  } else {
    for (const stage_edge& e : make_stage_graph(p, model).edges) {
      out.edge(detail::dot_writer::id('s', e.from.index()), detail::dot_writer::id('s', e.to.index()),
               engineering(e.forward_cut.value(), "B"), style(e.backward_cut, p.stages[e.from.index()], p.stages[e.to.index()]));
    }
  }
  return std::move(out).document();
}

namespace detail {

[[nodiscard]] HETPLAN_INLINE std::string dot_of_tasks(const tasks::task_graph& g, const cluster* c, const dot_options& options) {
  dot_writer out("digraph", "tasks", options.direction);
  const auto device_name = [&](device_id d) {
    return c != nullptr && d.index() < c->size() ? (*c)[d].name : "device " + std::to_string(d.value);
  };
  const auto id = [](std::size_t n) { return dot_writer::id('n', n); };
  std::size_t stages = 1;
  for (const tasks::compute_task& t : g.computes) stages = std::max(stages, t.stage.valid() ? t.stage.index() + 1 : 0);
  std::vector<std::vector<std::size_t>> on(g.device_order.size());
  for (const auto& [n, t] : ranges::views::enumerate(g.computes)) on[t.device.index()].push_back(n);
  for (const auto& [d, mine] : ranges::views::enumerate(on)) {
    if (mine.empty()) continue;
    out.open_box(d, device_name(device_id(d)));
    for (const std::size_t n : mine) {
      const tasks::compute_task& t = g.computes[n];
      const std::string place =
          (t.stage.valid() ? " s" + std::to_string(t.stage.value) : std::string()) + " " + std::to_string(t.microbatch);
      out.node(id(n),
               letter(t.what) + place + (t.token > 0 ? " token " + std::to_string(t.token) : std::string()) + "\n" +
                   engineering(t.duration_s, "s"),
               dot_writer::fill(palette::phase_color(t.what, t.stage.valid() ? t.stage.index() : 0, stages)));
    }
    out.close_box();
  }
  for (const auto& [i, t] : ranges::views::enumerate(g.transfers)) {
    out.node(id(g.computes.size() + i), device_name(t.from) + " → " + device_name(t.to) + "\n" + engineering(t.volume_bytes, "B"),
             ", shape=ellipse" + dot_writer::fill(palette::transfer_color(t.kind)));
  }
  for (std::size_t n = g.computes.size() + g.transfers.size(); n < g.size(); ++n) out.node(id(n), "", ", shape=point");
  for (tasks::node_id n = 0; n < g.size(); ++n) {
    for (const tasks::node_id m : g.successors_of(n)) out.edge(id(n), id(m));
  }
  for (const auto& order : g.device_order) {
    for (const auto pair : ranges::views::sliding(order, 2)) out.edge(id(pair[0]), id(pair[1]), {}, ", style=dotted, constraint=false");
  }
  return std::move(out).document();
}

}  // namespace detail

HETPLAN_INLINE std::string dot(const tasks::task_graph& g, const dot_options& options) { return detail::dot_of_tasks(g, nullptr, options); }

HETPLAN_INLINE std::string dot(const tasks::task_graph& g, const cluster& c, const dot_options& options) {
  return detail::dot_of_tasks(g, &c, options);
}

}  // namespace HETPLAN_NAMESPACE::draw
