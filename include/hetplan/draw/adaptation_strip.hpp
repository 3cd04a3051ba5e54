// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A policy's strip: which plan ran when, and what happened where none did.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include <hetplan/draw/adaptation_canvas.hpp>

namespace HETPLAN_NAMESPACE::draw::detail {

/// Running stretches get the colour of their plan's letter. A pixel with many stretches shows the plan that ran longest in it, and on
/// top of that, never less than a quarter high, what did not run.
class strip_painter {
 public:
  strip_painter(adaptation_canvas& k, std::size_t policy, row_box box);

  void paint();

 private:
  using fills = std::map<std::string, std::string>;  ///< outlines by fill

  [[nodiscard]] std::string fill_of(const adapt::stretch& s) const;
  void bar(const adapt::stretch& s, double from, double to, double low, double high);
  void bar(fills& all, const std::string& fill, double from, double to, double low, double high) const;

  void average();

  adaptation_canvas& k_;
  std::size_t policy_;
  row_box box_;
  std::vector<adapt::stretch> pieces_;
  fills running_, others_;
};

}  // namespace HETPLAN_NAMESPACE::draw::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/adaptation_strip.ipp>
#endif
