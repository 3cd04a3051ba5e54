// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/dot_writer.hpp>

#include <hetplan/draw/markup.hpp>

namespace HETPLAN_NAMESPACE::draw::detail {

HETPLAN_INLINE dot_writer::dot_writer(std::string_view keyword, std::string_view title, dot_direction direction)
    : connector_(keyword == "graph" ? " -- " : " -> ") {
  out_ = std::string(keyword) + " " + dot_string(title) + " {\n  rankdir=" + (direction == dot_direction::down ? "TB" : "LR") +
         ";\n  bgcolor=\"#ffffff\";\n  fontname=\"Helvetica\";\n  node [shape=box, style=\"rounded,filled\", fillcolor=\"#f5f7f9\", "
         "color=\"#98a4b1\", "
         "fontname=\"Helvetica\", fontsize=11];\n  edge [color=\"#626e7b\", fontname=\"Helvetica\", fontsize=9, fontcolor=\"#626e7b\", "
         "arrowsize=0.7];\n";
}

HETPLAN_INLINE void dot_writer::node(const std::string& id, std::string_view label, std::string_view more) {
  out_.append(indent_).append(id).append(" [label=").append(dot_string(label)).append(more) += "];\n";
}

HETPLAN_INLINE void dot_writer::edge(const std::string& from, const std::string& to, std::string_view label, std::string_view more) {
  out_.append(indent_).append(from).append(connector_).append(to).append(" [");
  if (!label.empty()) out_ += "label=" + dot_string(label);
  if (label.empty() && !more.empty()) more.remove_prefix(2);
  out_.append(more) += "];\n";
}

HETPLAN_INLINE void dot_writer::open_box(std::size_t number, std::string_view label, std::string_view fill) {
  out_ += "  subgraph cluster_" + std::to_string(number) + " {\n    label=" + dot_string(label) +
          "; style=\"rounded,filled\"; fillcolor=\"" + std::string(fill) + "\"; color=\"#d6dce3\"; fontsize=12;\n";
  indent_ = "    ";
}

HETPLAN_INLINE void dot_writer::close_box() {
  out_ += "  }\n";
  indent_ = "  ";
}

HETPLAN_INLINE std::string dot_writer::fill(color c) {
  return ", fillcolor=\"" + c.hex() + "\", fontcolor=\"" + palette::text_on(c).hex() + "\"";
}

}  // namespace HETPLAN_NAMESPACE::draw::detail
