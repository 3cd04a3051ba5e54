// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A request_handler chosen at run time.

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

#include <hetplan/core/error.hpp>
#include <hetplan/serve/request_handler.hpp>

namespace hetplan::serve {

/// Holds any request_handler; copies share it and what it remembers.
/// Source  ours.
class any_request_handler {
 public:
  any_request_handler() = default;
  template <class H>
    requires(!std::same_as<std::remove_cvref_t<H>, any_request_handler>)
  any_request_handler(H&& handler)  // NOLINT(bugprone-forwarding-reference-overload): every handler converts
      : handler_(std::make_shared<held<std::remove_cvref_t<H>>>(std::forward<H>(handler))) {
    static_assert(check_request_handler<std::remove_cvref_t<H>>());
  }

  explicit operator bool() const { return handler_ != nullptr; }
  /// Throws invalid_input where it holds none.
  [[nodiscard]] decision handle(const pending_request& r, const server_view& here) {
    if (handler_ == nullptr) throw invalid_input("any_request_handler: holds no handler; expected one, such as serve_locally{}");
    return handler_->handle(r, here);
  }

 private:
  struct base {
    virtual ~base() = default;
    [[nodiscard]] virtual decision handle(const pending_request& r, const server_view& here) = 0;
  };
  template <class H>
  struct held final : base {
    template <class T>
    explicit held(T&& h) : handler(std::forward<T>(h)) {}
    [[nodiscard]] decision handle(const pending_request& r, const server_view& here) override { return handler.handle(r, here); }
    H handler;
  };
  std::shared_ptr<base> handler_;
};

}  // namespace hetplan::serve
