// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/dot.hpp>

#include <algorithm>
#include <map>

#include <range/v3/view/enumerate.hpp>
#include <range/v3/view/sliding.hpp>

#include <hetplan/plan/stage_graph.hpp>

namespace hetplan::draw {

namespace detail {

/// Writer of one graph. Nodes are numbered; names only appear in labels.
class dot_writer {
 public:
  dot_writer(std::string_view keyword, std::string_view title, dot_direction direction) : connector_(keyword == "graph" ? " -- " : " -> ") {
    out_ = std::string(keyword) + " " + dot_string(title) + " {\n  rankdir=" + (direction == dot_direction::down ? "TB" : "LR") +
           ";\n  bgcolor=\"#ffffff\";\n  fontname=\"Helvetica\";\n  node [shape=box, style=\"rounded,filled\", fillcolor=\"#f5f7f9\", "
           "color=\"#98a4b1\", "
           "fontname=\"Helvetica\", fontsize=11];\n  edge [color=\"#626e7b\", fontname=\"Helvetica\", fontsize=9, fontcolor=\"#626e7b\", "
           "arrowsize=0.7];\n";
  }

  /// Adds a node. `more` has further attributes, each after ", ".
  void node(const std::string& id, std::string_view label, std::string_view more = {}) {
    out_.append(indent_).append(id).append(" [label=").append(dot_string(label)).append(more) += "];\n";
  }
  void edge(const std::string& from, const std::string& to, std::string_view label = {}, std::string_view more = {}) {
    out_.append(indent_).append(from).append(connector_).append(to).append(" [");
    if (!label.empty()) out_ += "label=" + dot_string(label);
    if (label.empty() && !more.empty()) more.remove_prefix(2);
    out_.append(more) += "];\n";
  }
  void open_box(std::size_t number, std::string_view label, std::string_view fill = "#ffffff") {
    out_ += "  subgraph cluster_" + std::to_string(number) + " {\n    label=" + dot_string(label) +
            "; style=\"rounded,filled\"; fillcolor=\"" + std::string(fill) + "\"; color=\"#d6dce3\"; fontsize=12;\n";
    indent_ = "    ";
  }
  void close_box() {
    out_ += "  }\n";
    indent_ = "  ";
  }
  [[nodiscard]] std::string document() && { return std::move(out_) + "}\n"; }

  [[nodiscard]] static std::string id(char kind, std::size_t i) { return kind + std::to_string(i); }
  [[nodiscard]] static std::string fill(color c) {
    return ", fillcolor=\"" + c.hex() + "\", fontcolor=\"" + palette::text_on(c).hex() + "\"";
  }

 private:
  std::string out_, indent_ = "  ", connector_;
};

/// Picture of a cluster, which distinguishes wires (resources that alone join exactly one pair) from shared resources.
class cluster_picture {
 public:
  explicit cluster_picture(const cluster& c) : cluster_(c), wires_(c.network().resources().size()) {
    std::vector<std::set<std::pair<device_id, device_id>>> alone(wires_.size());
    for_each_route([&](device_id a, device_id b, const route& r) {
      if (r.via.size() == 1) alone[r.via.front().resource.index()].emplace(a, b);
    });
    for (std::size_t i = 0; i < alone.size(); ++i) {
      std::set<std::pair<device_id, device_id>> pairs;
      for (const auto& [a, b] : alone[i]) pairs.emplace(std::min(a, b), std::max(a, b));
      if (pairs.size() == 1)
        wires_[i] = {.from = alone[i].begin()->first, .to = alone[i].begin()->second, .both_ways = alone[i].size() == 2, .is_wire = true};
    }
    // A wire on a route with other resources (a group's medium with an uplink) becomes a node.
    for (bool changed = true; changed;) {
      changed = false;
      for_each_route([&](device_id, device_id, const route& r) {
        const auto wire_here = [&](const resource_use& u) { return wires_[u.resource.index()].is_wire; };
        if (std::all_of(r.via.begin(), r.via.end(), wire_here) || std::none_of(r.via.begin(), r.via.end(), wire_here)) return;
        for (const resource_use& u : r.via) wires_[u.resource.index()].is_wire = false;
        changed = true;
      });
    }
  }

  [[nodiscard]] std::string draw(const dot_options& options) {
    dot_writer out("digraph", cluster_.name(), options.direction);
    const network& net = cluster_.network();
    for (const device& d : cluster_.devices()) {
      std::string label = d.name + (d.kind != d.name ? "\n" + d.kind : std::string());
      if (d.accelerators > 1) label += "\n" + std::to_string(d.accelerators) + " accelerators";
      if (d.compute.value() > 0) label += "\n" + engineering(d.compute.value(), "FLOP/s");
      label += "\n" + engineering(d.usable_memory().value(), "B");
      if (d.usable_memory() < d.memory) label += " of " + engineering(d.memory.value(), "B");
      out.node(device_node(d.id), label, dot_writer::fill(palette::category_color(d.id.index())));
    }
    for_each_route([&](device_id a, device_id b, const route& r) { connect(a, b, r); });
    for (std::size_t i = 0; i < wires_.size(); ++i) {
      const resource& r = net.resources()[i];
      const std::string rate = engineering(8 * r.capacity.value(), "bit/s");
      if (wires_[i].is_wire) {
        out.edge(device_node(wires_[i].from), device_node(wires_[i].to), rate, wires_[i].both_ways ? ", dir=none" : "");
      } else if (used_.contains(i)) {
        out.node(resource_node(i), r.name + "\n" + rate, ", shape=ellipse");
      }
    }
    join_through_switch(out);
    for (const auto& [from, to] : links_) {
      const bool back = links_.contains({to, from});
      if (!back || from < to) out.edge(from, to, {}, back ? ", dir=none" : "");
    }
    return std::move(out).document();
  }

 private:
  struct wire {
    device_id from, to;
    bool both_ways = false, is_wire = false;
  };

  static std::string device_node(device_id d) { return dot_writer::id('d', d.index()); }
  static std::string resource_node(std::size_t r) { return dot_writer::id('r', r); }

  template <class F>
  void for_each_route(F&& f) const {
    for (const device& a : cluster_.devices()) {
      for (const device& b : cluster_.devices()) {
        if (a.id == b.id) continue;
        if (const route* r = cluster_.network().find(a.id, b.id)) f(a.id, b.id, *r);
      }
    }
  }

  /// Adds the path of a route. Wires are drawn separately.
  void connect(device_id a, device_id b, const route& r) {
    if (!r.via.empty() && wires_[r.via.front().resource.index()].is_wire) return;
    std::string at = device_node(a);
    for (const resource_use& u : r.via) {
      const std::string next = resource_node(u.resource.index());
      used_.insert(u.resource.index());
      links_.emplace(at, next);
      at = next;
    }
    links_.emplace(at, device_node(b));
  }

  /// Replaces links by a switch if (almost) every one of three or more resources leads to every other.
  void join_through_switch(dot_writer& out) {
    std::set<std::string> from, to;
    std::set<std::pair<std::string, std::string>> between;
    for (const auto& link : links_) {
      if (link.first.front() != 'r' || link.second.front() != 'r') continue;
      between.insert(link);
      from.insert(link.first);
      to.insert(link.second);
    }
    const std::size_t all = from.size() * to.size(), own = std::min(from.size(), to.size());
    if (own < 3 || between.size() + own < all) return;
    for (const auto& link : between) links_.erase(link);
    out.node("switch", "", ", shape=diamond, width=0.25, height=0.25");
    for (const std::string& f : from) links_.emplace(f, "switch");
    for (const std::string& t : to) links_.emplace("switch", t);
  }

  const cluster& cluster_;
  std::vector<wire> wires_;  ///< by resource
  std::set<std::size_t> used_;
  std::set<std::pair<std::string, std::string>> links_;
};

[[nodiscard]] HETPLAN_INLINE std::string layer_label(const layer& l, std::string_view name) {
  std::string text(name);
  if (!l.kind.empty()) text += "\n" + l.kind;
  if (l.has_flops && l.forward_flops.value() > 0) text += "\n" + engineering(l.forward_flops.value(), "FLOP");
  if (l.weight.value() > 0) text += "\n" + engineering(l.weight.value(), "B") + (l.trainable ? "" : " frozen");
  return text;
}

/// Returns the devices of a stage as text: "laptop (3), phone (1) ×2".
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

HETPLAN_INLINE std::string dot(const cluster& c, const dot_options& options) { return detail::cluster_picture(c).draw(options); }

HETPLAN_INLINE std::string dot(const planning_graph& model, const dot_options& options) {
  detail::dot_writer out("digraph", model.name(), options.direction);
  std::map<std::string, std::vector<layer_id>> boxes;  // "": no box
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
  constexpr std::size_t most_boxes = 10;  // with more stages, boxes around nearly every layer would hide the structure
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
      out.node(
          id(n),
          letter(t.what) + place + (t.pass > 0 ? " pass " + std::to_string(t.pass) : std::string()) + "\n" + engineering(t.duration_s, "s"),
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

}  // namespace hetplan::draw
