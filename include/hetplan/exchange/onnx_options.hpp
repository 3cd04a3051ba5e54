// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a reader of ONNX files has to be told.

#include <map>
#include <optional>
#include <string>

#include <hetplan/core/version.hpp>

namespace hetplan::exchange {

struct onnx_options {
  std::map<std::string, long long> dimensions = {};  ///< sizes of dynamic axes, by the names that the file gives them; or "INPUT[AXIS]"
  std::string name = "";                             ///< of the model; "": that of the file
  /// Do operators If whose condition only a run can know take their first branch? By their names, or those of their first outputs; "" is
  /// all others. One that is not named takes the branch that computes more.
  std::map<std::string, bool> conditions = {};
  /// Tokens of a sample, in a language model; 1 where it is not given, which is said where an axis is called like a sequence.
  std::optional<int> tokens_per_sample = {};
};

}  // namespace hetplan::exchange
