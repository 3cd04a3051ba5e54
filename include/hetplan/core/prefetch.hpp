// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Fetching ahead of need.

#include <hetplan/core/linkage.hpp>

namespace hetplan {

/// Begins to fetch what stands there into the cache, for reading soon; any address will do.
///
/// g++ takes a function that does nothing but fetch for one without an effect, and leaves out its calls: the empty statement is one.
inline void prefetch(const void* at) {
  __builtin_prefetch(at);
  asm volatile("" : : "r"(at));
}

}  // namespace hetplan
