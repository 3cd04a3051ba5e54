// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Options of the ONNX reader.

#include <map>
#include <optional>
#include <string>

#include <hetplan/core/version.hpp>

namespace hetplan::exchange {

struct onnx_options {
  std::map<std::string, long long> dimensions = {};  ///< sizes of dynamic axes by their names in the file, or by "INPUT[AXIS]"
  std::string name = "";                             ///< of the model; "": the file's name
  /// Branches of operators If with a condition known only at run time, true for then_branch. Keys are names of operators or of their first
  /// outputs; "" stands for all others. By default the branch with more FLOP counts.
  std::map<std::string, bool> conditions = {};
  /// Tokens per sample of a language model, 1 by default. The default is reported if the name of an axis suggests a sequence.
  std::optional<int> tokens_per_sample = {};
};

}  // namespace hetplan::exchange
