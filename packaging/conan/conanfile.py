# SPDX-License-Identifier: BSL-1.0
"""A recipe for Conan 2, of the checkout that it stands in: conan create packaging/conan --build=missing"""

import os
import pathlib
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy


class Hetplan(ConanFile):
    name = "hetplan"
    description = "Plans how heterogeneous devices share the training and inference of one model"
    license = "BSL-1.0"
    package_type = "static-library"
    settings = "os", "compiler", "build_type", "arch"
    options = {"fPIC": [True, False], "files": [True, False]}
    default_options = {"fPIC": True, "files": True}

    @property
    def _root(self):
        return pathlib.Path(self.recipe_folder).parents[1]

    def set_version(self):
        text = (self._root / "include/hetplan/core/version.hpp").read_text()
        self.version = ".".join(re.findall(r"#define HETPLAN_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", text))

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*"):
            copy(self, pattern, self._root, self.export_sources_folder)

    def requirements(self):
        self.requires("boost/[>=1.74]", transitive_headers=True, options={"header_only": True})
        self.requires("range-v3/[>=0.12]", transitive_headers=True)
        if self.options.files:
            self.requires("nlohmann_json/[>=3.11]", transitive_headers=True)
            self.requires("yaml-cpp/[>=0.7]", transitive_headers=True)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["HETPLAN_BUILD_COMMAND"] = False
        toolchain.cache_variables["CMAKE_DISABLE_FIND_PACKAGE_nlohmann_json"] = not self.options.files
        toolchain.cache_variables["CMAKE_DISABLE_FIND_PACKAGE_yaml-cpp"] = not self.options.files
        toolchain.cache_variables["CMAKE_DISABLE_FIND_PACKAGE_Eigen3"] = True
        toolchain.cache_variables["CMAKE_DISABLE_FIND_PACKAGE_Onnx"] = True
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        # The package's own hetplanConfig.cmake finds its parts.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs.append(os.path.join("lib", "cmake", "hetplan"))
