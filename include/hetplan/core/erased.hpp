// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Type erasure of doors: how an `any_X` holds any X that is given at run time.

#include <memory>
#include <utility>

#include <hetplan/core/version.hpp>

namespace hetplan {

/// An object of any type and the functions that call it. Copies share the object, which dies with the last of them. An empty one
/// is false, has a null object and must not be called.
///
/// @tparam Calls  an aggregate of pointers to functions that take the object first, as `void*`: `double (*score)(void*, double)`. Who
///                erases an object of type T makes them of lambdas such as
///                    `[](void* o, auto... a) { return as<const T>(o).score(a...); }`
template <class Calls>
class erased {
 public:
  erased() = default;
  template <class T>
  erased(T object, const Calls& calls) : object_(std::make_shared<T>(std::move(object))), calls_(calls) {}

  explicit operator bool() const { return object_ != nullptr; }
  /// A call: `held->score(held.get(), 1.0)`.
  const Calls* operator->() const { return &calls_; }
  [[nodiscard]] void* get() const { return object_.get(); }

 private:
  std::shared_ptr<void> object_;
  Calls calls_ = {};
};

/// The object in a function of erased's Calls.
template <class T>
[[nodiscard]] T& as(void* object) {
  return *static_cast<T*>(object);
}

}  // namespace hetplan
