#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# liburoce shows the public API and nothing else, defines all of it, and needs nothing but libc.
# usage: exports.sh liburoce.so uroce.h
for tool in nm readelf; do
	command -v $tool >/dev/null || { echo "skipped: no $tool"; exit 77; }
done
status=0
defined=$(nm -D --defined-only "$1" | awk '$2 != "A" { print $3 }' | sed 's/@.*//' | sort)
declared=$(sed -n 's/^[a-z].*[ *]\(uroce_[a-z0-9_]*\)(.*/\1/p' "$2" | sort)
for name in $defined; do
	echo "$declared" | grep -qx "$name" || { echo "exported, but not in uroce.h: $name"; status=1; }
done
for name in $declared; do
	echo "$defined" | grep -qx "$name" || { echo "in uroce.h, but not exported: $name"; status=1; }
done
[ -n "$declared" ] || { echo "no declarations found in $2"; status=1; }
for lib in $(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
	case $lib in
	libc.so.*|libpthread.so.*|libdl.so.*|ld-linux*) ;;
	# what a sanitizer build adds
	libasan.so.*|libubsan.so.*|libgcc_s.so.*|libm.so.*|libstdc++.so.*) ;;
	*) echo "needs $lib"; status=1 ;;
	esac
done
exit $status
