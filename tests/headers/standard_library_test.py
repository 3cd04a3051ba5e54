# SPDX-License-Identifier: BSL-1.0
"""Who names something of the standard library includes its header, or a header of ours that does.

Compiling each file alone cannot find this: there much of the standard library is precompiled, and where it is not, its headers
include each other as one version of it happens to.
"""

import os
import pathlib
import re
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("HETPLAN_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
INCLUDE = SOURCE / "include"

# What each header is included for. A name stands in every header that the standard promises it in, as far as we include that.
NAMES = {
    "algorithm": """adjacent_find all_of any_of binary_search clamp copy copy_if copy_n count count_if equal fill find find_if find_if_not
        for_each is_sorted lexicographical_compare lower_bound make_heap max max_element min min_element minmax minmax_element move move_backward
        none_of nth_element
        partition_point pop_heap push_heap remove remove_if reverse rotate set_union sort stable_partition stable_sort transform
        unique upper_bound""",
    "array": "array get size",
    "atomic": "atomic",
    "bit": "bit_cast bit_floor bit_width countr_zero endian has_single_bit popcount",
    "cctype": "isalnum isalpha isdigit isspace tolower",
    "charconv": "chars_format from_chars to_chars",
    "chrono": "day duration duration_cast month nanoseconds steady_clock sys_days year year_month_day",
    "cmath": """abs ceil cos exp exp2 floor fmod frexp hypot isfinite isinf isnan ldexp llround log log10 log2 lround nan nearbyint nextafter pow
        remainder round sin sqrt trunc""",
    "compare": "strong_ordering partial_ordering",
    "concepts": "convertible_to copy_constructible derived_from integral invocable predicate same_as unsigned_integral",
    "condition_variable": "condition_variable",
    "csetjmp": "jmp_buf longjmp",
    "cstddef": "ptrdiff_t size_t",
    "cstdint": "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t",
    "cstdio": "FILE fclose ferror fflush fopen fprintf fread fwrite snprintf size_t remove",
    "cstdlib": "abort abs size_t",
    "cstring": "memchr memcpy size_t",
    "deque": "deque erase erase_if",
    "exception": "current_exception exception exception_ptr rethrow_exception",
    "filesystem": "exists file_size filesystem is_directory path rename",
    "functional": "function greater greater_equal hash invoke less not_equal_to plus",
    "initializer_list": "initializer_list",
    "iterator": "back_inserter make_move_iterator prev size ssize",
    "limits": "numeric_limits",
    "list": "erase erase_if list",
    "map": "erase_if map",
    "memory": "addressof allocator construct_at hash make_shared make_unique make_unique_for_overwrite shared_ptr unique_ptr",
    "mutex": "lock_guard mutex unique_lock",
    "new": "align_val_t bad_alloc",
    "numbers": "numbers",
    "numeric": "accumulate gcd inner_product iota partial_sum",
    "optional": "nullopt optional",
    "queue": "priority_queue",
    "random": "mt19937_64",
    "set": "erase_if set",
    "span": "size span ssize",
    "sstream": "istringstream",
    "stdexcept": "invalid_argument runtime_error",
    "string": "erase erase_if hash size stoi string to_string",
    "string_view": "hash size string_view string_view_literals",
    "system_error": "errc error_code generic_category system_error",
    "thread": "thread",
    "tuple": "apply get tie tuple tuple_size_v",
    "type_traits": """conditional_t invoke_result_t is_convertible_v is_enum_v is_function_v is_integral_v
        is_invocable_r_v is_member_function_pointer_v is_same_v remove_const_t remove_cvref_t remove_pointer_t
        remove_reference_t type_identity""",
    "unordered_map": "erase_if unordered_map",
    "unordered_set": "erase_if unordered_set",
    "utility": "as_const exchange forward get move pair swap",
    "variant": "get get_if holds_alternative variant visit",
    "vector": "erase erase_if size ssize vector",
}
HEADERS_OF = {}
for header, names in NAMES.items():
    for name in names.split():
        HEADERS_OF.setdefault(name, set()).add(header)

INCLUDED = re.compile(r"^#include <([^>]+)>", re.M)
NO_CODE = re.compile(r'//[^\n]*|"(?:\\.|[^"\\\n])*"')
NAMED = re.compile(r"\bstd::(?:(?:ranges|chrono|filesystem)::)?(\w+)")


def standard_headers(tree, file, reached):
    """What the file includes of the standard library and other people's, itself or through ours, without any .ipp."""
    reached.add(file)
    found = set()
    for included in INCLUDED.findall((tree / file).read_text()):
        if not included.startswith("hetplan/"):
            found.add(included)
        elif not included.endswith(".ipp") and included not in reached:
            found |= standard_headers(tree, included, reached)
    return found


def faults(tree):
    for path in sorted([*tree.glob("**/*.hpp"), *tree.glob("**/*.ipp")]):
        file = path.relative_to(tree).as_posix()
        included = standard_headers(tree, file, set())
        for name in sorted(set(NAMED.findall(NO_CODE.sub("", path.read_text())))):
            known = HEADERS_OF.get(name)
            if known is None:
                yield f"{file}: std::{name} is not in the table of {pathlib.Path(__file__).name}"
            elif not known & included:
                yield f"{file}: std::{name} without {' or '.join(f'<{h}>' for h in sorted(known))}"


class StandardLibrary(unittest.TestCase):
    def test_each_name_has_its_header(self):
        self.maxDiff = None
        self.assertEqual([], list(faults(INCLUDE)))

    def test_a_name_without_its_header_is_found(self):
        files = {
            "hetplan/a.hpp": "#include <vector>\n",
            "hetplan/through.hpp": "#include <hetplan/a.hpp>\n// std::string\nstd::vector<int> of();",
            "hetplan/missing.hpp": "#include <hetplan/a.hpp>\nstd::string of();",
            "hetplan/unknown.hpp": "#include <vector>\nstd::ranges::frobnicate(x);",
            # Its own header includes x.ipp at its end: that does not count, for compiled it is not there.
            "hetplan/missing.ipp": "#include <string>\n",
            "hetplan/late.hpp": "std::string of();\n#include <hetplan/missing.ipp>\n",
        }
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            (tree / "hetplan").mkdir()
            for name, text in files.items():
                (tree / name).write_text(text)
            self.assertEqual(
                [
                    "hetplan/late.hpp: std::string without <string>",
                    "hetplan/missing.hpp: std::string without <string>",
                    "hetplan/unknown.hpp: std::frobnicate is not in the table of standard_library_test.py",
                ],
                list(faults(tree)),
            )


if __name__ == "__main__":
    unittest.main()
