// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Header-only, or compiled. `x.hpp` declares; what is no template is defined in `x.ipp`, which `x.hpp` includes at its end
/// unless HETPLAN_COMPILED is defined: then the library hetplan::compiled holds those definitions (it also sets the macro).
///
/// The compiled library lives in an inline namespace: nothing changes in a source, but where one part of a program is built
/// header-only and another compiled, what they exchange has two names, and the linker says so.

#ifdef HETPLAN_COMPILED
/// The library's namespace, as the library itself opens it.
#define HETPLAN_NAMESPACE hetplan::inline compiled
/// In front of every definition in an .ipp file.
#define HETPLAN_INLINE
#else
#define HETPLAN_NAMESPACE hetplan
#define HETPLAN_INLINE inline
#endif
