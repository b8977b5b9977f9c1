# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# What uroce is built and tested with, by Debian's package names, and how to get it; and whose a build is. To be sourced.

# Building: the compiler, DPDK, and the libraries of doc/design.
# shellcheck disable=SC2034 # for who sources it
BUILD_PACKAGES="gcc libc6-dev make meson ninja-build pkg-config libdpdk-dev dpdk-dev libisal-dev libnuma-dev libsystemd-dev libcmocka-dev libjansson-dev libncurses-dev uthash-dev libnl-3-dev libnl-route-3-dev"
# Testing as well: fuzzers, network namespaces, readers of packets and pages that are not ours. Each test that misses one is skipped by name.
# shellcheck disable=SC2034
TEST_PACKAGES="clang libclang-rt-dev g++ cmake iproute2 ethtool iputils-ping procps python3 python3-scapy tshark tmux binutils mandoc doxygen chromium"
# A guest with the kernel's rdma_rxe beside all that, for suite interop.
# shellcheck disable=SC2034
INTEROP_PACKAGES="qemu-system-x86 ipxe-qemu seabios cpio kmod libibverbs-dev xz-utils zstd util-linux tcpdump nftables"

# Names of those of its arguments that are not installed.
list_missing() {
	local package
	for package in "$@"; do
		dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || echo "$package"
	done
}

# Installs those of its arguments that are not there. Not root, or not Debian: says what is missing and leaves it. Returns 0 when nothing is missing any more.
install_missing() {
	local missing
	if ! command -v dpkg-query >/dev/null; then
		echo "not a Debian system: install what corresponds to: $*" >&2
		return 1
	fi
	missing=$(list_missing "$@")
	[ -n "$missing" ] || return 0
	missing=$(echo "$missing" | tr '\n' ' ')
	if [ "$(id -u)" -ne 0 ]; then
		echo "not installed, and not root: $missing" >&2
		return 1
	fi
	echo "installing $missing"
	export DEBIAN_FRONTEND=noninteractive
	# shellcheck disable=SC2086 # a list of words
	{ apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing; } >/dev/null || {
		echo "could not install: $missing" >&2
		return 1
	}
}

# Gives folders that root has built in to whoever has the folder that they are in, who builds there next.
give_to_owner() {
	local folder
	[ "$(id -u)" -eq 0 ] || return 0
	for folder in "$@"; do
		[ ! -d "$folder" ] || chown -Rh --reference="$(dirname "$folder")" "$folder"
	done
}
