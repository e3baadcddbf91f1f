#!/bin/sh
# Inside the image's build: Debian's kernel source with our configuration, to /kernel/bzImage. The same bytes
# wherever it is built: time, user, host and build number of the kernel are fixed, as is the folder.
set -eu
config=$1
jobs=$(nproc)
export LC_ALL=C TZ=UTC KBUILD_BUILD_TIMESTAMP='1970-01-01 00:00:00 UTC' KBUILD_BUILD_USER=enclave \
  KBUILD_BUILD_HOST=enclave KBUILD_BUILD_VERSION=1

mkdir -p /kernel/source
tar -xJf /usr/src/linux-source-*.tar.xz -C /kernel/source --strip-components=1
cd /kernel/source
make -s KCONFIG_ALLCONFIG="$config" allnoconfig

# The kernel's build silently drops an option that does not exist, or whose dependencies are not met.
wrong=$(grep -E '^(CONFIG_|# CONFIG_[A-Z0-9_]+ is not set$)' "$config" | while IFS= read -r want; do
  name=${want#\# }
  case $want in
    '#'*) ! grep -q "^${name%% *}=" .config || echo "  ${name%% *} was to be off and is on" ;;
    *) grep -Fqx "$want" .config || echo "  $want did not come out" ;;
  esac
done)
[ -z "$wrong" ] || { printf 'enclave/kernel.config:\n%s\n' "$wrong" >&2; exit 1; }

make -s -j"$jobs" bzImage
cp arch/x86/boot/bzImage /kernel/bzImage
make -s kernelrelease > /kernel/release
rm -rf /kernel/source
