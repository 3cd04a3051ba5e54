// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Small integers with a meaning; names live at the doors (files, reports, errors).

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include <hetplan/core/linkage.hpp>

namespace hetplan {

/// An index into one kind of table; different kinds do not mix.
template <class Tag>
struct id {
  std::int32_t value = -1;

  constexpr id() = default;
  constexpr explicit id(std::integral auto v) : value(static_cast<std::int32_t>(v)) {}

  /// The id as a subscript of the table that it numbers.
  [[nodiscard]] constexpr std::size_t index() const { return static_cast<std::size_t>(value); }
  [[nodiscard]] constexpr bool valid() const { return value >= 0; }

  friend constexpr auto operator<=>(id, id) = default;
};

using layer_id = id<struct layer_tag>;
using device_id = id<struct device_tag>;
using resource_id = id<struct resource_tag>;
using stage_id = id<struct stage_tag>;
using task_id = id<struct task_tag>;

}  // namespace hetplan
