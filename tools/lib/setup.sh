# Shared set-up of tools/demo, tools/test and .ci/run: Swift new enough, liblz4's header there.
# Sourced, not run. Sets `root`, the folder of the clone.

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
swift_needed="6.3"

say() { printf '%s\n' "$*"; }
fail() {
    printf '%s\n' "$*" >&2
    exit 1
}

# The first two numbers of `swift --version`, or nothing.
swift_version() {
    swift --version 2>/dev/null </dev/null |
        sed -n 's/.*Swift version \([0-9]*\.[0-9]*\).*/\1/p' | head -n 1
}

check_swift() {
    local help="https://www.swift.org/install"
    command -v swift >/dev/null 2>&1 ||
        fail "No Swift found. Install Swift $swift_needed or newer: $help"
    local found
    found="$(swift_version)"
    [ -n "$found" ] || fail "'swift --version' gives no version. Install Swift $swift_needed: $help"
    local lowest
    lowest="$(printf '%s\n%s\n' "$swift_needed" "$found" | sort -t. -k1,1n -k2,2n | head -n 1)"
    [ "$lowest" = "$swift_needed" ] ||
        fail "Swift $found is too old. Install Swift $swift_needed or newer: $help"
}

# Sets `optimised`, how the crash tests are built: in release, in a folder of their own; but
# tools/test, which sets VARVE_OPTIMIZED, has the optimised library in its debug builds already.
optimised_build() { # optimised_build <package> <folder that tools/test builds in>
    if [ -n "${VARVE_OPTIMIZED:-}" ]; then
        optimised=(--package-path "$1" --scratch-path "$2" -c debug)
    else
        optimised=(--package-path "$1" -c release)
    fi
}

# have_header <header> <pkg-config name>: asks the C compiler of the toolchain, so that no place has
# to be guessed.
have_header() {
    local compiler=clang flags=""
    command -v clang >/dev/null 2>&1 || compiler=cc
    if command -v pkg-config >/dev/null 2>&1; then
        flags="$(pkg-config --cflags "$2" 2>/dev/null || true)"
    fi
    # shellcheck disable=SC2086
    printf '#include <stddef.h>\n#include <%s>\n' "$1" |
        "$compiler" $flags -x c -fsyntax-only - >/dev/null 2>&1
}

have_lz4() { have_header lz4.h liblz4; }

# The command that installs liblz4's header here, or nothing when no known manager is there.
lz4_command() {
    if command -v apt-get >/dev/null 2>&1; then
        say "apt-get install -y liblz4-dev"
    elif command -v dnf >/dev/null 2>&1; then
        say "dnf install -y lz4-devel"
    elif command -v apk >/dev/null 2>&1; then
        say "apk add lz4-dev"
    elif command -v pacman >/dev/null 2>&1; then
        say "pacman -S --noconfirm lz4"
    elif command -v brew >/dev/null 2>&1; then
        say "brew install lz4"
    fi
}

check_lz4() {
    if have_lz4; then return; fi
    local command
    command="$(lz4_command)"
    [ -n "$command" ] || fail "The header of liblz4 (lz4.h) is missing. Install liblz4 with its headers."
    local prefix="" written="$command"
    case "$command" in
    brew*) ;; # refuses to run as root and needs no right of its own
    *)
        if [ "$(id -u)" != 0 ]; then
            written="sudo $command"
            if command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
                prefix="sudo -n"
            else
                fail "The header of liblz4 is missing. Run this, then start again: $written"
            fi
        fi
        ;;
    esac
    say "The header of liblz4 is missing; installing it: $written"
    # shellcheck disable=SC2086
    if ! $prefix env DEBIAN_FRONTEND=noninteractive $command </dev/null >/tmp/varve-lz4.$$ 2>&1; then
        case "$command" in
        apt-get*)
            # A fresh image has no package lists yet.
            # shellcheck disable=SC2086
            $prefix apt-get update </dev/null >>/tmp/varve-lz4.$$ 2>&1 || true
            # shellcheck disable=SC2086
            $prefix env DEBIAN_FRONTEND=noninteractive $command </dev/null >>/tmp/varve-lz4.$$ 2>&1 ||
                true
            ;;
        esac
    fi
    if ! have_lz4; then
        cat /tmp/varve-lz4.$$ >&2
        rm -f /tmp/varve-lz4.$$
        fail "Installing failed. Run this, then start again: $written"
    fi
    rm -f /tmp/varve-lz4.$$
}

# Libraries that the benchmark measures Varve beside. Not needed: what is missing is skipped by name.
# Installed only where that is allowed without asking.
offer_benchmark_peers() {
    command -v apt-get >/dev/null 2>&1 || return 0
    local prefix="" missing=()
    have_header sqlite3.h sqlite3 || missing+=(libsqlite3-dev)
    ldconfig -p 2>/dev/null | grep -q 'liblmdb\.so' || missing+=(liblmdb0)
    ldconfig -p 2>/dev/null | grep -q 'librocksdb\.so' || missing+=(librocksdb7.8)
    [ "${#missing[@]}" != 0 ] || return 0
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null || return 0
        prefix="sudo -n"
    fi
    local package
    for package in "${missing[@]}"; do
        # A fresh image has no package lists yet.
        # shellcheck disable=SC2086
        if $prefix env DEBIAN_FRONTEND=noninteractive apt-get install -y "$package" </dev/null >/dev/null 2>&1 ||
            { $prefix apt-get update </dev/null >/dev/null 2>&1 &&
                $prefix env DEBIAN_FRONTEND=noninteractive apt-get install -y "$package" </dev/null >/dev/null 2>&1; }; then
            say "installed $package for the benchmark"
        else
            say "$package cannot be installed; the benchmark goes without it"
        fi
    done
}

# SwiftPM calls a package by the name of its folder, so a clone cannot be called like a package in it
# that is built from it.
check_folder() {
    local name package
    name="$(basename "$root" | tr '[:upper:]' '[:lower:]')"
    for package in "$root/tools" "$root"/tools/* "$root"/Examples/*; do
        [ -f "$package/Package.swift" ] || continue
        [ "$(basename "$package" | tr '[:upper:]' '[:lower:]')" != "$name" ] ||
            fail "SwiftPM confuses this clone, $root, with the package ${package#"$root"/}. Give the folder another name, such as varve."
    done
}

set_up() {
    check_folder
    check_swift
    check_lz4
}
