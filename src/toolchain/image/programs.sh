#!/bin/sh
# Runs inside the image's build: compiles the programs that are the same for all applications, in a layer of their own.
# These are init, for the enclave, as /programs/init, and the host's relay, which is in no ramdisk, as /programs/relay.
set -eu
umask 022
cd /build
mkdir -p /programs
linking='-Wl,-z,relro,-z,now,-z,noexecstack,--build-id=none'
options='-std=c++20 -O2 -Wall -Wextra -Werror -fPIE -fstack-protector-strong -fstack-clash-protection -fcf-protection
  -D_FORTIFY_SOURCE=3 -D_GLIBCXX_ASSERTIONS'
# shellcheck disable=SC2086 # lists of options
g++ $options -pie $linking enclave/init/*.cc -o /programs/init
# The relay is linked statically, since the host has other libraries. The linker warns that getaddrinfo may load
# libraries; the relay prevents this (resolver.cc).
# shellcheck disable=SC2086
g++ $options -static-pie $linking,--no-warnings enclave/relay/*.cc enclave/init/bridge.cc enclave/init/connections.cc \
  enclave/init/loop.cc enclave/init/socket.cc -o /programs/relay
strip /programs/init /programs/relay
