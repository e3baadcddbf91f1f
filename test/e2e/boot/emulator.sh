#!/bin/sh
# Inside the emulator's build: QEMU with nothing but what boots an enclave, to /out.
set -eu
mkdir -p /build/source /build/work /out/lib /out/roms
# The script that makes it is not run here, and Python's venv asks for it.
mkdir -p /etc/ssl/certs
cat /usr/share/ca-certificates/mozilla/*.crt > /etc/ssl/certs/ca-certificates.crt

tar -xJf /build/qemu.tar.xz -C /build/source --strip-components=1
cd /build/source
# Firmware of machines that are not built here; Debian leaves it out of its archive.
sed -i 's/^if unpack_edk2_blobs/if false/' pc-bios/meson.build
# The keyboard controller resets the machine, as on Nitro.
printf '%s=y\n' CONFIG_NITRO_ENCLAVE CONFIG_PCKBD > configs/devices/x86_64-softmmu/nitro.mak

cd /build/work
../source/configure --cc=gcc --cxx=g++ --host-cc=gcc --python=/usr/bin/python3 --target-list=x86_64-softmmu --without-default-features \
  --enable-system --enable-tcg --enable-libcbor --enable-gnutls --enable-fdt=system --enable-vhost-user \
  --enable-pixman --disable-install-blobs --disable-docs --disable-tools --disable-guest-agent \
  --disable-download --disable-werror --disable-debug-info --without-default-devices \
  --with-devices-x86_64=nitro > configure.log 2>&1 || { tail -50 configure.log; exit 1; }
ninja qemu-system-x86_64 > ninja.log 2>&1 || { tail -50 ninja.log; exit 1; }

strip qemu-system-x86_64
cp qemu-system-x86_64 /out/
/lib64/ld-linux-x86-64.so.2 --list ./qemu-system-x86_64 | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' | while IFS= read -r library; do
  cp -L "$library" /out/lib/
done
cp -L /lib64/ld-linux-x86-64.so.2 /out/lib/
cp -L /usr/share/qemu/qboot.rom /usr/share/qemu/linuxboot_dma.bin /out/roms/
# Unlike qboot, it places the tables of ACPI.
cp -L /usr/share/seabios/bios-microvm.bin /out/roms/
