#!/usr/bin/env bash
# Builds the library of C and puts it, its headers, pkg-config's file and CMake's under a prefix: `crates/c/install.sh /usr/local`.
# Options of cargo may follow, such as `--no-default-features`.
set -euo pipefail

prefix=${1:?"give the folder to install into, such as /usr/local"}
shift
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
cargo build --quiet --profile dist --locked -p palmette-c "$@"
built=${CARGO_TARGET_DIR:-target}/dist
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)

mkdir -p "$prefix/include" "$prefix/lib/pkgconfig" "$prefix/lib/cmake/Palmette"
prefix=$(cd "$prefix" && pwd)
cp "$here"/include/*.h "$prefix/include"
for library in libpalmette_c.so libpalmette_c.dylib libpalmette_c.a; do
  if [ -e "$built/$library" ]; then cp "$built/$library" "$prefix/lib"; fi
done
sed -e "s|@PREFIX@|$prefix|" -e "s|@VERSION@|$version|" "$here/palmette.pc.in" > "$prefix/lib/pkgconfig/palmette.pc"
cp "$here/PalmetteConfig.cmake" "$prefix/lib/cmake/Palmette"
