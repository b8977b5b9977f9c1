#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Reserves huge pages for uroce, or shows what there is. Everything works without them, only slower.
#   hugepages.sh MIB    have MIB mebibytes of huge pages of the default size (0: give them back)
#   hugepages.sh        show
set -euo pipefail

usage() {
	sed -n 's/^#   //p' "$0"
	exit "$1"
}

value_of() {
	awk -v key="$1:" '$1 == key { print $2 }' /proc/meminfo
}

show() {
	local total free kib
	total=$(value_of HugePages_Total) free=$(value_of HugePages_Free) kib=$(value_of Hugepagesize)
	if [ -z "$kib" ]; then
		echo "this kernel has no huge pages"
		return
	fi
	echo "huge pages: $((total * kib / 1024)) MiB reserved, $((free * kib / 1024)) MiB free, $((kib / 1024)) MiB each"
}

# DPDK looks for a mounted hugetlbfs; uroce itself needs none.
mount_hugetlbfs() {
	grep -q ' hugetlbfs ' /proc/mounts && return
	mkdir -p /dev/hugepages && mount -t hugetlbfs hugetlbfs /dev/hugepages 2>/dev/null || echo "hugetlbfs could not be mounted on /dev/hugepages" >&2
}

reserve() {
	local mib=$1 kib pages got
	kib=$(value_of Hugepagesize)
	if [ -z "$kib" ]; then
		echo "this kernel has no huge pages" >&2
		exit 1
	fi
	pages=$(((mib * 1024 + kib - 1) / kib))
	if ! echo "$pages" 2>/dev/null >/proc/sys/vm/nr_hugepages; then
		echo "/proc/sys/vm/nr_hugepages cannot be written: run this as root, and outside of a container" >&2
		exit 1
	fi
	got=$(cat /proc/sys/vm/nr_hugepages)
	[ "$mib" -eq 0 ] || mount_hugetlbfs
	show
	if [ "$got" -lt "$pages" ]; then
		echo "only $got of $pages pages: memory is in use or in pieces; free some, or reserve at boot with hugepages=$pages on the kernel's command line" >&2
		exit 1
	fi
	echo "until the next boot; to keep it: echo vm.nr_hugepages=$pages >/etc/sysctl.d/60-uroce.conf"
}

case ${1-} in
"") show ;;
-h | --help) usage 0 ;;
*[!0-9]*) usage 2 >&2 ;;
*) [ $# -eq 1 ] || usage 2 >&2; reserve "$1" ;;
esac
