// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A door that takes a callable takes one that holds something: an empty std::function or a null pointer could not be called.

#include <functional>
#include <string>

#include <hetplan/core/error.hpp>

namespace hetplan {

/// Throws invalid_input where it holds none; `who` was given it and needs `expected`.
template <class Signature>
void require_function(const std::function<Signature>& f, const std::string& who, const char* expected) {
  if (!f) throw invalid_input(who + ": was given an empty function or a null pointer; expected " + expected);
}

}  // namespace hetplan
