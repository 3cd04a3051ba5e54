// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Energy models: the concept, and the models that ship.

#include <cmath>
#include <concepts>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/cluster/device.hpp>
#include <hetplan/core/erased.hpp>
#include <hetplan/core/error.hpp>

namespace hetplan {

/// Activity of a device in one run.
struct device_usage {
  seconds total = {};  ///< T of the run
  seconds busy = {};   ///< computing, 0 <= busy <= total
  bytes sent = {};     ///< payload
  bytes received = {};
  seconds memory_bound = {};  ///< 0 <= memory_bound <= busy: memory is the limit; told for devices with a power.memory of their own
};

template <class M>
concept charges_energy = requires(const M& m, const device_usage& u, const device& d) {
  { m.energy(u, d) } -> std::same_as<joules>;  // finite, >= 0, non-decreasing in all of the usage but memory_bound; pure
};

/// Joules of one device over one run. Called once per run for each device in use, also a parameter server; others cost nothing.
///
/// * Finite and >= 0, or `invalid_model`. Called by one thread at a time. `total` is 0 only if the whole run takes no time.
/// * The search replaces any model by a linear one, `slopes_of`, from four calls about a run of one second, in which no work is bound by
///   memory. The simulator calls the model itself, so a nonlinear one, such as `measured_power`, or a power for memory-bound work, ranks
///   the plans that a search found, but not those that it left out.
/// * A proof that no plan keeps an energy budget takes the less of what work draws if all of it or none is bound by memory.
///
/// Ships: `linear_power` (idle, active, memory-bound, joules per byte; the default), `measured_power` (watts by busy share and kind of
/// device), `any_energy_model` (chosen at run time).
template <class M>
concept energy_model = charges_energy<M>;

namespace detail {
[[noreturn]] void refuse_energy(joules given, const device_usage& u, const device& d);
}

template <class M>
consteval bool check_energy_model() {
  static_assert(charges_energy<M>,
                "energy_model needs: hetplan::joules energy(const hetplan::device_usage&, const hetplan::device&) const");
  return energy_model<M>;
}

/// Returns the model's energy after checks. Throws invalid_model, naming the device and its usage.
template <energy_model M>
[[nodiscard]] joules checked_energy(const M& model, const device_usage& u, const device& d) {
  const joules spent = model.energy(u, d);
  if (!(spent.value() >= 0) || !is_finite(spent)) detail::refuse_energy(spent, u, d);
  return spent;
}

/// Linear model from the device's power profile: P_idle T + (P_active - P_idle) busy + send bytes_sent + receive bytes_received, with
/// P_memory in place of P_active while memory is the limit of the work.
/// Source  semantics, section 8.
struct linear_power {
  [[nodiscard]] joules energy(const device_usage& u, const device& d) const;
};

/// Measured watts by busy share and device kind, piecewise linear between the points and constant outside them. Kinds without a table,
/// and the energy per byte, are as in linear_power.
///
/// Throws  invalid_model if the shares of a table do not ascend.
struct measured_power {
  struct point {
    double busy_share;  ///< ascending within a table, in [0, 1]
    watts draw;
  };
  std::map<std::string, std::vector<point>> tables;  ///< by device kind

  [[nodiscard]] joules energy(const device_usage& u, const device& d) const;

 private:
  [[nodiscard]] static watts draw(const std::vector<point>& table, double share);
};

/// Linear energy model that planners estimate with: energy per second and per byte. Exact for linear_power where memory-bound work draws
/// P_active; of any other model, the line between an idle and a busy device. Only the simulator calls the model itself.
struct energy_slopes {
  double idle_W = 0;  ///< per second of the run
  double busy_W = 0;  ///< additional, per second of work
  double send_J_per_byte = 0;
  double receive_J_per_byte = 0;

  friend bool operator==(const energy_slopes&, const energy_slopes&) = default;
};

/// Returns the slopes of a model from runs of one second: at 0 s, models that compute shares or rates divide by 0.
/// Throws invalid_model if a result is negative or not finite, or falls as the usage grows.
template <energy_model M>
[[nodiscard]] energy_slopes slopes_of(const M& model, const device& d) {
  constexpr seconds second(1);
  constexpr bytes gigabyte(1e9);
  const auto ask = [&](const device_usage& u) { return checked_energy(model, u, d).value(); };
  const double idle = ask({.total = second});
  const energy_slopes s{idle, ask({.total = second, .busy = second}) - idle,
                        (ask({.total = second, .sent = gigabyte}) - idle) / gigabyte.value(),
                        (ask({.total = second, .received = gigabyte}) - idle) / gigabyte.value()};
  for (const double x : {s.idle_W, s.busy_W, s.send_J_per_byte, s.receive_J_per_byte}) {
    if (!(x >= 0) || !std::isfinite(x)) {
      throw invalid_model("energy model: energy(device \"" + d.name + "\") rises by " + to_text(x) +
                          " J per unit of one part of the usage; expected finite >= 0");
    }
  }
  return s;
}

static_assert(check_energy_model<linear_power>() && check_energy_model<measured_power>());

/// Type-erased energy model, held by value and shared by copies (models are pure). One indirect call per question. Default: linear_power.
class any_energy_model {
 public:
  any_energy_model() : any_energy_model(linear_power{}) {}
  template <class M>
    requires(!std::same_as<M, any_energy_model>)
  any_energy_model(M model) {
    static_assert(check_energy_model<M>());
    if constexpr (energy_model<M>) model_ = {std::move(model), {.energy = [](void* m, auto... a) { return as<const M>(m).energy(a...); }}};
  }

  [[nodiscard]] joules energy(const device_usage& u, const device& d) const {
    const std::lock_guard lock(*one_at_a_time_);
    return model_->energy(model_.get(), u, d);
  }

 private:
  struct calls {
    joules (*energy)(void*, const device_usage&, const device&);
  };
  erased<calls> model_;
  std::shared_ptr<std::mutex> one_at_a_time_ = std::make_shared<std::mutex>();
};

static_assert(check_energy_model<any_energy_model>());

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/cost/energy_model.ipp>
#endif
