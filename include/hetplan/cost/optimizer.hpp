// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Optimizers by name, and what training holds of each parameter under them.

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace hetplan {

/// Optimizers as PyTorch (fused kernels) and bitsandbytes run them. `amp`: fp32 weights under autocast.
enum class optimizer { adamw, adamw_amp, adamw_8bit, sgd, sgd_amp, sgd_momentum, sgd_momentum_amp };

inline constexpr std::array<std::pair<std::string_view, optimizer>, 7> optimizers{{{"adamw", optimizer::adamw},
                                                                                   {"adamw-amp", optimizer::adamw_amp},
                                                                                   {"adamw-8bit", optimizer::adamw_8bit},
                                                                                   {"sgd", optimizer::sgd},
                                                                                   {"sgd-amp", optimizer::sgd_amp},
                                                                                   {"sgd-momentum", optimizer::sgd_momentum},
                                                                                   {"sgd-momentum-amp", optimizer::sgd_momentum_amp}}};

[[nodiscard]] constexpr std::string_view to_string(optimizer o) { return optimizers[static_cast<std::size_t>(o)].first; }

/// Bytes that training holds of weights (or of one parameter).
struct trained_bytes {
  double weights = 0;
  double copy = 0;  ///< autocast: the weights once more in low precision, which forwards and backwards read
  double gradients = 0;
  double state = 0;  ///< the optimizer's

  [[nodiscard]] constexpr double all() const { return weights + copy + gradients + state; }
};

/// Returns the bytes of a trainable parameter of `b` bytes.
///
/// Moments are in the parameter's format. 8-bit moments have one fp32 scale for each 256 numbers.
/// Source  semantics, section 2; Dettmers et al., 8-bit optimizers via block-wise quantization (2022).
[[nodiscard]] constexpr trained_bytes bytes_of_parameter(optimizer o, double b) {
  constexpr double fp32 = 4, low = 2;
  switch (o) {
    case optimizer::adamw: return {b, 0, b, 2 * b};
    case optimizer::adamw_amp: return {fp32, low, fp32, 2 * fp32};
    case optimizer::adamw_8bit: return {b, 0, b, 2 * (1 + fp32 / 256)};
    case optimizer::sgd: return {b, 0, b, 0};
    case optimizer::sgd_amp: return {fp32, low, fp32, 0};
    case optimizer::sgd_momentum: return {b, 0, b, b};
    case optimizer::sgd_momentum_amp: break;
  }
  return {fp32, low, fp32, fp32};
}

}  // namespace hetplan
