// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Tables of other projects: the columns that are needed, whatever else they have.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <hetplan/io/csv_lines.hpp>

namespace hetplan::exchange {

/// Throws invalid_input where a text is what a well-known program has compressed.
void require_text(std::string_view text, const std::string& file);

/// The lines of a table of which these columns are read; the first `needed` of them must be there, others are let be.
///
/// Throws  invalid_input that names the file: what require_text and io::csv_lines throw.
[[nodiscard]] io::csv_lines foreign_table(std::string_view text, const std::string& file, std::span<const std::string_view> columns,
                                          std::size_t needed);

}  // namespace hetplan::exchange

#ifndef HETPLAN_COMPILED
#include <hetplan/exchange/foreign_table.ipp>
#endif
