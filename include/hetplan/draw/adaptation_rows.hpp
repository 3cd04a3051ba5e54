// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The rows of an adaptation's chart: what changed, and below it what each policy made of it.

#include <cstddef>

#include <hetplan/draw/adaptation_canvas.hpp>

namespace hetplan::draw::detail {

/// Paints the whole chart from the top down.
class adaptation_rows {
 public:
  explicit adaptation_rows(adaptation_canvas& k) : k_(k), view_(k.view), full_s_(response_scale()) {}

  /// @return  the lower edge of the last row
  double paint();

 private:
  [[nodiscard]] double paint_conditions(double y);
  [[nodiscard]] double paint_signs(sign_row& row, std::string_view name, double y);

  [[nodiscard]] double paint_policy(std::size_t p, double y);

  // --- how fast ---

  /// One scale for all policies: what was wanted, and 98 % of the time that something ran, fit in.
  [[nodiscard]] double response_scale() const;

  void paint_response(const adapt::history& h, row_box box);

  [[nodiscard]] static sign sign_of(adapt::rung r);

  adaptation_canvas& k_;
  const adaptation_view& view_;
  double full_s_;
  double deadline_top_ = 6;
};

}  // namespace hetplan::draw::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/adaptation_rows.ipp>
#endif
