// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/foreign_table.hpp>

#include <array>
#include <utility>

#include <hetplan/io/file.hpp>

namespace hetplan::exchange {

HETPLAN_INLINE void require_text(std::string_view text, const std::string& file) {
  // What files begin with that these programs have made.
  constexpr std::array<std::pair<std::string_view, const char*>, 3> compressed{
      {{"\xFD\x37zXZ", "xz"}, {"\x1F\x8B", "gzip"}, {"\x28\xB5\x2F\xFD", "zstd"}}};
  for (const auto& [begin, program] : compressed) {
    if (text.starts_with(begin))
      io::detail::fail_file(file, std::string("expected text, got what ") + program + " has compressed; decompress it first");
  }
}

HETPLAN_INLINE io::csv_lines foreign_table(std::string_view text, const std::string& file, std::span<const std::string_view> columns,
                                           std::size_t needed) {
  require_text(text, file);
  return {text, file, columns, needed, io::other_columns::let_be};
}

}  // namespace hetplan::exchange
