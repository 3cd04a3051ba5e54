// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Large tables that are read here and there.

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

#include <hetplan/core/version.hpp>

namespace hetplan {

// Fetching ahead of need.

/// Begins to fetch what stands there into the cache, for reading soon; any address will do.
///
/// g++ takes a function that does nothing but fetch for one without an effect, and leaves out its calls: the empty statement is one.
inline void prefetch(const void* at) {
  __builtin_prefetch(at);
  asm volatile("" : : "r"(at));
}

}  // namespace hetplan

#if defined(__GLIBC__)
// As <sys/mman.h> has it, whose macros break other libraries' headers (MAP_TYPE that of ONNX).
extern "C" int madvise(void* at, std::size_t bytes, int advice) noexcept;
#endif

namespace hetplan {

/// An allocator that asks the system for large pages where there is much to store: with those of 4 kB, most reads of a table of 100 MB
/// miss the cache of addresses as well. What has no value is not written: its pages are not there until they are.
template <class T>
struct large_pages {
  using value_type = T;

  large_pages() = default;
  template <class U>
  large_pages(const large_pages<U>&) {}  // NOLINT(google-explicit-constructor): allocators convert

  [[nodiscard]] T* allocate(std::size_t n) {
    if (n * sizeof(T) < page_bytes) return std::allocator<T>().allocate(n);
    void* const at = ::operator new(n * sizeof(T), std::align_val_t(page_bytes));
#if defined(__GLIBC__)
    constexpr int huge_pages = 14;           // MADV_HUGEPAGE
    madvise(at, n * sizeof(T), huge_pages);  // a wish: it changes nothing but the time
#endif
    return static_cast<T*>(at);
  }
  void deallocate(T* at, std::size_t n) {
    if (n * sizeof(T) < page_bytes) {
      std::allocator<T>().deallocate(at, n);
    } else {
      ::operator delete(at, std::align_val_t(page_bytes));
    }
  }
  template <class U>
  void construct(U* at) {
    ::new (static_cast<void*>(at)) U;
  }
  template <class U, class... Args>
  void construct(U* at, Args&&... args) {
    std::construct_at(at, std::forward<Args>(args)...);
  }
  friend bool operator==(const large_pages&, const large_pages&) { return true; }

 private:
  static constexpr std::size_t page_bytes = std::size_t{1} << 21;
};

}  // namespace hetplan
