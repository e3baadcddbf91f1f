#!/bin/sh
# The first boot of an instance for enclaves (Amazon Linux 2023): nitro-cli, its allocator with room for one
# enclave, and what this project's commands need.
set -eu
dnf install -y aws-nitro-enclaves-cli aws-nitro-enclaves-cli-devel git make gcc-c++ nodejs22 nodejs22-npm
usermod -aG ne ec2-user
sed -i 's/^memory_mib:.*/memory_mib: 1024/; s/^cpu_count:.*/cpu_count: 2/' /etc/nitro_enclaves/allocator.yaml
systemctl enable --now nitro-enclaves-allocator.service
