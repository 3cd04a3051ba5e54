// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Linear least squares with bounds. Definitions need Eigen (hetplan::fit).

#include <span>
#include <vector>

namespace hetplan::fit {

/// Returns the x between two bounds that minimises |a x - b|.
///
/// @param a      rows x unknowns, row by row; its columns are independent, else one of several minima is returned.
/// @param b      rows.   @param lower, upper  by unknown, lower finite and <= upper; upper may be infinite.
/// Complexity    about unknowns QR decompositions of rows x unknowns.
/// Throws        invalid_input (sizes that do not match, bounds out of order).
/// Determinism   ties: the unknown of the smaller index.
/// Source        Lawson and Hanson, Solving Least Squares Problems, 1974, ch. 23 (NNLS); with upper bounds: Stark and Parker, 1995.
[[nodiscard]] std::vector<double> bounded_least_squares(std::span<const double> a, std::span<const double> b, std::span<const double> lower,
                                                        std::span<const double> upper);

/// Returns how much of a column no combination of other columns makes up for: the norm of its part that is orthogonal to them.
///
/// @param columns  rows x count, column by column; may be empty and dependent.   @param column  rows.
/// @param shares   gets by column its part in the combination that comes nearest, the shortest such one (by singular values).
[[nodiscard]] double distinct_part(std::span<const double> columns, std::span<const double> column, std::vector<double>& shares);

}  // namespace hetplan::fit

#ifndef HETPLAN_SEPARATE
#include <hetplan/fit/bounded_least_squares.ipp>
#endif
