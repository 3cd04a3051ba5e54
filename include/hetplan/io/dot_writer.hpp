// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The text of a Graphviz graph, piece by piece.

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <hetplan/io/markup.hpp>
#include <hetplan/io/palette.hpp>

namespace hetplan::io {

/// How layers of a model are boxed together.
enum class dot_boxes {
  none,
  towers,         ///< by name up to the first '.': "vision.block0.q" and "vision.embed" are in "vision"
  weight_groups,  ///< layers that share a tensor
};

enum class dot_direction { down, right };

struct dot_options {
  dot_boxes boxes = dot_boxes::towers;
  dot_direction direction = dot_direction::down;
  std::size_t max_plan_layers = 80;  ///< a plan of a larger model shows stages, not layers
};

namespace detail {

/// Builds the text of one graph; nodes are numbered, names only appear in labels.
class dot_writer {
 public:
  dot_writer(std::string_view keyword, std::string_view title, dot_direction direction) : connector_(keyword == "graph" ? " -- " : " -> ") {
    out_ = std::string(keyword) + " " + dot_string(title) + " {\n  rankdir=" + (direction == dot_direction::down ? "TB" : "LR") +
           ";\n  bgcolor=\"#ffffff\";\n  fontname=\"Helvetica\";\n  node [shape=box, style=\"rounded,filled\", fillcolor=\"#f5f7f9\", "
           "color=\"#98a4b1\", "
           "fontname=\"Helvetica\", fontsize=11];\n  edge [color=\"#626e7b\", fontname=\"Helvetica\", fontsize=9, fontcolor=\"#626e7b\", "
           "arrowsize=0.7];\n";
  }

  /// `more` is written as it is: attributes, each after ", ".
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

}  // namespace detail

}  // namespace hetplan::io
