// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A placement_policy chosen at run time.

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

#include <hetplan/core/error.hpp>
#include <hetplan/serve/placement_policy.hpp>

namespace hetplan::serve {

/// Holds any placement_policy; copies share it and what it remembers.
/// Source  ours.
class any_placement_policy {
 public:
  any_placement_policy() = default;
  template <class P>
    requires(!std::same_as<std::remove_cvref_t<P>, any_placement_policy>)
  any_placement_policy(P&& policy)  // NOLINT(bugprone-forwarding-reference-overload): every policy converts
      : policy_(std::make_shared<held<std::remove_cvref_t<P>>>(std::forward<P>(policy))) {
    static_assert(check_placement_policy<std::remove_cvref_t<P>>());
  }

  explicit operator bool() const { return policy_ != nullptr; }
  /// Throws invalid_input where it holds none.
  [[nodiscard]] deployment place(const placement_question& q) {
    if (policy_ == nullptr) throw invalid_input("any_placement_policy: holds no policy; expected one, such as submodular_placement{}");
    return policy_->place(q);
  }

 private:
  struct base {
    virtual ~base() = default;
    [[nodiscard]] virtual deployment place(const placement_question& q) = 0;
  };
  template <class P>
  struct held final : base {
    template <class T>
    explicit held(T&& p) : policy(std::forward<T>(p)) {}
    [[nodiscard]] deployment place(const placement_question& q) override { return policy.place(q); }
    P policy;
  };
  std::shared_ptr<base> policy_;
};

}  // namespace hetplan::serve
