// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/galvatron_profile.hpp>

#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

#include <hetplan/core/error.hpp>

namespace hetplan::exchange {

namespace detail {

inline constexpr int most_galvatron_types = 64;
inline constexpr double galvatron_megabyte = 1048576;

/// What a key says: "layertype_0_bsz8_seq512", "layertype_other_0_bsz1_seq[512,512]", "layertype_1_sp".
struct galvatron_key {
  std::optional<int> type;  ///< none: others
  int batch = 0;
  std::string sequence = "";
  bool sequence_parallel = false;
};

[[nodiscard]] HETPLAN_INLINE std::optional<int> take_integer(std::string_view& text) {
  int v = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (code != std::errc() || v < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return v;
}

[[nodiscard]] HETPLAN_INLINE bool take_word(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

/// Reads a key that begins with "layertype_"; none if it says something else.
[[nodiscard]] HETPLAN_INLINE std::optional<galvatron_key> key_of(std::string_view text) {
  galvatron_key k;
  if (!take_word(text, "layertype_")) return std::nullopt;
  if (take_word(text, "other")) {
    if (text.starts_with("_") && !text.starts_with("_bsz")) {
      text.remove_prefix(1);
      if (!take_integer(text)) return std::nullopt;
    }
  } else {
    k.type = take_integer(text);
    if (!k.type || *k.type >= most_galvatron_types) return std::nullopt;
  }
  if (take_word(text, "_bsz")) {
    const auto batch = take_integer(text);
    if (!batch || *batch < 1) return std::nullopt;
    k.batch = *batch;
  }
  if (take_word(text, "_seq")) {
    const std::size_t end = text.starts_with("[") ? text.find(']') + 1 : text.find_first_not_of("0123456789");
    k.sequence = std::string(text.substr(0, end));
    if (k.sequence.empty()) return std::nullopt;
    text.remove_prefix(k.sequence.size());
  }
  k.sequence_parallel = take_word(text, "_sp");
  return text.empty() ? std::optional(k) : std::nullopt;
}

/// Returns the value without tensor parallelism: a number, or an object with "1".
[[nodiscard]] HETPLAN_INLINE double undivided(const io::json_node& n) {
  if (!n.is_object()) return n.number(io::range::at_least_zero);
  return foreign_object(n).at("1", "a number for degree 1").number(io::range::at_least_zero);
}

/// Calls f(sequence, object): once with "" if the object has the key, or else for each of its members.
template <class F>
void by_sequence(const io::json_node& n, std::string_view key, const F& f) {
  const foreign_object o(n, "an object");
  if (o.find(key)) return f(std::string(), o);
  for (const auto& [sequence, value] : n.members("an object")) f(std::string(sequence), foreign_object(value, "an object"));
}

/// True if the sequence lengths mean the same: "512" and "[512,512]" name the first of several types' lengths alike.
[[nodiscard]] HETPLAN_INLINE bool same_sequence(std::string_view a, std::string_view b) {
  const auto first = [](std::string_view s) {
    if (s.starts_with("[")) s.remove_prefix(1);
    return s.substr(0, s.find_first_of(",]"));
  };
  return a.empty() || b.empty() || first(a) == first(b);
}

/// Returns the entry of a sequence length, or of the only one.
template <class T>
[[nodiscard]] const T* entry_of(const std::map<std::string, T>& all, const std::string& sequence) {
  for (const auto& [s, value] : all) {
    if (s == sequence) return &value;
  }
  for (const auto& [s, value] : all) {
    if (same_sequence(s, sequence)) return &value;
  }
  return nullptr;
}

template <class T>
[[nodiscard]] const T& chosen_entry(const std::map<std::string, T>& all, const std::string& sequence, const std::string& file) {
  std::vector<std::string> names;
  for (const auto& [s, value] : all) names.push_back(s);
  if (sequence.empty() && all.size() != 1)
    throw invalid_input(escaped(file) + ": expected the choice of a sequence length (" +
                        io::shortened(io::escaped(io::joined(names)), 200) + ")");
  if (const T* found = entry_of(all, sequence)) return *found;
  throw invalid_input(escaped(file) + ": expected a sequence length of the file (" + io::shortened(io::escaped(io::joined(names)), 200) +
                      "), got " + io::in_quotes(sequence));
}

/// Returns the profile over batch sizes.
[[nodiscard]] HETPLAN_INLINE layer_profile profile_of(const galvatron_times& times, const std::string& kind, double share) {
  layer_profile p{.device_kind = kind, .batch = {}, .forward_s = {}, .backward_s = {}};
  for (const auto& [batch, seconds] : times) {
    const int b = batch == 0 ? 1 : batch;
    if (batch == 0 && times.size() > 1) continue;  // a file has one or the other
    p.batch.push_back(b);
    p.forward_s.push_back(seconds * b * share);
    p.backward_s.push_back(2 * seconds * b * share);
  }
  return proportional_beyond(std::move(p));
}

}  // namespace detail

HETPLAN_INLINE galvatron_computation read_galvatron_computation(const io::json_document& d) {
  galvatron_computation read{.file = d.file(), .layers = {}, .others = {}};
  const io::json_node root(d);
  for (const auto& [name, value] : root.members("an object of times")) {
    if (!std::string_view(name).starts_with("layertype_")) continue;
    const auto key = detail::key_of(name);
    if (!key) value.fail_with("expected a key as layertype_0_bsz8_seq512 or layertype_other_bsz8_seq512, got " + io::in_quotes(name));
    const double seconds = value.number(io::range::at_least_zero) / 1000;
    if (!key->type) {
      read.others[key->sequence].emplace(key->batch, seconds);
      continue;
    }
    auto& types = read.layers[key->sequence];
    const auto type = static_cast<std::size_t>(*key->type);
    if (types.size() <= type) types.resize(type + 1);
    types[type].emplace(key->batch, seconds);
  }
  if (read.layers.empty()) root.fail_with("expected times of a layer, such as layertype_0, got none");
  for (const auto& [sequence, types] : read.layers) {
    for (std::size_t t = 0; t < types.size(); ++t) {
      if (types[t].empty()) root.fail_with("expected times of layertype_" + std::to_string(t) + ", got none");
    }
  }
  return read;
}

HETPLAN_INLINE galvatron_memory read_galvatron_memory(const io::json_document& d) {
  galvatron_memory read{.file = d.file(), .layers = {}, .first = {}, .last = {}, .whole = {}};
  const io::json_node root(d);
  std::map<std::string, std::map<int, bool>> plain;  // types, by sequence length, that have entries without sequence parallelism
  for (const auto& [name, value] : root.members("an object of memory")) {
    if (!std::string_view(name).starts_with("layertype_")) continue;
    const auto key = detail::key_of(name);
    if (!key || !key->type) value.fail_with("expected a key as layertype_0 or layertype_0_sp, got " + io::in_quotes(name));
    detail::by_sequence(value, "parameter_size", [&](const std::string& sequence, const foreign_object& o) {
      auto& types = read.layers[sequence];
      const auto type = static_cast<std::size_t>(*key->type);
      if (types.size() <= type) types.resize(type + 1);
      bool& has_plain = plain[sequence].emplace(*key->type, false).first->second;
      if (has_plain && key->sequence_parallel) return;
      has_plain = has_plain || !key->sequence_parallel;
      galvatron_memory::layer_type& l = types[type];
      l.weights = o.number("parameter_size", io::range::at_least_zero) * detail::galvatron_megabyte;
      const foreign_object kept(o.at("tp_activation_per_bsz_dict", "an object from degree to MB"), "an object from degree to MB");
      l.kept = kept.number("1", io::range::at_least_zero) * detail::galvatron_megabyte;
      if (const auto boundary = kept.find("checkpoint"))
        l.boundary = boundary->number(io::range::at_least_zero) * detail::galvatron_megabyte;
    });
  }
  if (read.layers.empty()) root.fail_with("expected memory of a layer, such as layertype_0, got none");
  for (const auto& [sequence, types] : read.layers) {
    for (std::size_t t = 0; t < types.size(); ++t) {
      if (!plain[sequence].contains(static_cast<int>(t)))
        root.fail_with("expected memory of layertype_" + std::to_string(t) + ", got none");
    }
  }
  const auto others = [&](const std::string& name, std::map<std::string, std::pair<double, double>>& into) {
    const foreign_object top(root);
    auto found = top.find(name);
    if (!found) found = top.find(name + "_sp");
    if (!found) return;
    detail::by_sequence(*found, "model_states", [&](const std::string& sequence, const foreign_object& o) {
      into[sequence] = {detail::undivided(o.at("model_states", "MB")) * detail::galvatron_megabyte / 4,
                        detail::undivided(o.at("activation", "MB")) * detail::galvatron_megabyte};
    });
  };
  others("other_memory_pp_on_first", read.first);
  others("other_memory_pp_on_last", read.last);
  others("other_memory_pp_off", read.whole);
  return read;
}

HETPLAN_INLINE planning_graph galvatron_chain(const galvatron_computation& times, const galvatron_memory& memory,
                                              const galvatron_choice& choice, const std::string& name) {
  const auto& layers = detail::chosen_entry(times.layers, choice.sequence, times.file);
  const auto& sizes =
      detail::chosen_entry(memory.layers, choice.sequence.empty() ? times.layers.begin()->first : choice.sequence, memory.file);
  if (sizes.size() != layers.size()) {
    throw invalid_input(escaped(memory.file) + ": expected memory of the " + std::to_string(layers.size()) + " types of layers in " +
                        escaped(times.file) + ", got " + std::to_string(sizes.size()));
  }
  if (choice.layers.size() != layers.size()) {
    throw invalid_input(escaped(times.file) + ": expected a number of layers for each of " + std::to_string(layers.size()) +
                        " types, got " + std::to_string(choice.layers.size()));
  }
  std::size_t sum = 0;
  for (const int n : choice.layers) {
    if (n < 0 || n > 100'000) throw invalid_input("galvatron_chain: expected 0 to 100000 layers of a type, got " + std::to_string(n));
    sum += static_cast<std::size_t>(n);
  }
  if (sum == 0) throw invalid_input("galvatron_chain: expected at least one layer, got none");
  const std::string sequence = choice.sequence.empty() ? times.layers.begin()->first : choice.sequence;
  const auto* whole = detail::entry_of(memory.whole, sequence);
  const auto end = [&](const std::map<std::string, std::pair<double, double>>& all) {
    if (const auto* found = detail::entry_of(all, sequence)) return *found;
    return whole != nullptr ? std::pair(whole->first / 2, whole->second / 2) : std::pair(0.0, 0.0);
  };
  const auto* other_times = detail::entry_of(times.others, sequence);
  model_facts facts;
  std::string_view digits = sequence;
  if (const auto tokens = detail::take_integer(digits); tokens && *tokens > 0 && digits.empty()) facts.tokens_per_sample = *tokens;
  planning_graph_builder builder(name, facts);
  std::optional<layer_id> before;
  const auto add = [&](layer_spec s, const galvatron_times& of, double share, double boundary) {
    s.profiles.push_back(detail::profile_of(of, choice.device_kind, share));
    const layer_id id = builder.add_layer(std::move(s));
    if (choice.boundary) boundary = choice.boundary->value();
    if (before) {
      if (boundary <= 0)
        throw invalid_input(escaped(memory.file) +
                            ": expected what a checkpoint keeps, or the bytes between layers (--boundary), got neither");
      builder.add_edge(*before, id, bytes(boundary));
    }
    before = id;
  };
  const auto end_layer = [&](const char* what, const std::pair<double, double>& of) {
    return layer_spec{.name = what, .kind = what, .weight = bytes(of.first), .activation = bytes(of.second)};
  };
  const galvatron_times none{{0, 0.0}};
  const galvatron_times& between = other_times != nullptr ? *other_times : none;
  add(end_layer("first", end(memory.first)), between, 0.5, 0);
  double boundary = 0;
  for (std::size_t type = 0; type < layers.size(); ++type) {
    for (int i = 0; i < choice.layers[type]; ++i) {
      const std::string number = layers.size() > 1 ? std::to_string(type) + "." + std::to_string(i) : std::to_string(i);
      layer_spec s{.name = "layer" + number,
                   .kind = "layertype_" + std::to_string(type),
                   .weight = bytes(sizes[type].weights),
                   .activation = bytes(sizes[type].kept)};
      boundary = sizes[type].boundary;
      add(std::move(s), layers[type], 1, boundary);
    }
  }
  add(end_layer("last", end(memory.last)), between, 0.5, boundary);
  return std::move(builder).build();
}

}  // namespace hetplan::exchange
