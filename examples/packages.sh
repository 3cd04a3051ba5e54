# SPDX-License-Identifier: BSL-1.0
# shellcheck shell=sh disable=SC2034
# Sourced by the scripts that build: finds out what is missing and, on Debian 12, installs it.
# POSIX sh. Package names are Debian's; what is looked for is the thing itself, so other systems are served too.

build_packages="cmake ninja-build g++ libboost-dev librange-v3-dev libeigen3-dev libglpk-dev nlohmann-json3-dev libyaml-cpp-dev"
build_packages="$build_packages libcli11-dev libssl-dev libonnx-dev libprotobuf-dev"
# Each brings an executor or lets one measure better; without them the others run.
executor_packages="libopenmpi-dev openmpi-bin python3-torch libopenblas0-pthread iproute2"
test_packages="catch2 python3 coinor-libclp-dev coinor-libcbc-dev"

has_file() {
  for candidate in "$@"; do
    [ -e "$candidate" ] && return 0
  done
  return 1
}

has_header() {
  has_file "/usr/local/include/$1" "/usr/include/$1"
}

is_present() {
  case $1 in
    cmake | g++ | python3 | doxygen) command -v "$1" >/dev/null ;;
    ninja-build) command -v ninja >/dev/null ;;
    chromium) command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null ;;
    clang-format-16) command -v clang-format-16 >/dev/null ;;
    clang-16) command -v clang++-16 >/dev/null ;;
    libclang-rt-16-dev) has_file /usr/lib/llvm-16/lib/clang/16/lib/linux/libclang_rt.asan-*.a ;;
    libboost-dev) has_header boost/graph/adjacency_list.hpp ;;
    librange-v3-dev) has_header range/v3/version.hpp ;;
    libeigen3-dev) has_header eigen3/Eigen/Core ;;
    libglpk-dev) has_header glpk.h ;;
    nlohmann-json3-dev) has_header nlohmann/json.hpp ;;
    libyaml-cpp-dev) has_header yaml-cpp/yaml.h ;;
    libcli11-dev) has_header CLI/CLI.hpp ;;
    libssl-dev) has_header openssl/evp.h ;;
    coinor-libclp-dev) has_header coin/Clp_C_Interface.h ;;
    coinor-libcbc-dev) has_header coin/Cbc_C_Interface.h ;;
    libonnx-dev) has_header onnx/onnx_pb.h ;;
    libprotobuf-dev) has_header google/protobuf/message.h ;;
    catch2) has_header catch2/catch.hpp ;;
    libopenmpi-dev) command -v mpicxx >/dev/null ;;
    openmpi-bin) command -v mpirun >/dev/null ;;
    python3-torch) /usr/bin/python3 -c "import torch" 2>/dev/null ;;
    libopenblas0-pthread) has_file /usr/lib/*/openblas-pthread/libblas.so.3 ;;
    iproute2) command -v tc >/dev/null ;;
    debootstrap | git) command -v "$1" >/dev/null ;;
    *) return 1 ;;
  esac
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    env DEBIAN_FRONTEND=noninteractive "$@" </dev/null
  else
    sudo env DEBIAN_FRONTEND=noninteractive "$@" </dev/null
  fi
}

# require_packages yes|no PACKAGE...    yes: may install
require_packages() {
  may_install=$1
  shift
  missing=
  for package in "$@"; do
    is_present "$package" || missing="$missing $package"
  done
  [ -z "$missing" ] && return 0

  echo "Missing packages:$missing" >&2
  if [ "$may_install" != yes ]; then
    echo "Nothing was installed, as asked." >&2
    return 1
  fi
  if ! (. /etc/os-release && [ "$ID $VERSION_ID" = "debian 12" ]) 2>/dev/null; then
    echo "These are Debian's names. Install the same on this system, then run this again." >&2
    return 1
  fi
  if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
    echo "Installing them needs root or sudo." >&2
    return 1
  fi
  echo "Installing them with apt-get ..." >&2
  apt_log=$(mktemp)
  apt_status=0
  # A foreign package source that fails to answer need not stop us: the installation decides.
  as_root apt-get -q -o DPkg::Lock::Timeout=120 update >"$apt_log" 2>&1 || true
  # shellcheck disable=SC2086  # a list of words
  as_root apt-get -q -y -o DPkg::Lock::Timeout=120 install --no-install-recommends $missing >>"$apt_log" 2>&1 || apt_status=$?
  [ "$apt_status" -eq 0 ] || cat "$apt_log" >&2
  rm -f "$apt_log"
  return "$apt_status"
}

# install_choice "$@"    prints yes, or no after --no-install; any other argument is an error
install_choice() {
  choice=yes
  for argument in "$@"; do
    case $argument in
      --no-install) choice=no ;;
      *)
        echo "Unknown argument: $argument (known: --no-install)" >&2
        return 2
        ;;
    esac
  done
  echo "$choice"
}
