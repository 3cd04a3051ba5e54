# SPDX-License-Identifier: BSL-1.0
# ONNX and the protobuf that it is built on. Its own CMake files name their targets onnx and onnx_proto and expect protobuf's to be
# there. Defines Onnx::Onnx.

find_path(Onnx_INCLUDE_DIR onnx/shape_inference/implementation.h)
find_path(Onnx_PROTOBUF_INCLUDE_DIR google/protobuf/message.h)
find_library(Onnx_LIBRARY onnx)
find_library(Onnx_PROTO_LIBRARY onnx_proto)
find_library(Onnx_PROTOBUF_LIBRARY protobuf)
mark_as_advanced(Onnx_INCLUDE_DIR Onnx_PROTOBUF_INCLUDE_DIR Onnx_LIBRARY Onnx_PROTO_LIBRARY Onnx_PROTOBUF_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Onnx REQUIRED_VARS Onnx_LIBRARY Onnx_PROTO_LIBRARY Onnx_PROTOBUF_LIBRARY Onnx_INCLUDE_DIR
                                                     Onnx_PROTOBUF_INCLUDE_DIR)

if(Onnx_FOUND AND NOT TARGET Onnx::Onnx)
  add_library(Onnx::Onnx UNKNOWN IMPORTED)
  set_target_properties(
    Onnx::Onnx
    PROPERTIES IMPORTED_LOCATION "${Onnx_LIBRARY}"
               INTERFACE_INCLUDE_DIRECTORIES "${Onnx_INCLUDE_DIR};${Onnx_PROTOBUF_INCLUDE_DIR}"
               INTERFACE_COMPILE_DEFINITIONS "ONNX_NAMESPACE=onnx;ONNX_ML=1" # as Debian builds it
               INTERFACE_LINK_LIBRARIES "${Onnx_PROTO_LIBRARY};${Onnx_PROTOBUF_LIBRARY}")
endif()
