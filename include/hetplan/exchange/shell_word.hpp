// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Names in command lines that people paste.

#include <string>
#include <string_view>

#include <hetplan/core/linkage.hpp>

namespace hetplan::exchange {

/// The text as one word of a POSIX shell: as it is where no character means anything to the shell, else between single quotes.
///
/// Source  POSIX.1-2017, Shell Command Language, section 2.2, Quoting.
[[nodiscard]] std::string shell_word(std::string_view text);

}  // namespace hetplan::exchange

#ifndef HETPLAN_COMPILED
#include <hetplan/exchange/shell_word.ipp>
#endif
