#!/bin/sh
# Inside the image's build: compiles what depends on no application, in a layer of its own: init, for the enclave, to
# /programs/init; and the host's relay, which is in no ramdisk, to /programs/relay.
set -eu
umask 022
cd /build
mkdir -p /programs
linking='-Wl,-z,relro,-z,now,-z,noexecstack,--build-id=none'
options='-std=c++20 -O2 -Wall -Wextra -Werror -fPIE -fstack-protector-strong -fstack-clash-protection -fcf-protection
  -D_FORTIFY_SOURCE=3 -D_GLIBCXX_ASSERTIONS'
# shellcheck disable=SC2086 # lists of options
g++ $options -pie $linking enclave/init/*.cc -o /programs/init
# Statically linked: the host has other libraries. The linker warns that getaddrinfo may load libraries, which the relay
# rules out (resolver.cc).
# shellcheck disable=SC2086
g++ $options -static-pie $linking,--no-warnings enclave/relay/*.cc enclave/init/bridge.cc enclave/init/connections.cc \
  enclave/init/loop.cc enclave/init/socket.cc -o /programs/relay
strip /programs/init /programs/relay
