// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Prefetching, and an allocator with huge pages, for large tables with random access.

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

#include <hetplan/core/version.hpp>

namespace hetplan {

/// Starts to load the cache line at an address that will be read soon. Any address is allowed. g++ removes calls of a function that
/// only prefetches; the empty asm statement counts as a side effect and keeps them.
inline void prefetch(const void* at) {
  __builtin_prefetch(at);
  asm volatile("" : : "r"(at));
}

}  // namespace hetplan

#if defined(__GLIBC__)
// Declared as in <sys/mman.h>, whose macros break other libraries' headers (MAP_TYPE breaks that of ONNX).
extern "C" int madvise(void* at, std::size_t bytes, int advice) noexcept;
#endif

namespace hetplan {

/// Allocator that requests huge pages for large blocks: with 4 kB pages, most random reads of a 100 MB table also miss the TLB.
/// Elements without an initial value are not written, so that their pages exist only once they are used.
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
    madvise(at, n * sizeof(T), huge_pages);  // a hint: affects only the speed
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
