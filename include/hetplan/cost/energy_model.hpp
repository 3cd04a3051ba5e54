// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The door for users' energy models, and the two that ship.

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

/// What a device did in one run.
struct device_usage {
  seconds total = {};  ///< T of the run
  seconds busy = {};   ///< computing, 0 <= busy <= total
  bytes sent = {};     ///< payload
  bytes received = {};
};

template <class M>
concept charges_energy = requires(const M& m, const device_usage& u, const device& d) {
  { m.energy(u, d) } -> std::same_as<joules>;  // finite, >= 0, non-decreasing in every part of the usage; pure
};

/// Joules of one device over one run. Asked once per run for each device that the plan uses, a parameter server among them; others cost
/// nothing.
///
/// * Finite and >= 0, or `invalid_model`. One question at a time, whatever the threads. `total` is 0 only where a whole run takes no
///   time.
/// * The search sees any model as a straight line, `slopes_of`: it asks four times about a run of one second. The simulator asks the
///   model itself, so a curved one, such as `measured_power`, orders the plans that a search found and not those that it left out.
///
/// Ships: `linear_power` (idle, active, joules per byte; the default), `measured_power` (watts against busy share, by kind of device),
/// `any_energy_model` (chosen at run time).
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

/// Asks the model and checks the answer. Throws invalid_model, naming the device and what it did.
template <energy_model M>
[[nodiscard]] joules checked_energy(const M& model, const device_usage& u, const device& d) {
  const joules spent = model.energy(u, d);
  if (!(spent.value() >= 0) || !is_finite(spent)) detail::refuse_energy(spent, u, d);
  return spent;
}

/// P_idle T + (P_active - P_idle) busy + send bytes_sent + receive bytes_received, from the device's power profile.
struct linear_power {
  [[nodiscard]] joules energy(const device_usage& u, const device& d) const;
};

/// Measured watts against the busy share, per device kind, piecewise linear between the points and
/// constant outside them; a kind without a table draws linear_power. Radio energy as in linear_power.
///
/// Throws  invalid_model where the shares of a table do not ascend.
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

/// What an energy model charges per second and per byte: that of linear_power, for any other model the straight line
/// between an idle and a busy device. Planners estimate with it; only the simulator asks the model itself.
struct energy_slopes {
  double idle_W = 0;  ///< per second of the run
  double busy_W = 0;  ///< more per second of work
  double send_J_per_byte = 0;
  double receive_J_per_byte = 0;

  friend bool operator==(const energy_slopes&, const energy_slopes&) = default;
};

/// Asks about a run of one second: at 0 s a model that reads shares or rates divides by 0.
///
/// Throws invalid_model where an answer is not finite or negative, or falls as the usage grows.
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

// An energy model chosen at run time.

/// Holds any energy model by value; copies share it (models are pure). By default linear_power, what files mean.
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
