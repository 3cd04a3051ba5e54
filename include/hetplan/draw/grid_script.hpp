// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a page with grids does beside the report's script: it says which cell is under the pointer.

#include <string_view>

#include <hetplan/core/linkage.hpp>

namespace hetplan::draw::detail {

/// The report's script asks what is under the pointer for its `tipAt`, where it has one.
inline constexpr std::string_view grid_script = R"js(
"use strict";
for (const grid of document.querySelectorAll(".grid")) {
  const [rows, columns, units] = ["rows", "columns", "units"].map((name) => JSON.parse(grid.dataset[name]));
  const values = grid.dataset.values.split(";").map((row) => row.split(","));
  const clamp = (share, count) => Math.max(0, Math.min(count - 1, Math.floor(share * count)));
  grid.tipAt = (event) => {
    const box = grid.getBoundingClientRect();
    const row = clamp((event.clientY - box.top) / box.height, rows.length);
    const column = clamp((event.clientX - box.left) / box.width, columns.length);
    const [whole, part] = values[row][column].split(".");
    const number = whole.replace(/\B(?=(\d{3})+$)/g, "\u202f") + (part ? `.${part}` : "");
    return `${rows[row]} · ${columns[column]}\n${number} ${units[row] ?? units[0]}`;
  };
}
)js";

}  // namespace hetplan::draw::detail
