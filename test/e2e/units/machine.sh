#!/bin/sh
# Runs a machine for tests of units: systemd as PID 1 in namespaces, on an overlay of this machine's files. It changes
# nothing on this machine. Its files stay in memory, its kernel settings are read-only, and its network is empty. When
# the process of `hold` ends, the kernel removes all mounts with their namespace.
set -eu
dir=$2 repository=$3
root=$dir/root

case $1 in
# Runs in a mount namespace of its own, and keeps the overlay from one boot to the next.
hold)
  mount --make-rprivate /
  mount -t tmpfs -o mode=755 tmpfs "$dir"
  mkdir "$dir/upper" "$dir/work" "$root" "$dir/cgroup"
  mount -t cgroup2 cgroup2 "$dir/cgroup"
  mount -t overlay overlay -o "lowerdir=/,upperdir=$dir/upper,workdir=$dir/work" "$root"
  # Removes this machine's services, and masks the units that can't work in namespaces.
  rm -rf "$root/etc/systemd/system" "$root/etc/init.d" "$root"/etc/rc*
  mkdir -p "$root/etc/systemd/system" "$root/opt/sui-enclave"
  for unit in console-getty.service dbus.service dbus.socket getty.target systemd-logind.service systemd-modules-load.service \
    systemd-remount-fs.service systemd-sysctl.service systemd-udevd.service systemd-udev-trigger.service \
    dev-hugepages.mount sys-kernel-config.mount sys-kernel-debug.mount sys-kernel-tracing.mount; do
    ln -s /dev/null "$root/etc/systemd/system/$unit"
  done
  rm -rf "$root/var/log/journal"
  # The machine's processes get a control group of their own, so that all of them can be killed.
  mkdir "$dir/cgroup/sui-enclave-units-$$"
  echo "holds $dir/cgroup/sui-enclave-units-$$"
  # Waits until the program that started this script closes its input, or ends.
  cat >/dev/null
  echo 1 >"$dir/cgroup/sui-enclave-units-$$/cgroup.kill"
  for attempt in 1 2 3 4 5 6 7 8 9 10; do
    if find "$dir/cgroup/sui-enclave-units-$$" -depth -type d -exec rmdir {} + 2>/dev/null; then break; fi
    sleep "0.$attempt"
  done
  ;;

# Runs in the namespace of `hold`. Enters the control group, and creates the namespaces of a machine.
enter)
  echo $$ >"$4/cgroup.procs"
  exec unshare --pid --fork --mount --cgroup --net --ipc --uts --kill-child sh "$0" boot "$dir" "$repository"
  ;;

boot)
  mount --make-rprivate /
  mount -t proc proc "$root/proc"
  mount --bind "$root/proc/sys" "$root/proc/sys"
  mount -o remount,bind,ro "$root/proc/sys"
  mount -t sysfs -o ro sysfs "$root/sys"
  mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
  mount -t tmpfs -o mode=755 tmpfs "$root/run"
  mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
  # The machine gets only devices that reveal nothing about this machine. /dev/vsock is not among them.
  mount -t tmpfs -o mode=755 tmpfs "$root/dev"
  for node in null zero full random urandom tty; do
    touch "$root/dev/$node"
    mount --bind "/dev/$node" "$root/dev/$node"
  done
  mkdir "$root/dev/pts" "$root/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
  ln -s pts/ptmx "$root/dev/ptmx"
  mount --bind "$repository" "$root/opt/sui-enclave"
  mount -o remount,bind,ro "$root/opt/sui-enclave"
  ip link set lo up
  cd "$root"
  mkdir run/old
  pivot_root . run/old
  umount --lazy run/old
  rmdir run/old
  # A separate process of systemd mounts some folders of a service, such as its credentials. The service must see them.
  mount --make-rshared /
  # Drops the capabilities that affect the kernel of all namespaces.
  exec setpriv --bounding-set=-sys_module,-sys_rawio,-sys_time,-syslog,-mac_admin \
    env -i container=namespaces PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    /lib/systemd/systemd --unit=multi-user.target --log-target=journal --show-status=0
  ;;
esac
