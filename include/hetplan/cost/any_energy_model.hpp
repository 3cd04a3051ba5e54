// SPDX-License-Identifier: BSL-1.0
#pragma once
/// An energy model chosen at run time.

#include <concepts>
#include <memory>
#include <mutex>
#include <utility>

#include <hetplan/cost/energy_model.hpp>

namespace hetplan {

/// Holds any energy model by value; copies share it (models are pure). One virtual call per question. By default linear_power, what files
/// mean.
class any_energy_model {
 public:
  any_energy_model() : any_energy_model(linear_power{}) {}
  template <class M>
    requires(!std::same_as<M, any_energy_model>)
  any_energy_model(M model) {
    static_assert(check_energy_model<M>());
    if constexpr (energy_model<M>) model_ = std::make_shared<holder<M>>(std::move(model));
  }

  [[nodiscard]] joules energy(const device_usage& u, const device& d) const { return model_->energy(u, d); }

 private:
  struct interface {
    virtual ~interface() = default;
    [[nodiscard]] virtual joules energy(const device_usage&, const device&) const = 0;
  };
  template <class M>
  struct holder final : interface {
    explicit holder(M m) : model(std::move(m)) {}
    [[nodiscard]] joules energy(const device_usage& u, const device& d) const override {
      const std::lock_guard lock(one_at_a_time);
      return model.energy(u, d);
    }
    M model;
    mutable std::mutex one_at_a_time = {};
  };
  std::shared_ptr<const interface> model_;
};

static_assert(check_energy_model<any_energy_model>());

}  // namespace hetplan
