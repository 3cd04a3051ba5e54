// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A network sharing chosen at run time.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <hetplan/problem/network_sharing.hpp>

namespace hetplan {

/// Holds any network sharing by value, as it is before a run; a copy copies it, so that each run has its own. Copies run on several
/// threads at once. One virtual call per question. Of nothing: there is none.
class any_network_sharing {
 public:
  any_network_sharing() = default;
  template <class S>
    requires(!std::same_as<S, any_network_sharing>)
  any_network_sharing(S sharing) {
    static_assert(check_network_sharing<S>());
    static_assert(std::copy_constructible<S>, "network_sharing needs: a copy constructor, for each run has its own");
    if constexpr (network_sharing<S> && std::copy_constructible<S>) sharing_ = std::make_unique<holder<S>>(std::move(sharing));
  }
  any_network_sharing(const any_network_sharing& other) : sharing_(other.sharing_ ? other.sharing_->copy() : nullptr) {}
  any_network_sharing(any_network_sharing&&) = default;
  any_network_sharing& operator=(any_network_sharing other) noexcept {
    sharing_ = std::move(other.sharing_);
    return *this;
  }
  ~any_network_sharing() = default;

  explicit operator bool() const { return sharing_ != nullptr; }
  /// Does it have a set_capacity?
  [[nodiscard]] bool hears_of_capacities() const { return sharing_->hears_of_capacities(); }

  [[nodiscard]] route_access access() const { return sharing_->access(); }
  void start(double now_s, std::uint32_t number, const tasks::transfer& t, std::span<const resource_use> route) {
    sharing_->start(now_s, number, t, route);
  }
  void set_capacity(std::size_t resource, double capacity) { sharing_->set_capacity(resource, capacity); }
  void update(double now_s, const rate_changed& changed) { sharing_->update(now_s, changed); }
  [[nodiscard]] double next_end() { return sharing_->next_end(); }
  void finish_until(double time_s, const transfer_finished& finished) { sharing_->finish_until(time_s, finished); }

 private:
  struct interface {
    virtual ~interface() = default;
    [[nodiscard]] virtual std::unique_ptr<interface> copy() const = 0;
    [[nodiscard]] virtual bool hears_of_capacities() const = 0;
    [[nodiscard]] virtual route_access access() const = 0;
    virtual void start(double now_s, std::uint32_t number, const tasks::transfer& t, std::span<const resource_use> route) = 0;
    virtual void set_capacity(std::size_t resource, double capacity) = 0;
    virtual void update(double now_s, const rate_changed& changed) = 0;
    [[nodiscard]] virtual double next_end() = 0;
    virtual void finish_until(double time_s, const transfer_finished& finished) = 0;
  };
  template <class S>
  struct holder final : interface {
    explicit holder(S s) : sharing(std::move(s)) {}
    [[nodiscard]] std::unique_ptr<interface> copy() const override { return std::make_unique<holder>(sharing); }
    [[nodiscard]] bool hears_of_capacities() const override { return follows_capacities<S>; }
    [[nodiscard]] route_access access() const override { return access_of(sharing); }
    void start(double now_s, std::uint32_t number, const tasks::transfer& t, std::span<const resource_use> route) override {
      sharing.start(now_s, number, t, route);
    }
    void set_capacity([[maybe_unused]] std::size_t resource, [[maybe_unused]] double capacity) override {
      if constexpr (follows_capacities<S>) sharing.set_capacity(resource, capacity);
    }
    void update(double now_s, const rate_changed& changed) override { sharing.update(now_s, changed); }
    [[nodiscard]] double next_end() override { return sharing.next_end(); }
    void finish_until(double time_s, const transfer_finished& finished) override { sharing.finish_until(time_s, finished); }
    S sharing;
  };
  std::unique_ptr<interface> sharing_;
};

static_assert(check_network_sharing<any_network_sharing>());

}  // namespace hetplan
