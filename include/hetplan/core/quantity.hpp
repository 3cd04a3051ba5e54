// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Typed ids, and quantities whose dimension is checked at compile time: SI units inside, no cost at run time.

#include <cmath>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include <hetplan/core/version.hpp>

namespace hetplan {

/// Typed index into one kind of table; kinds do not mix. Names appear only in files, reports and errors.
template <class Tag>
struct id {
  std::int32_t value = -1;

  constexpr id() = default;
  constexpr explicit id(std::integral auto v) : value(static_cast<std::int32_t>(v)) {}

  [[nodiscard]] constexpr std::size_t index() const { return static_cast<std::size_t>(value); }
  [[nodiscard]] constexpr bool valid() const { return value >= 0; }

  friend constexpr auto operator<=>(id, id) = default;
};

using layer_id = id<struct layer_tag>;
using device_id = id<struct device_tag>;
using resource_id = id<struct resource_tag>;
using stage_id = id<struct stage_tag>;
using task_id = id<struct task_tag>;

/// Double with a dimension: time [s], data [B], energy [J] and work [FLOP] to the given powers. Equal dimensions add
/// and compare; products and quotients combine dimensions; a dimensionless quotient is a plain double. Kernels take
/// `.value()` once on entry and work on doubles.
template <int Time, int Data, int Energy, int Work>
class quantity {
 public:
  constexpr quantity() = default;
  constexpr explicit quantity(double si) : si_(si) {}

  /// Returns the number in SI units (s, B, J, FLOP and their products).
  [[nodiscard]] constexpr double value() const { return si_; }

  friend constexpr auto operator<=>(quantity, quantity) = default;
  friend constexpr quantity operator+(quantity a, quantity b) { return quantity(a.si_ + b.si_); }
  friend constexpr quantity operator-(quantity a, quantity b) { return quantity(a.si_ - b.si_); }
  friend constexpr quantity operator-(quantity a) { return quantity(-a.si_); }
  friend constexpr quantity operator*(quantity a, double k) { return quantity(a.si_ * k); }
  friend constexpr quantity operator*(double k, quantity a) { return quantity(k * a.si_); }
  friend constexpr quantity operator/(quantity a, double k) { return quantity(a.si_ / k); }
  friend constexpr double operator/(quantity a, quantity b) { return a.si_ / b.si_; }
  constexpr quantity& operator+=(quantity b) {
    si_ += b.si_;
    return *this;
  }
  constexpr quantity& operator-=(quantity b) {
    si_ -= b.si_;
    return *this;
  }
  constexpr quantity& operator*=(double k) {
    si_ *= k;
    return *this;
  }

 private:
  double si_ = 0;
};

template <int T1, int D1, int E1, int W1, int T2, int D2, int E2, int W2>
constexpr auto operator*(quantity<T1, D1, E1, W1> a, quantity<T2, D2, E2, W2> b) {
  if constexpr (T1 + T2 == 0 && D1 + D2 == 0 && E1 + E2 == 0 && W1 + W2 == 0) {
    return a.value() * b.value();
  } else {
    return quantity<T1 + T2, D1 + D2, E1 + E2, W1 + W2>(a.value() * b.value());
  }
}

template <int T1, int D1, int E1, int W1, int T2, int D2, int E2, int W2>
  requires(T1 != T2 || D1 != D2 || E1 != E2 || W1 != W2)
constexpr auto operator/(quantity<T1, D1, E1, W1> a, quantity<T2, D2, E2, W2> b) {
  return quantity<T1 - T2, D1 - D2, E1 - E2, W1 - W2>(a.value() / b.value());
}

template <int T, int D, int E, int W>
constexpr auto operator/(double k, quantity<T, D, E, W> a) {
  return quantity<-T, -D, -E, -W>(k / a.value());
}

using seconds = quantity<1, 0, 0, 0>;
using bytes = quantity<0, 1, 0, 0>;
using joules = quantity<0, 0, 1, 0>;
using flops = quantity<0, 0, 0, 1>;  ///< amount of work [FLOP], not a rate
using watts = quantity<-1, 0, 1, 0>;
using bytes_per_second = quantity<-1, 1, 0, 0>;
using flops_per_second = quantity<-1, 0, 0, 1>;
using joules_per_byte = quantity<0, -1, 1, 0>;

template <int T, int D, int E, int W>
[[nodiscard]] inline bool is_finite(quantity<T, D, E, W> q) {
  return std::isfinite(q.value());
}

/// Unit literals: `5_ms`, `3_GiB`, `900_Mbit_per_s`, `9.1_TFLOP_per_s`, `35_W`.
inline namespace literals {
#define HETPLAN_LITERAL(suffix, type, factor)                                                           \
  constexpr type operator""_##suffix(long double v) { return type(static_cast<double>(v) * (factor)); } \
  constexpr type operator""_##suffix(unsigned long long v) { return type(static_cast<double>(v) * (factor)); }
HETPLAN_LITERAL(s, seconds, 1.0)
HETPLAN_LITERAL(ms, seconds, 1e-3)
HETPLAN_LITERAL(us, seconds, 1e-6)
HETPLAN_LITERAL(B, bytes, 1.0)
HETPLAN_LITERAL(kB, bytes, 1e3)
HETPLAN_LITERAL(MB, bytes, 1e6)
HETPLAN_LITERAL(GB, bytes, 1e9)
HETPLAN_LITERAL(MiB, bytes, 1048576.0)
HETPLAN_LITERAL(GiB, bytes, 1073741824.0)
HETPLAN_LITERAL(J, joules, 1.0)
HETPLAN_LITERAL(W, watts, 1.0)
HETPLAN_LITERAL(J_per_B, joules_per_byte, 1.0)
HETPLAN_LITERAL(FLOP, flops, 1.0)
HETPLAN_LITERAL(MFLOP, flops, 1e6)
HETPLAN_LITERAL(GFLOP, flops, 1e9)
HETPLAN_LITERAL(TFLOP, flops, 1e12)
HETPLAN_LITERAL(GFLOP_per_s, flops_per_second, 1e9)
HETPLAN_LITERAL(TFLOP_per_s, flops_per_second, 1e12)
HETPLAN_LITERAL(Mbit_per_s, bytes_per_second, 1e6 / 8)
HETPLAN_LITERAL(Gbit_per_s, bytes_per_second, 1e9 / 8)
HETPLAN_LITERAL(MB_per_s, bytes_per_second, 1e6)
HETPLAN_LITERAL(GB_per_s, bytes_per_second, 1e9)
#undef HETPLAN_LITERAL
}  // namespace literals

}  // namespace hetplan
