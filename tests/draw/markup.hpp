// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Checks of pictures and pages: words and well-formedness.

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace hetplan::test {

inline std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t i = text.find(what); i != std::string::npos; i = text.find(what, i + what.size())) ++n;
  return n;
}
inline bool has(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

/// Returns the page without the contents of its style and script, whose `<` and `>` are not tags.
inline std::string markup_of(std::string page) {
  for (const std::string name : {"style", "script"}) {
    const std::string open = "<" + name + ">", close = "</" + name + ">";
    REQUIRE(count(page, open) == 1);
    REQUIRE(count(page, close) == 1);
    const std::size_t from = page.find(open) + open.size(), to = page.find(close);
    REQUIRE(from <= to);
    page.erase(from, to - from);
  }
  return page;
}

/// Returns the first fault of the markup: unclosed tags or quotes, duplicate ids, unknown entities. Returns "" if there is none.
inline std::string markup_fault(const std::string& text) {
  const std::set<std::string> never_closed{"!DOCTYPE", "meta", "br"}, references{"lt", "gt", "amp", "quot"};
  std::vector<std::string> open;
  std::set<std::string> ids;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (static_cast<unsigned char>(text[i]) < 0x20 && text[i] != '\n') return "control character";
    if (text[i] == '&') {
      const std::string name = text.substr(i + 1, text.find(';', i) - i - 1);
      const bool code = name.size() > 1 && name[0] == '#' && name.find_first_not_of("0123456789", 1) == std::string::npos;
      if (!code && !references.contains(name)) return "reference " + name.substr(0, 20);
    }
    if (text[i] == '>') return "> outside of a tag behind " + text.substr(i < 60 ? 0 : i - 60, std::min<std::size_t>(i, 60));
    if (text[i] != '<') continue;
    std::size_t end = i;
    for (bool quoted = false; end < text.size() && (quoted || text[end] != '>'); ++end) quoted = quoted != (text[end] == '"');
    if (end == text.size()) return "tag without end";
    const std::string tag = text.substr(i + 1, end - i - 1), name = tag.substr(0, tag.find_first_of(" /", 1));
    if (has(tag, "<")) return "< inside " + tag;
    if (tag[0] == '/') {
      if (open.empty() || "/" + open.back() != tag) return "closes " + tag + " in " + (open.empty() ? "nothing" : open.back());
      open.pop_back();
    } else if (tag.back() != '/' && !never_closed.contains(name)) {
      open.push_back(name);
    }
    if (const std::size_t id = tag.find(" id=\""); id != std::string::npos) {
      if (!ids.insert(tag.substr(id + 5, tag.find('"', id + 5) - id - 5)).second) return "id twice in " + tag;
    }
    i = end;
  }
  return open.empty() ? "" : "never closed: " + open.back();
}

}  // namespace hetplan::test
