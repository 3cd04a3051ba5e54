// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The text of a Graphviz graph, piece by piece.

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <hetplan/draw/palette.hpp>

namespace HETPLAN_NAMESPACE::draw {

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
  dot_writer(std::string_view keyword, std::string_view title, dot_direction direction);

  /// `more` is written as it is: attributes, each after ", ".
  void node(const std::string& id, std::string_view label, std::string_view more = {});
  void edge(const std::string& from, const std::string& to, std::string_view label = {}, std::string_view more = {});
  void open_box(std::size_t number, std::string_view label, std::string_view fill = "#ffffff");
  void close_box();
  [[nodiscard]] std::string document() && { return std::move(out_) + "}\n"; }

  [[nodiscard]] static std::string id(char kind, std::size_t i) { return kind + std::to_string(i); }
  [[nodiscard]] static std::string fill(color c);

 private:
  std::string out_, indent_ = "  ", connector_;
};

}  // namespace detail

}  // namespace HETPLAN_NAMESPACE::draw

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/dot_writer.ipp>
#endif
