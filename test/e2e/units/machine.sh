#!/bin/sh
# A machine for units: systemd as PID 1 in namespaces, on an overlay of this machine's files. Nothing that happens there
# reaches this machine: its files go to memory, its kernel settings are read-only, its network is empty, and when the
# process of `hold` ends, all mounts are gone with their namespace.
set -eu
dir=$2 repository=$3
root=$dir/root

case $1 in
# In a mount namespace of its own: keeps the overlay from one boot to the next.
hold)
  mount --make-rprivate /
  mount -t tmpfs -o mode=755 tmpfs "$dir"
  mkdir "$dir/upper" "$dir/work" "$root" "$dir/cgroup"
  mount -t cgroup2 cgroup2 "$dir/cgroup"
  mount -t overlay overlay -o "lowerdir=/,upperdir=$dir/upper,workdir=$dir/work" "$root"
  # None of this machine's services, and nothing that has no place in namespaces.
  rm -rf "$root/etc/systemd/system" "$root/etc/init.d" "$root"/etc/rc*
  mkdir -p "$root/etc/systemd/system" "$root/opt/sui-enclave"
  for unit in console-getty.service dbus.service dbus.socket getty.target systemd-logind.service systemd-modules-load.service \
    systemd-remount-fs.service systemd-sysctl.service systemd-udevd.service systemd-udev-trigger.service \
    dev-hugepages.mount sys-kernel-config.mount sys-kernel-debug.mount sys-kernel-tracing.mount; do
    ln -s /dev/null "$root/etc/systemd/system/$unit"
  done
  rm -rf "$root/var/log/journal"
  # Its processes are in a group of their own, so that none can be missed.
  mkdir "$dir/cgroup/sui-enclave-units-$$"
  echo "holds $dir/cgroup/sui-enclave-units-$$"
  # Until the program that started it closes its input, or ends in any way.
  cat >/dev/null
  echo 1 >"$dir/cgroup/sui-enclave-units-$$/cgroup.kill"
  for attempt in 1 2 3 4 5 6 7 8 9 10; do
    if find "$dir/cgroup/sui-enclave-units-$$" -depth -type d -exec rmdir {} + 2>/dev/null; then break; fi
    sleep "0.$attempt"
  done
  ;;

# In the namespace of `hold`: enters the group of processes, and the namespaces of a machine.
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
  # Devices: only those that say nothing of this machine. /dev/vsock is not among them.
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
  # What systemd mounts for a service from a process of its own, such as its credentials, must get there.
  mount --make-rshared /
  # Without the rights that reach the kernel of all namespaces.
  exec setpriv --bounding-set=-sys_module,-sys_rawio,-sys_time,-syslog,-mac_admin \
    env -i container=namespaces PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    /lib/systemd/systemd --unit=multi-user.target --log-target=journal --show-status=0
  ;;
esac
