// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Amounts as people write them: "900 Mbit/s", "6 GB", "200 ms", "35 W", "9.1 TFLOP/s".

#include <optional>
#include <string>
#include <string_view>

#include <hetplan/core/quantity.hpp>

namespace HETPLAN_NAMESPACE::io {

/// The powers of time [s], data [B], energy [J] and work [FLOP] of an amount; all 0: a plain number.
struct dimension {
  int time = 0;
  int data = 0;
  int energy = 0;
  int work = 0;

  [[nodiscard]] constexpr bool plain() const { return *this == dimension{}; }
  friend constexpr bool operator==(const dimension&, const dimension&) = default;
};

namespace detail {
template <class Quantity>
struct dimension_of_quantity;
template <int T, int D, int E, int W>
struct dimension_of_quantity<quantity<T, D, E, W>> {
  static constexpr dimension value{T, D, E, W};
};
}  // namespace detail

/// The dimension of a quantity type: `dimension_of<bytes_per_second>`.
template <class Quantity>
inline constexpr dimension dimension_of = detail::dimension_of_quantity<Quantity>::value;

/// What messages call the dimension.
[[nodiscard]] constexpr std::string_view to_string(const dimension& d) {
  if (d == dimension_of<seconds>) return "seconds";
  if (d == dimension_of<bytes>) return "bytes";
  if (d == dimension_of<flops>) return "FLOP";
  if (d == dimension_of<bytes_per_second>) return "bytes/s";
  if (d == dimension_of<flops_per_second>) return "FLOP/s";
  if (d == dimension_of<joules>) return "joules";
  if (d == dimension_of<watts>) return "watts (J/s)";
  if (d == dimension_of<joules_per_byte>) return "joules/byte";
  return "a number";
}

/// An amount that was read from text: its SI value, or nothing and perhaps what the writer meant.
struct parsed_quantity {
  std::optional<double> value = {};
  std::string meant = {};  ///< the whole text with a correct unit; "" = no idea
};

/// Reads number, optional space, optional prefix, unit, optional "/s" or "/B" as an amount of dimension d.
///
/// A decimal prefix moves the decimal point before the number is rounded, so "200 ms" is exactly 0.2 and
/// "600 Mbit/s" exactly 600e6 / 8. Case matters: "Mb" is nothing, and `meant` then says "Mbit". So are prefixes that make
/// no sense: less than one bit, byte or FLOP, more than 1000 s, any of min and h; "600 mbit/s" means "600 Mbit/s".
/// Independent of the locale. A plain dimension has no unit, so no text is one.
[[nodiscard]] parsed_quantity parse_quantity(std::string_view text, const dimension& d);

}  // namespace HETPLAN_NAMESPACE::io

#ifndef HETPLAN_COMPILED
#include <hetplan/io/units.ipp>
#endif
