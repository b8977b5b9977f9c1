#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds a guest with the kernel's rdma_rxe and rdma-core's tools from Debian's packages, which are fetched and unpacked but not installed.
#   build.sh CACHE [KERNEL-PACKAGE]    makes CACHE/{vmlinux,initrd}-KERNEL-PACKAGE (linux-image-amd64); says nothing and does nothing when they are there already
# Needs apt, dpkg-deb, gcc with libibverbs-dev (for the programs of ours that run in it), kmod, cpio, xz, zstd, binutils, python3.
set -euo pipefail
cache=${1:?usage: build.sh CACHE [KERNEL-PACKAGE]}
meta=${2:-linux-image-amd64}
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../../.." && pwd)
export LC_ALL=C
mkdir -p "$cache/debs"
cache=$(cd "$cache" && pwd)

packages="busybox-static dash iproute2 libbpf1 libelf1 libmnl0 libcap2 libbsd0 libmd0 libselinux1 libpcre2-8-0 zlib1g libxtables12 libtirpc3 libdb5.3
 ibverbs-utils ibverbs-providers libibverbs1 libnl-3-200 libnl-route-3-200 libc6 libgcc-s1 kmod liblzma5 libzstd1 libssl3 nftables libnftables1 libnftnl11 libjansson4
 libgmp10 libedit2 libtinfo6 libgssapi-krb5-2 libkrb5-3 libk5crypto3 libcom-err2 libkrb5support0 libkeyutils1"
programs="ibv_devinfo ibv_rc_pingpong ibv_uc_pingpong ibv_ud_pingpong ibv_srq_pingpong ip tc rdma kmod nft"
# Loaded at boot; rxe asks the crypto API for crc32 by name.
modules="virtio_pci virtio_net virtio_console crc32_generic crc32_pclmul ib_core ib_uverbs rdma_rxe"
# There for modprobe.
modules_more="nf_tables nft_numgen ifb act_mirred sch_ingress sch_netem cls_matchall cls_flower"
# What of ours runs in it: source files that are one program each.
ends=("$here/../peer.c" "$here/../peer_memory.c" "$here/../stack_verbs.c" "$top/app/common/pattern.c")
includes=(-I"$here/.." -I"$top/app/common")

apt-cache show "$meta" >/dev/null 2>&1 || apt-get update -qq
kernel=$(apt-cache depends "$meta" | sed -n 's/^ *Depends: \(linux-image-[0-9].*-amd64\)$/\1/p' | head -n 1)
[ -n "$kernel" ] || {
	echo "apt knows no package $meta" >&2
	exit 1
}
version=${kernel#linux-image-}
stamp=$({ cat "$0" "$here/init" "$here/agent.c" "$here"/../*.[ch] "$top"/app/common/pattern.[ch]; echo "$kernel"; } | sha256sum)
[ "$(cat "$cache/stamp-$meta" 2>/dev/null)" != "$stamp" ] || exit 0

fetch() {
	local p missing=()
	cd "$cache/debs"
	for p in "$kernel" $packages; do
		compgen -G "${p}_*.deb" >/dev/null || missing+=("$p")
	done
	[ ${#missing[@]} -eq 0 ] || apt-get download -qq -o APT::Sandbox::User=root "${missing[@]}" >/dev/null
}

# unpack FOLDER PACKAGE...: once, unless the list has changed.
unpack() {
	local folder=$1 list p
	shift
	list=$(echo "$*" | sha256sum)
	[ "$(cat "$folder.list" 2>/dev/null)" != "$list" ] || return 0
	rm -rf "$folder"
	mkdir -p "$folder"
	for p in "$@"; do dpkg-deb -x "$cache/debs/${p}"_*.deb "$folder"; done
	echo "$list" >"$folder.list"
}

# The ELF kernel inside a bzImage: QEMU boots it directly, and nothing has to be decompressed by an emulated CPU.
extract_kernel() {
	python3 - "$1" "$2" <<'PYTHON'
import subprocess
import sys
data = open(sys.argv[1], 'rb').read()
for magic, command in ((b'\xfd7zXZ\x00', ['xz', '-dc']), (b'\x28\xb5\x2f\xfd', ['zstd', '-dc']), (b'\x1f\x8b\x08', ['gzip', '-dc'])):
    at = data.find(magic)
    while at >= 0:
        out = subprocess.run(command, input=data[at:], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        if out[:4] == b'\x7fELF':
            open(sys.argv[2], 'wb').write(out)
            sys.exit(0)
        at = data.find(magic, at + 1)
sys.exit('no ELF in ' + sys.argv[1])
PYTHON
}

install_programs() {
	local p a
	mkdir -p "$root"/{bin,sbin,usr/bin,usr/sbin,lib64,etc/libibverbs.d,proc,sys,dev,tmp,run,root,"$lib/libibverbs"}
	cp "$user/bin/busybox" "$user/bin/dash" "$root/bin/"
	for a in $("$root/bin/busybox" --list); do
		case $a in
		ip | tc | modprobe | insmod | rmmod | lsmod | depmod | modinfo | busybox | sh | ash | hush) ;;
		*) ln -sf /bin/busybox "$root/bin/$a" ;;
		esac
	done
	ln -sf dash "$root/bin/sh" # busybox's would prefer its own ip and tc
	for p in $programs; do cp "$(find "$user" -type f -path "*bin/$p" -print -quit)" "$root/usr/bin/"; done
	for a in modprobe lsmod; do ln -sf /usr/bin/kmod "$root/sbin/$a"; done
	cp "$user/$lib"/libibverbs/librxe-rdmav*.so "$root/$lib/libibverbs/"
	cp "$user/etc/libibverbs.d/rxe.driver" "$root/etc/libibverbs.d/"
	gcc -O2 -Wall -static -o "$root/sbin/agent" "$here/agent.c"
	gcc -O2 -Wall -o "$root/usr/bin/peer" "${includes[@]}" "${ends[@]}" -libverbs
	cp "$here/init" "$root/init"
	chmod +x "$root/init"
}

needed() {
	find "$root/usr/bin" "$root/$lib" -type f -print0 | xargs -0 -n 1 readelf -d 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u
}

# Libraries, until nothing is missing any more.
install_libraries() {
	local n from is_new=1
	cp -L "$user/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2" "$root/lib64/"
	while [ $is_new = 1 ]; do
		is_new=0
		for n in $(needed); do
			case $n in ld-linux*) continue ;; esac
			[ ! -e "$root/$lib/$n" ] || continue
			from=$user/lib/x86_64-linux-gnu/$n
			[ -e "$from" ] || from=$user/$lib/$n
			cp -L "$from" "$root/$lib/$n"
			is_new=1
		done
	done
}

# install_module NAME IS_LOADED
install_module() {
	local word file to
	{ modprobe -d "$tree" -S "$version" --show-depends "$1" 2>/dev/null || true; } | while read -r word file _; do
		[ "$word" = insmod ] || continue
		to=${file#"$tree"}
		to=${to%.xz}
		mkdir -p "$(dirname "$root$to")"
		case $file in
		*.xz) xz -dc "$file" >"$root$to" ;;
		*) cp "$file" "$root$to" ;;
		esac
		if [ "$2" = 1 ] && ! grep -qxF "$to" "$root/etc/modules.list"; then echo "$to" >>"$root/etc/modules.list"; fi
	done
}

install_modules() {
	local m
	mkdir -p "$root/lib/modules/$version"
	: >"$root/etc/modules.list"
	cp "$tree/lib/modules/$version"/modules.{builtin,builtin.modinfo,order} "$root/lib/modules/$version/"
	for m in $modules; do install_module "$m" 1; done
	for m in $modules_more; do install_module "$m" 0; done
	depmod -b "$root" "$version"
}

tree=$cache/kernel-$meta
user=$cache/user
root=$cache/root-$meta
lib=usr/lib/x86_64-linux-gnu
fetch
unpack "$tree" "$kernel"
# shellcheck disable=SC2086 # a list of words
unpack "$user" $packages
[ -e "$tree/lib/modules/$version/modules.dep" ] || depmod -b "$tree" "$version"
extract_kernel "$tree/boot/vmlinuz-$version" "$cache/vmlinux-$meta"
rm -rf "$root"
install_programs
install_libraries
install_modules
(cd "$root" && find . -print0 | sort -z | cpio --null -o -H newc -R 0:0 --quiet) >"$cache/initrd-$meta"
echo "$stamp" >"$cache/stamp-$meta"
