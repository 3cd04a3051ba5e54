// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A service_time chosen at run time.

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

#include <hetplan/serve/service_time.hpp>

namespace hetplan::serve {

/// Holds any service_time; copies share it. Every answer of the model is checked where it is asked: see instance_times.
/// Source  ours.
class any_service_time {
 public:
  template <class M>
    requires(!std::same_as<std::remove_cvref_t<M>, any_service_time>)
  any_service_time(M&& model)  // NOLINT(bugprone-forwarding-reference-overload): every model converts
      : model_(std::make_shared<held<std::remove_cvref_t<M>>>(std::forward<M>(model))) {
    static_assert(check_service_time<std::remove_cvref_t<M>>());
  }

  [[nodiscard]] seconds pass(const service_run& r, const batch_load& b) const { return model_->pass(r, b); }
  [[nodiscard]] seconds step(const service_run& r, int requests) const { return model_->step(r, requests); }
  [[nodiscard]] int largest_batch(const service_run& r) const { return model_->largest_batch(r); }

 private:
  struct base {
    virtual ~base() = default;
    [[nodiscard]] virtual seconds pass(const service_run& r, const batch_load& b) const = 0;
    [[nodiscard]] virtual seconds step(const service_run& r, int requests) const = 0;
    [[nodiscard]] virtual int largest_batch(const service_run& r) const = 0;
  };
  template <class M>
  struct held final : base {
    template <class T>
    explicit held(T&& m) : model(std::forward<T>(m)) {}
    [[nodiscard]] seconds pass(const service_run& r, const batch_load& b) const override { return model.pass(r, b); }
    [[nodiscard]] seconds step(const service_run& r, int requests) const override { return model.step(r, requests); }
    [[nodiscard]] int largest_batch(const service_run& r) const override { return model.largest_batch(r); }
    M model;
  };
  std::shared_ptr<const base> model_;
};

}  // namespace hetplan::serve
